"""Bands by their names, and in the order of their wavelengths."""

from __future__ import annotations

import pytest

from scant.studies.redshift.bands import band, by_wavelength

NAMES = {
    "mag_u_lsst": "u", "modelMag_g": "g", "MAG_AUTO_Y": "y", "g_cmodel_mag": "g", "Y": "y",
    "MAG_GAAP_Ks": "ks", "FLUX_VIS_TEMPLFIT": "vis", "umag": "u", "W1mag": "w1", "w2mpro": "w2",
    "r [mag]": "r", "magJ": "j", "z_band": "z",
    "g_i": "", "size": "", "image": "", "radius": "", "magnitude": "", "umagic": "",
}  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_the_band_of_a_name(name: str) -> None:
    assert band(name) == NAMES[name]


@pytest.mark.parametrize("pattern", ["{}", "mag_{}_lsst", "{}_cmodel_mag", "dered_{}", "{}mag"])
@pytest.mark.parametrize("last", "yY")
def test_bands_are_ordered_and_what_is_none_keeps_its_place(pattern: str, last: str) -> None:
    ordered = [pattern.format(b) for b in ("u", "g", "r", "i", "z", last)]
    shuffled = [ordered[i] for i in (1, 3, 2, 0, 5, 4)]
    assert by_wavelength(shuffled) == ordered
    shuffled.insert(2, "size")
    assert by_wavelength(shuffled) == [*ordered[:2], "size", *ordered[2:]]


def test_optical_and_infrared_bands() -> None:
    bands = ["W1", "Ks", "J", "Y", "VIS", "g", "H", "u", "NUV"]
    assert by_wavelength(bands) == ["NUV", "u", "g", "VIS", "Y", "J", "H", "Ks", "W1"]


@pytest.mark.parametrize(
    "names",
    [
        ["i", "g"],  # two letters may mean anything
        ["height", "width", "depth"],
        ["psf_i", "psf_g", "psf_u", "model_g"],
        ["i", "g", "u", "G"],
    ],
)
def test_nothing_is_moved_where_bands_are_not_known(names: list[str]) -> None:
    assert by_wavelength(names) == names
