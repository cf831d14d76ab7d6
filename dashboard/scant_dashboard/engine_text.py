"""Sentences that the engine has written, in the visitor's language.

The engine writes finished English sentences: errors, notes, verdicts, reasons of an end. They come
as text, from workers, stored runs and recordings. The catalogs have their templates, which
`scripts/catalog.py` collects from the engine's f-strings; a sentence is translated by the template
that it matches.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from operator import itemgetter
from string import Formatter

from scant_dashboard.translate import ENGLISH, as_number, catalog_of, spoken

MARKS = (" (", ", ", "; ")  # begin phrases that the engine appends to others
# Bounds of the work on a sentence, which may hold a visitor's text.
LONGEST = 2000  # characters
MOST_PHRASES = 150  # phrases within phrases
NUMBER = re.compile(r"[+-]?(\d[\d,]*(\.\d+)?(e[+-]\d+)?|inf|nan)(%| (s|min|h|MB|GB))?")
SEPARATORS = str.maketrans("", "", ".,")
COMMON = re.compile(
    r"\b(an?|and|are|as|at|be|by|for|from|has|have|in|is|its?|may|more|no|not|of|on|or|than|that|the|"
    r"this|to|was|were|which|with)\b"
)
ENGINE = "engine/"  # the locations of the engine's sentences in the catalogs begin with it


@dataclass(frozen=True)
class Template:
    """A sentence with fields, and its translation.

    Attributes:
        literals: Text before, between and after the fields.
        fields: Names of the fields.
        formatted: Whether each field is a formatted number.
        translation: The translation, with fields of these names.
    """

    literals: tuple[str, ...]
    fields: tuple[str, ...]
    formatted: tuple[bool, ...]
    translation: str

    @classmethod
    def parse(cls, english: str, translation: str) -> Template:
        """Split a template as of `str.format`."""
        literals, fields, formatted = [""], [], []
        for literal, field, spec, _ in Formatter().parse(english):
            literals[-1] += literal
            if field is not None:
                literals.append("")
                fields.append(field)
                formatted.append(bool(spec))
        return cls(tuple(literals), tuple(fields), tuple(formatted), translation)

    @property
    def length(self) -> int:
        """Number of characters besides the fields."""
        return sum(map(len, self.literals))

    def match(self, text: str) -> list[str] | None:
        """Return the fields' values in a sentence; None if it does not match.

        Each literal is found at its first place, without backtracking, in linear time.
        """
        first, *others, last = self.literals
        end = len(text) - len(last)
        if end < len(first) or not (text.startswith(first) and text.endswith(last)):
            return None
        values, start = [], len(first)
        for literal in others:
            at = text.find(literal, start, end)
            if at < 0:
                return None
            values.append(text[start:at])
            start = at + len(literal)
        values.append(text[start:end])
        fits = all(NUMBER.fullmatch(v) for v, number in zip(values, self.formatted) if number)
        return values if fits else None


def translated(text: str) -> str:
    """Translate a sentence of the engine into the session's language; unchanged if unknown.

    Values that are phrases of the engine are translated, too, and numbers written as the language
    writes them.
    """
    if spoken() == ENGLISH:
        return text
    translation, _ = _Search(*_sentences_and_templates(spoken())).best(text)
    only_numbers = translation.translate(SEPARATORS) == text.translate(SEPARATORS)
    return text if only_numbers else translation  # numbers may be those of a translated text


class _Search:
    """Search for the translation of a sentence that leaves the fewest English words."""

    def __init__(self, sentences: Mapping[str, str], templates: Sequence[Template]) -> None:
        self._sentences, self._templates = sentences, templates
        self._results: dict[str, tuple[str, int]] = {}

    def best(self, text: str) -> tuple[str, int]:
        """Return the translation of a phrase, and the number of common English words left in it."""
        if NUMBER.fullmatch(text):
            return as_number(text), 0
        if text not in self._results:
            words = len(COMMON.findall(text))
            self._results[text] = text, words
            if len(self._results) <= MOST_PHRASES and len(text) <= LONGEST:
                result = min(self._translations(text), key=itemgetter(1), default=(text, words))
                if 2 * result[1] <= words:  # else the template is of another sentence
                    self._results[text] = result
        return self._results[text]

    def _translations(self, text: str) -> Iterator[tuple[str, int]]:
        if text in self._sentences:
            yield self._sentences[text], 0
            return
        for template in self._templates:
            values = template.match(text)
            if values is not None:
                own, left = zip(*map(self._value, values))
                named = dict(zip(template.fields, own))
                yield _Text().vformat(template.translation, (), named), sum(left)
        head, parenthesis, inner = text.rpartition(" (")
        if parenthesis and text.endswith(")"):  # a value with a phrase beside it
            yield self._joined(head, " (", inner[:-1], ")")
        for mark in MARKS:
            head, _, tail = text.rpartition(mark)
            if head:
                yield self._joined(head, "", mark + tail)
                yield self._joined(head, mark, tail)

    def _value(self, text: str) -> tuple[str, int]:
        """Return the translation of a field's value, which may end in a number."""
        translation, left = self.best(text)
        words, space, number = text.rpartition(" ")
        if translation == text and space and NUMBER.fullmatch(number):
            return f"{self.best(words)[0]} {as_number(number)}", left
        return translation, left

    def _joined(self, head: str, mark: str, tail: str, end: str = "") -> tuple[str, int]:
        (first, left), (second, more) = self.best(head), self.best(tail)
        return f"{first}{mark}{second}{end}", left + more


class _Text(Formatter):
    """Inserts values that are formatted already."""

    def format_field(self, value: str, format_spec: str) -> str:
        return value


@cache
def _sentences_and_templates(language: str) -> tuple[dict[str, str], list[Template]]:
    """Return a language's sentences without fields, and its templates, the longest first."""
    sentences, templates = {}, []
    for message in catalog_of(language):
        english, own = message.id, message.string
        if not (isinstance(english, str) and isinstance(own, str) and own):
            continue  # one that depends on a number
        template = Template.parse(english, own)
        of_engine = any(place.startswith(ENGINE) for place, _ in message.locations)
        if template.fields:
            templates += [template] * of_engine
        elif of_engine or english.count(" ") > 1:  # not "step", which is a column's name, too
            sentences[template.literals[0]] = own.format()
    return sentences, sorted(templates, key=lambda template: -template.length)
