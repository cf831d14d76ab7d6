"""What both houses know of a study: its settings, the table it takes, what its arrays mean.

Light on purpose (no torch): the server reads it to build forms, check uploads and label plots; the
worker reads it to validate. `STUDIES` lists the entries; `entry(name)` imports one.
"""

from importlib import import_module

from scant.errors import NotFound
from scant.studies.aliases import current_study
from scant.studies.base import ArraySpec, Citation, Entry, Settings, Source

__all__ = ["STUDIES", "ArraySpec", "Citation", "Entry", "Settings", "Source", "entry"]

# In the order of the gallery. A page is added by one file here, one in studies/, one in pages/.
STUDIES: tuple[str, ...] = (
    "aggregation",
    "redshift",
    "genes",
    "omniglot",
    "mitosis",
    "multiview",
    "clamp",
)


def entry(name: str) -> Entry:
    """The entry of a study, by its name or a former one.

    Raises:
        NotFound: There is no study of that name.
    """
    name = current_study(name)
    if name not in STUDIES:
        raise NotFound(f"There is no study {name!r}; the studies are {', '.join(STUDIES)}.")
    result: Entry = import_module(f"scant.studies.{name}.entry").ENTRY
    return result
