"""Sentences of the pages in the visitor's language, from gettext catalogs; numbers by locale.

A page calls `tr("{inside:,} of {rows:,} lie within.", inside=…, rows=…)`. The English text is the
key of the catalogs, `locale/<language>.po`; a sentence that a catalog lacks stays English.
"""

from __future__ import annotations

import gettext
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import datetime
from functools import cache
from importlib.resources import files
from io import BytesIO
from numbers import Number
from string import Formatter
from typing import Any
from weakref import WeakKeyDictionary

import panel as pn
from babel import Locale
from babel.dates import format_datetime
from babel.messages.catalog import Catalog
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po
from babel.numbers import get_decimal_symbol, get_group_symbol
from bokeh.document import Document

ENGLISH = "en"
LANGUAGES = {ENGLISH: "English", "de": "Deutsch"}
COOKIE = "scant_language"

_spoken: WeakKeyDictionary[Document, str] = WeakKeyDictionary()
_outside: ContextVar[str | None] = ContextVar("language", default=None)


def speak(doc: Document, language: str) -> None:
    """Set the language of a browser session."""
    _spoken[doc] = language


def spoken() -> str:
    """Return the language of the session whose document is current; English outside sessions."""
    if (language := _outside.get()) is not None:
        return language
    doc = pn.state.curdoc
    return _spoken.get(doc, ENGLISH) if doc is not None else ENGLISH


def speak_here(language: str) -> None:
    """Set the language of the current task, such as a request without a session."""
    _outside.set(language)


@contextmanager
def speaking(language: str) -> Iterator[None]:
    """Set the language of what is written without a session, such as a phone's page."""
    token = _outside.set(language)
    try:
        yield
    finally:
        _outside.reset(token)


def chosen(query: Mapping[str, str], cookie: str) -> str:
    """Return the language that a visitor has chosen, by `lang` in the address or before."""
    return next((name for name in (query.get("lang", ""), cookie) if name in LANGUAGES), ENGLISH)


def tr(message: str, /, **values: Any) -> str:
    """Translate a sentence into the session's language, and insert values.

    Args:
        message: The English sentence, with fields as of `str.format`; a literal, so that the
            catalogs' tools find it.
        values: The fields' values; numbers are written as the language writes them.
    """
    language = spoken()
    own = _catalog(language).gettext(message) if message else ""  # "" is the catalog's header
    return _written(own, language, values)


def ntr(singular: str, plural: str, n: int, /, **values: Any) -> str:
    """Translate a sentence that depends on a number, which is also its field `n`; see `tr`."""
    language = spoken()
    return _written(_catalog(language).ngettext(singular, plural, n), language, {"n": n, **values})


def enumerated(items: Sequence[str]) -> str:
    """Join items as "a, b and c"."""
    if len(items) < 2:
        return "".join(items)
    return tr("{items} and {last}", items=", ".join(items[:-1]), last=items[-1])


def as_number(text: str) -> str:
    """Write a formatted number with the language's separators and percent sign."""
    formatter = _formatter(spoken())
    return formatter.localized(text) if isinstance(formatter, LocaleFormatter) else text


def moment(timestamp: float) -> str:
    """Write a date with its time, in seconds since 1970, in the server's time zone."""
    return _dated(timestamp, tr("dd MMM yyyy, HH:mm:ss"))


def day(timestamp: float) -> str:
    """Write a date, in seconds since 1970, in the server's time zone."""
    return _dated(timestamp, tr("dd MMMM yyyy"))


def _dated(timestamp: float, form: str) -> str:
    local = datetime.fromtimestamp(timestamp).astimezone()
    return format_datetime(local, form, locale=spoken())


def later(message: str) -> str:
    """Mark a text for the catalogs that is translated where it is shown, such as a title."""
    return message


def _written(message: str, language: str, values: Mapping[str, Any]) -> str:
    return _formatter(language).vformat(message, (), values) if values else message


@cache
def for_scripts(language: str) -> str:
    """Return a language's translations of the scripts' sentences as JSON, for `assets/words.js`."""
    pairs = {
        message.id if isinstance(message.id, str) else message.id[0]: message.string
        for message in catalog_of(language)
        if any(file.endswith(".js") for file, _ in message.locations)
    }
    return json.dumps(pairs, ensure_ascii=False).replace("<", "\\u003c")


@cache
def catalog_of(language: str) -> Catalog:
    """Return a language's catalog."""
    if language == ENGLISH:
        return Catalog()
    source = files(__package__).joinpath("locale", f"{language}.po")
    with source.open("rb") as file:
        return read_po(file, locale=language)


@cache
def _catalog(language: str) -> gettext.NullTranslations:
    """Compile a language's catalog, in memory, so that there is one file of each to keep."""
    if language == ENGLISH:
        return gettext.NullTranslations()
    compiled = BytesIO()
    write_mo(compiled, catalog_of(language))
    compiled.seek(0)
    return gettext.GNUTranslations(compiled)


@cache
def _formatter(language: str) -> Formatter:
    return Formatter() if language == ENGLISH else LocaleFormatter(language)


class LocaleFormatter(Formatter):
    """Formats numbers with a language's separators and percent sign."""

    def __init__(self, language: str) -> None:
        locale = Locale.parse(language)
        self._separators = str.maketrans(
            {
                ".": get_decimal_symbol(locale),
                ",": get_group_symbol(locale),
                "%": locale.percent_formats[None].suffix[0],
            }
        )

    def format_field(self, value: Any, format_spec: str) -> str:
        """Format one value, as `format` does."""
        text = str(format(value, format_spec))
        return self.localized(text) if isinstance(value, Number) else text

    def localized(self, number: str) -> str:
        """Replace the separators of a formatted number, and write its percent sign."""
        return number.translate(self._separators)
