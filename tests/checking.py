"""The type checker that watches the engine in tests; as in Python, an int will do for a float."""

from beartype import BeartypeConf, beartype

checked = beartype(conf=BeartypeConf(is_pep484_tower=True))
