"""Columns that hold errors of other columns, by the conventions of their headers.

SDSS: `err_u`, `modelMagErr_u`; VizieR: `e_umag`; Rubin, RAIL and DES: `u_psfFluxErr`,
`mag_err_u_lsst`, `MAGERR_AUTO_G`; HSC: `g_cmodel_magsigma`; Gaia: `parallax_error`; NASA Exoplanet
Archive: `pl_radeerr1`; elsewhere: `u_sd`, `u_stderr`, `u (std. dev.)`, `error of u`, `± u`. A
header is one of errors if the rest of it is the header of another column; `u_x` is none, although
metrologists write it. Variances are in `variance_columns`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache

from scant.tables.headers import CACHED, bare, key, unit
from scant.tables.limits import BESIDE, is_limit, limit_base
from scant.tables.schema import ColumnPreview, TableSchema
from scant.tables.variance_columns import is_inverse, variance_base

_SIDE = r"(?:1|2|lo|low|lower|hi|high|up|upper|plus|minus|pos|neg|p|m)?"  # asymmetric errors
_ERROR = (
    rf"(?:1|one)?(?:(?:standard|std|st)?(?:err|errors?){_SIDE}|(?:standard|std|st)dev(?:iation)?|"
    r"stdv|std|sd|se|sem|sigma|sig|unc(?:ert(?:ainty|ainties)?)?)(?:of|in|on)?"
)
_ALONE = re.compile(_ERROR)
_END = re.compile(  # "umagerr"
    rf"(.+?)(?:stderr|stddev|stdev|(?:err|errors?){_SIDE}|sigma|unc|sig(?:com)?)"
)
_BEGIN = re.compile(r"(?:stderr|stddev|stdev|err|error|sigma)(.+)")  # "sigmau"
_SIGNS = re.compile(r"±|\+/-|\+-|σ")
_WORDS = 3  # at most in "standard error of"


def error_base(name: str, by_key: Mapping[str, str]) -> str | None:
    """Column whose error `name` holds, by its header: `err_u`, `u_error`, `modelMagErr_u`.

    Args:
        name: A header.
        by_key: Headers by `headers.key`.
    """
    parts = _parts(name)
    if parts and parts[0] == "e" and (base := by_key.get("".join(parts[1:]))):
        return base
    for i, word in enumerate(parts):
        for j in range(i + 1, min(i + _WORDS, len(parts)) + 1):
            rest = "".join(parts[:i] + parts[j:])
            if rest in by_key and _ALONE.fullmatch("".join(parts[i:j])):
                return by_key[rest]
        for glued in (_END, _BEGIN):
            if match := glued.fullmatch(word):
                base = by_key.get("".join([*parts[:i], match[1], *parts[i + 1 :]]))
                if base is not None:
                    return base
    return None


def error_bases(names: Sequence[str]) -> dict[str, str]:
    """Headers of errors, each with the header of the column whose errors they are."""
    by_key = _by_key(names)
    bases = {n: error_base(n, by_key) for n in names}
    return {n: base for n, base in bases.items() if base not in (None, n)}  # type: ignore[misc]


def _by_key(names: Sequence[str]) -> dict[str, str]:
    """Headers by `key`, with units and without; those of "u (error)" with them only."""
    unsigned = [n for n in names if not _SIGNS.search(n)]
    plain = {key(bare(n)): n for n in unsigned if not _ALONE.fullmatch(key(unit(n)) or "-")}
    return {key(n): n for n in unsigned} | plain


@lru_cache(CACHED)
def _parts(name: str) -> tuple[str, ...]:
    """Words of a header in lower case, without its unit unless that says that it holds errors."""
    signed = _SIGNS.sub(" sigma ", name)
    word = unit(signed)
    text = f"{bare(signed)} {word}" if _ALONE.fullmatch(key(word) or "-") else bare(signed)
    return tuple(w for w in re.split(r"[_\s.,()\[\]\-]+", text.lower()) if w)


@lru_cache(CACHED)
def says_error(name: str) -> bool:
    """Return True if the header denotes errors of another quantity."""
    parts = _parts(name)
    if parts[:1] == ("e",):
        return len(parts) > 1
    return len(name) > 1 and any(_ALONE.fullmatch(p) or _END.fullmatch(p) for p in parts)


def match_errors(
    mapping: dict[str, str], schema: TableSchema, columns: Mapping[str, ColumnPreview]
) -> None:
    """Map columns of errors and limits of other columns.

    They match by the rest of their header or, if that is no column ("modelMagErr_u" and
    "dered_u"), by a band with a single column. Errors of the target are left out, and all errors
    if the study has no use for them.
    """
    own = {c.name for c in schema.columns}
    features = [n for n, to in mapping.items() if to and to not in own]
    by_key = _by_key(list(mapping))
    for column in schema.columns:  # "zErr" beside "redshift"
        header = next((n for n, to in mapping.items() if to == column.name), None)
        if column.target and header is not None:
            by_key = dict.fromkeys(map(key, (column.name, *column.aliases)), header) | by_key
    bases = {n: base for n in features if (base := error_base(n, by_key)) not in (None, n)}
    if not schema.errors:
        mapping |= {n: "" for n in bases if mapping[n] == n and _may_be_errors(columns.get(n))}
        return
    first: dict[str, str] = {}  # asymmetric errors have two columns: that of positive numbers
    for name in sorted(bases, key=lambda n: n in columns and (columns[n].minimum or 0) < 0):
        first.setdefault(bases[name], name)
    mapping |= {
        n: f"{mapping[b]}_err" if first[b] == n else "" for n, b in bases.items() if b in features
    }
    of_target = [n for n, b in bases.items() if mapping[b] in own]
    unmatched = [n for n in features if mapping[n] == n and says_error(n)]
    matches = _by_band(unmatched, mapping, features, "_err", schema)
    if set(matches) - set(of_target):  # else it is the error of a redshift, and not of a band
        mapping |= matches
    mapping |= {n: "" for n in of_target if mapping[n] == n}
    variances = {n: b for n in features if mapping[n] == n and (b := variance_base(n, by_key))}
    for name, base in variances.items():
        role = f"{mapping[base]}_err" if base in features else ""
        mapping[name] = "" if role in mapping.values() else role
    unmatched = [
        n for n in features if mapping[n] == n and limit_base(n, by_key) != n and is_limit(n)
    ]
    limited = {n: base for n in unmatched if (base := limit_base(n, by_key)) in features}
    matches = {n: f"{mapping[base]}_lim" for n, base in limited.items()}
    matches |= _by_band(
        [n for n in unmatched if n not in matches], mapping, features, "_lim", schema
    )
    errors = set(mapping.values())
    mapping |= {n: to for n, to in matches.items() if f"{to[:-4]}_err" in errors}


def _may_be_errors(column: ColumnPreview | None) -> bool:
    """Return True unless the cells are known and are text, or numbers of both signs."""
    if column is None or column.kind == "empty":
        return True
    return column.kind == "number" and not (column.minimum or 0) < 0 < (column.maximum or 0)


def _by_band(
    unmatched: Sequence[str],
    mapping: Mapping[str, str],
    features: Sequence[str],
    end: str,
    schema: TableSchema,
) -> dict[str, str]:
    """Names for columns of errors or limits that are the only ones of their band."""
    if schema.band is None:
        return {}
    taken, made = set(mapping.values()), dict[str, str]()
    plain = [n for n in features if mapping[n] == n or not mapping[n].endswith(BESIDE)]
    plain = [n for n in plain if not says_error(n) and not is_limit(n)]
    for name in unmatched:
        band = schema.band(name)
        same = [mapping[n] for n in plain if band and schema.band(n) == band]
        unique = [n for n in unmatched if schema.band(n) == band] == [name]
        if unique and len(same) == 1 and f"{same[0]}{end}" not in taken:
            made[name] = f"{same[0]}{end}"
    return made


def roles(
    mapping: Mapping[str, str], schema: TableSchema, columns: Mapping[str, ColumnPreview]
) -> dict[str, str]:
    """Roles of columns of errors once the target is chosen.

    Errors of the target are those of y if the study has a column for them, and else left out;
    errors of inputs are left out if the study has no use for them.

    Args:
        mapping: Roles of all columns, with the target.
        schema: Schema of the study.
        columns: Previews by header.
    """
    own = {c.name for c in schema.columns}
    made: dict[str, str] = {}
    for name, base in error_bases(list(mapping)).items():
        to, of = mapping[name], mapping[base]
        if to not in (name, f"{base}_err") or to in own or not _may_be_errors(columns.get(name)):
            continue  # left out, or the error of another by its band
        beside = f"{of}_err"
        if of in schema.targets:
            free = beside in own and beside not in {*mapping.values(), *made.values()}
            made[name] = beside if free else ""
        elif not schema.errors:
            made[name] = ""
    return made


def uses(mapping: Mapping[str, str], schema: TableSchema) -> dict[str, dict[str, str]]:
    """How columns of errors are used, or why they are not.

    Args:
        mapping: Roles of all columns.
        schema: Schema of the study.

    Returns:
        Ends of sentences on a file; for each the headers of errors, with those of the columns whose
        errors they are.
    """
    headers = {to: n for n, to in mapping.items() if to}
    by_key = _by_key(list(mapping))
    used = {
        n: headers[to[:-4]]
        for n, to in mapping.items()
        if n != to and to.endswith("_err") and to[:-4] in headers
        if schema.errors or to[:-4] in schema.targets
    }
    unused = {n: b for n, b in error_bases(list(mapping)).items() if not mapping[n] and mapping[b]}
    of_target = {n: b for n, b in unused.items() if mapping[b] in schema.targets}
    of_inputs = {n: b for n, b in unused.items() if n not in of_target}
    again = {n: b for n, b in of_inputs.items() if f"{mapping[b]}_err" in headers}
    variances = {n: b for n in mapping if (b := variance_base(n, by_key)) is not None}
    roots = {n: b for n, b in variances.items() if mapping[n] and n in used}
    out = {n: b for n, b in variances.items() if schema.errors and not mapping[n]}
    return {
        "read as errors": {n: b for n, b in used.items() if n not in roots},
        "read as errors, by the square root of variances": {
            n: b for n, b in roots.items() if not is_inverse(n, b)
        },
        "read as errors, by 1 over the square root of inverse variances": {
            n: b for n, b in roots.items() if is_inverse(n, b)
        },
        "left out, because these are errors of the target": of_target,
        "left out, because this study does not use errors of inputs": (
            {} if schema.errors else of_inputs
        ),
        "left out, because another column has errors of the same feature": again
        if schema.errors
        else {},
        "left out, because these are variances of the target, or of features whose errors another "
        "column has": out,
    }
