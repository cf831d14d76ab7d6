"""Tables of surveys open as they are: bands, errors and redshift by their names."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import h5py
import numpy as np
import pandas as pd
import pytest

from scant.studies import entry
from scant.studies.redshift.bands import band, by_wavelength
from scant.studies.suits import suits
from scant.tables.column_matching import is_aside
from scant.tables.read import inspect_table, read_frame, read_table
from tests.paths import REAL_DATA

SCHEMA = entry("redshift").table
RAIL = REAL_DATA / "photoz_rail" / "test_dc2_training_9816.hdf5"
ROWS = 60
INFRARED = ("u", "g", "r", "i", "Z", "Y", "J", "H", "Ks")


@dataclass(frozen=True)
class Survey:
    """Names of bands and errors with {} for a band, in the order of a file; the other columns."""

    bands: str
    errors: str
    target: str
    names: tuple[str, ...] = tuple("ugriz")
    aside: tuple[str, ...] = ()
    limits: str = ""
    write: Callable[[pd.DataFrame], bytes] | None = None


def as_csv(frame: pd.DataFrame) -> bytes:
    return frame.to_csv(index=False).encode()


def as_parquet(frame: pd.DataFrame) -> bytes:
    out = io.BytesIO()
    frame.to_parquet(out)
    return out.getvalue()


def as_fits(frame: pd.DataFrame) -> bytes:
    out = io.BytesIO()
    table = pytest.importorskip("astropy.table")
    table.Table.from_pandas(frame).write(out, format="fits")
    return out.getvalue()


def as_ecsv(frame: pd.DataFrame) -> bytes:
    out = io.StringIO()
    table = pytest.importorskip("astropy.table")
    table.Table.from_pandas(frame).write(out, format="ascii.ecsv")
    return out.getvalue().encode()


def as_group(frame: pd.DataFrame) -> bytes:
    out = io.BytesIO()
    with h5py.File(out, "w") as made:
        for name in frame:
            made[f"photometry/{name}"] = frame[name].to_numpy()
    return out.getvalue()


SDSS_IDS = ("objID", "ra", "dec")
SURVEYS = {
    "SDSS psf": Survey("psfMag_{}", "psfMagErr_{}", "z_spec", aside=SDSS_IDS, write=as_fits),
    "SDSS model": Survey(
        "modelMag_{}", "modelMagErr_{}", "redshift", write=as_fits,
        aside=(*SDSS_IDS, "specObjID", "zErr", "zWarning")),
    "SDSS cmodel": Survey("cModelMag_{}", "cModelMagErr_{}", "specObj z", aside=("objid",)),
    "SDSS dereddened": Survey("dered_{}", "modelMagErr_{}", "z", aside=("objid",)),
    "SDSS dereddened, psf": Survey("dered_{}", "psfMagErr_{}", "z_spec", aside=("objid",)),
    "SDSS of SkyServer": Survey(
        "{}", "", "redshift",
        aside=("objid", "ra", "dec", "run", "camcol", "field", "plate", "mjd", "fiberid")),
    "SDSS, err": Survey("{}", "err_{}", "z_spec", write=as_ecsv),
    "RAIL": Survey(
        "mag_{}_lsst", "mag_err_{}_lsst", "redshift", tuple("ugrizy"), aside=("id",),
        write=as_group),
    "Rubin": Survey(
        "{}_cModelMag", "{}_cModelMagErr", "redshift", tuple("ugrizy"),
        aside=("objectId", "coord_ra", "coord_dec", "tract", "patch", "i_extendedness")),
    "DES": Survey(
        "MAG_AUTO_{}", "MAGERR_AUTO_{}", "Z", tuple("GRIZY"),
        aside=("COADD_OBJECT_ID", "RA", "DEC", "FLAGS_GOLD")),
    "DES BDF": Survey(
        "BDF_MAG_DERED_CALIB_{}", "BDF_MAG_ERR_{}", "SPECZ", tuple("GRIZ"),
        aside=("COADD_OBJECT_ID", "DNF_ZPHOT")),
    "HSC": Survey(
        "{}_cmodel_mag", "{}_cmodel_magsigma", "specz_redshift", tuple("grizy"),
        aside=("object_id", "ra", "dec", "specz_redshift_err", "specz_flag_homogeneous"),
        write=as_parquet),
    "HSC, magerr": Survey("{}_cmodel_mag", "{}_cmodel_magerr", "specz", tuple("grizy")),
    "KiDS": Survey(
        "MAG_GAAP_{}", "MAGERR_GAAP_{}", "SPECZ", INFRARED, limits="MAG_LIM_{}",
        aside=("KIDS_ID", "ALPHA_J2000", "DELTA_J2000", "Z_B", "Z_ML")),
    "Euclid": Survey(
        "mag_{}", "mag_err_{}", "z_spec", ("g", "r", "vis", "i", "z", "y", "j", "h"),
        aside=("object_id", "z_phot")),
    "Euclid's fluxes": Survey(
        "FLUX_{}_TEMPLFIT", "FLUXERR_{}_TEMPLFIT", "Z_SPEC", ("VIS", "Y", "J", "H"),
        aside=("OBJECT_ID", "RIGHT_ASCENSION", "DECLINATION", "FLAG_VIS"), write=as_fits),
    "VizieR": Survey("{}mag", "e_{}mag", "zsp", aside=("RAJ2000", "DEJ2000", "zph")),
    "a band and a redshift": Survey("mag_{}", "err_{}", "z", aside=("id", "photoz")),
}  # fmt: skip


def table_of(survey: Survey) -> pd.DataFrame:
    """Columns in an order of their own: other columns first, and bands from red to blue."""
    rng = np.random.default_rng(0)
    made: dict[str, Any] = {}
    for name in survey.aside:
        made[name] = 10**17 + rng.permutation(ROWS) if "id" in name.lower() else rng.random(ROWS)
    for letter in survey.names[::-1]:
        made[survey.bands.format(letter)] = rng.uniform(17, 24, ROWS)
        if survey.limits:
            made[survey.limits.format(letter)] = rng.uniform(24, 25, ROWS)
    for letter in survey.names if survey.errors else ():
        made[survey.errors.format(letter)] = rng.uniform(0.01, 0.2, ROWS)
    return pd.DataFrame({**made, survey.target: rng.uniform(0.1, 2, ROWS)})


def calls(survey: Survey, form: str) -> Iterable[str]:
    return (form.format(letter) for letter in survey.names)


@pytest.mark.parametrize("name", SURVEYS)
def test_a_survey_opens_without_a_question(name: str) -> None:
    survey = SURVEYS[name]
    frame = table_of(survey)
    preview = inspect_table((survey.write or as_csv)(frame), SCHEMA, name=f"{name}.bin")
    assert (preview.questions, preview.problems, preview.n_rows) == ((), (), ROWS)
    assert {s.study for s in suits(preview.columns, preview.n_rows)[:1]} <= {"redshift"}
    for data in ((survey.write or as_csv)(frame), as_csv(frame)):
        read = read_table(data, SCHEMA, name="x.bin")
        assert preview.features == read.features
        by_header = {"z": "z_band"} if "z" in frame and survey.target != "z" else {}
        features = [by_header.get(n, n) for n in calls(survey, survey.bands)]
        assert list(read.features) == features  # in the order of their wavelengths
        np.testing.assert_allclose(read.frame["z"], frame[survey.target])
        for feature, letter in zip(features, survey.names):
            for end, form in (("_err", survey.errors), ("_lim", survey.limits)):
                if form:
                    own = frame[form.format(letter)]
                    np.testing.assert_allclose(read.frame[f"{feature}{end}"], own)
        assert set(read.ignored) == set(survey.aside)
        if "objID" in survey.aside:
            assert read.ignored["objID"].tolist() == frame["objID"].astype(str).tolist()


@pytest.mark.parametrize(
    "name",
    [
        "ra", "DEC", "coord_ra", "i_dec", "RAJ2000", "_DEJ2000", "ALPHA_J2000", "raErr",
        "z_phot", "zphot", "photo_z", "photoz_best", "Z_B", "zWarning", "z_flag", "IMAFLAGS_ISO",
        "run", "camcol", "plate", "fiberID", "tract", "i_extendedness", "extendedness",
        "refExtendedness", "i_extendedness_value", "EXTENDED_CLASS_COADD", "CLASS_STAR", "is_star",
    ],
)  # fmt: skip
def test_what_is_no_feature(name: str) -> None:
    assert is_aside(name, SCHEMA)


@pytest.mark.parametrize(
    "name",
    [
        "u", "Z", "mag_z", "phot_z", "phot_g_mean_mag", "MAG_AUTO_Z", "extinction_r", "petroRad_r",
        "decay", "radius", "z_cmodel_mag", "size", "ra_column", "trunk", "field_density",
        "extent", "star_formation", "spread_model_i",
    ],
)  # fmt: skip
def test_what_may_be_a_feature(name: str) -> None:
    assert not is_aside(name, SCHEMA)


def test_a_redshift_beside_the_chosen_one_is_no_feature() -> None:
    frame = table_of(Survey("mag_{}", "", "z")).assign(redshift=lambda f: f["z"] + 1e-5)
    read = read_table(as_csv(frame), SCHEMA)
    assert "redshift" not in read.features
    chosen = read_table(as_csv(frame.drop(columns="z").assign(z_spec=frame["z"])), SCHEMA,
                        target="z_spec")  # fmt: skip
    assert "redshift" not in chosen.features


def test_a_position_that_somebody_chose_is_learned_from_and_known_again() -> None:
    frame = table_of(Survey("mag_{}", "", "z", aside=("ra", "dec")))
    read = read_table(as_csv(frame), SCHEMA, mapping={"dec": ""})
    assert "ra" in read.features
    assert read.reading["mapping"]["ra"] == "ra"
    assert "dec" not in read.features
    assert "ra" not in read_frame(frame, SCHEMA).features


def test_many_columns_are_left_out_in_one_sentence() -> None:
    read = read_table(as_csv(table_of(SURVEYS["SDSS of SkyServer"])), SCHEMA, name="x.csv")
    assert (
        "x.csv: 8 columns were left out, because they appear not to be inputs: "
        "ra, dec, run, camcol, field, plate, mjd, fiberid." in read.notes
    )


@pytest.mark.skipif(not RAIL.is_file(), reason="SCANT_REAL_DATA names no photoz_rail galaxies")
def test_the_file_of_rail_opens_as_it_is() -> None:
    preview = inspect_table(RAIL, SCHEMA)
    assert (preview.n_rows, preview.questions, preview.problems) == (10_225, (), ())
    bands = [f"mag_{b}_lsst" for b in "ugrizy"]
    read = read_table(RAIL, SCHEMA)
    assert list(preview.features) == list(read.features) == bands
    assert {f"{b}_err" for b in bands} < set(read.frame)
    assert list(read.ignored) == ["id"]
    assert len(read.frame) == 10_225
    for one, count, limit in (("u", 714, 26.62), ("g", 2, 28.32)):
        name = f"mag_{one}_lsst"
        assert read.frame[name].isna().sum() == count
        assert read.frame[f"{name}_lim"].notna().sum() == count
        said = (
            f"99 in {count} cells was read as 'not detected', and its error was read as the limit "
        )
        assert any(f"{name!r}: {said}({limit})" in note for note in read.notes)
    assert read.frame[[f"mag_{b}_lsst" for b in "rizy"]].notna().all(axis=None)


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
