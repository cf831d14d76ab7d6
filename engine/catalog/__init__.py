"""What both houses know of a study: its settings, the table it takes, what its arrays mean.

Light on purpose (no torch): the server reads it to build forms, check uploads and label plots; the
worker reads it to validate. `STUDIES` lists the entries; `entry(name)` imports one.
"""

from importlib import import_module

from engine.catalog.entry import ArraySpec, Citation, Entry, Settings, Source
from engine.errors import NotFound

__all__ = ["STUDIES", "ArraySpec", "Citation", "Entry", "Settings", "Source", "entry"]

# In the order of the gallery. A page is added by one file here, one in studies/, one in pages/.
STUDIES: tuple[str, ...] = (
    "aggregation",
    "redshift",
    "genes",
    "omniglot",
    "mitosis",
    "events",
    "clamp",
)


def entry(name: str) -> Entry:
    """The catalog entry of a study.

    Raises:
        NotFound: There is no study of that name.
    """
    if name not in STUDIES:
        raise NotFound(f"There is no study {name!r}; the studies are {', '.join(STUDIES)}.")
    found: Entry = import_module(f"engine.catalog.{name}").ENTRY
    return found
