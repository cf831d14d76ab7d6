"""Column names of survey catalogs, apart from bands.

Surveys: SDSS (CasJobs), LSST/Rubin, DES, HSC, KiDS, Euclid; also VizieR.
"""

from __future__ import annotations

TARGETS = (
    "z_spec", "spec_z", "z_specz", "specz_z", "specz_redshift", "redshift_spec", "z_sp", "redshift",
    "z_true", "z_redshift", "true_redshift", "redshift_true", "spec_obj_z", "z_spec_obj",
)  # fmt: skip

_SKY = (
    r"(\w+_)?(ra|dec|radeg|decdeg|de|dedeg|raj2000|decj2000|dej2000|glon|glat|right_ascension|"
    r"declination|alpha|delta|alphawin|deltawin)(_(deg|degrees|j2000|icrs|sky|err|error|\d+))*"
)
_PHOTOMETRIC = r"(\w+_)?(z_?phot|photo_?z|zph)(_\w+)?|z_b(_min|_max)?|z_ml|z_mc|t_b|odds|bpz_?\w*"
_DOUBTS = r"\w*flags?(_\w+)?|z_?(warn|warning|flag|conf|quality)|zwarn|specz_\w*(flag|conf)\w*"
# LSST `i_extendedness`, HSC `i_extendedness_value`, DES `EXTENDED_CLASS_COADD`: star or galaxy.
_CLASSES = r"(\w+_)?(extended(ness)?|class_star|star_galaxy)(_\w+)?|is_(star|galaxy|extended)"
_OBSERVATIONS = (
    r"run|rerun|cam_?col|field|plate|mjd|fiber|fiber_?id|tile|tract|patch|sky_?version|h_?pix_?\d*|"
    r"healpix(_\d+)?|(\w+_)?(science|spec|detect_is|is)_primary"
)
# Pattern for the words of a name, in lower case, joined by "_": positions, redshift estimates,
# flags, classes of stars and galaxies, and place and time of the observation.
ASIDE = "|".join((_SKY, _PHOTOMETRIC, _DOUBTS, _CLASSES, _OBSERVATIONS))
