"""Published files as documents, which import formats read as bytes, as text, or as JSON or YAML.

The values of JSON or YAML have a limited size, and consist of objects, lists, text, true, false and null. Numbers
remain text.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from json import JSONDecodeError
from typing import Any, NamedTuple, TypeAlias

from normata.catalogs.matches import Relation
from normata.catalogs.profiles import Profile
from normata.core.changes.source import Fault, Row
from normata.core.documents import yaml_text
from normata.core.documents.files import Unreadable, as_text
from normata.core.documents.json_text import Flaw, Rules, StrictDecoder, flaws

# Far more than any published file has: bytes of the file, and characters after references (YAML's aliases, OSCAL's
# parameters) are expanded.
MAX_CHARACTERS = 64 * 2**20
_MAX_VALUES = 2_000_000
_DEEPEST = 100

# Null characters and halves of surrogate pairs, which JSON can escape: no database can store the former, and no
# encoding represent the latter. Texts can contain them only as escapes.
_ESCAPED = re.compile(r"\\(?:0|x00|[uU]0000|u[dD])")
_RULES = Rules(_DEEPEST, 0, re.compile("[\x00\ud800-\udfff]"), "must not hold NUL or half of a surrogate pair")


class _Parsed(NamedTuple):
    """The values of a text, their faults, and whether it is JSON."""

    values: object
    flaws: list[Flaw]
    is_json: bool


class Document:
    """One file, or the body of a request.

    ``name`` is the name of its framework if the format has none. ``identity`` is the publisher's identifier of the
    whole document, or else the file's name. ``format`` is null until it is recognized. ``left_out`` counts the parts
    that Normata does not import, by their names in the plural. ``profiles`` has its selections of catalogs, which are
    looked for once all documents are read.
    """

    def __init__(self, file: str, name: str, content: bytes) -> None:
        self.file = file
        self.name = name
        self.identity = file
        self.format: ImportFormat | None = None
        self.content = content
        self.left_out: Counter[str] = Counter()
        self.profiles: list[Profile] = []
        self._parsed: _Parsed | Unreadable | None = None

    @property
    def text(self) -> str:
        """The text in UTF-8. Raises Unreadable."""
        return as_text(self.content)

    @property
    def values(self) -> Mapping[str, object]:
        """The values of JSON or YAML; empty if these are not an object. Raises Unreadable."""
        found = self._parse().values
        return found if isinstance(found, dict) else {}

    @property
    def flaws(self) -> list[Flaw]:
        """The faults of values that are valid JSON or YAML; none before ``values`` was used."""
        return self._parsed.flaws if isinstance(self._parsed, _Parsed) else []

    @property
    def is_json(self) -> bool:
        """Whether the values are those of JSON, and not of YAML, which may begin with a bracket, too."""
        return isinstance(self._parsed, _Parsed) and self._parsed.is_json

    def member(self, name: str) -> Mapping[str, object]:
        """The object of this name among the values; empty if there is none. Raises Unreadable."""
        value = self.values.get(name)
        return value if isinstance(value, dict) else {}

    def _parse(self) -> _Parsed:
        if self._parsed is None:
            try:
                self._parsed = _parsed(self.text)
            except Unreadable as error:
                self._parsed = error
        if isinstance(self._parsed, Unreadable):
            raise self._parsed
        return self._parsed


def _parsed(text: str) -> _Parsed:
    """The values of the text, and their faults. Raises Unreadable."""
    if not text.lstrip().startswith(("{", "[")):
        return _yaml(text)
    try:
        return _json(text)
    except JSONDecodeError as error:
        try:  # YAML may begin with a bracket, too
            return _yaml(text)
        except Unreadable:
            reason = f"line {error.lineno}, column {error.colno}: {error.msg}"
            raise Unreadable(f"is neither JSON nor YAML: {reason}") from error


def _yaml(text: str) -> _Parsed:
    try:
        value, found = yaml_text.load(text, yaml_text.Limits(_DEEPEST, _MAX_VALUES, MAX_CHARACTERS))
    except yaml_text.YamlError as error:
        raise Unreadable(f"is neither JSON nor YAML: {error}") from error
    return _Parsed(value, [*found, *(flaws(value, _RULES) if _ESCAPED.search(text) else [])], is_json=False)


def _json(text: str) -> _Parsed:
    if _json_values(text) > _MAX_VALUES:
        raise Unreadable(f"holds more than {_MAX_VALUES:,} values")
    try:
        value = StrictDecoder(exact_numbers=True).decode(text)
    except RecursionError as error:
        raise Unreadable(f"is nested deeper than {_DEEPEST} levels") from error
    return _Parsed(value, flaws(value, _RULES), is_json=True)


_STRING_OR_VALUE = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|[,\[{]', re.DOTALL)


def _json_values(text: str) -> int:
    """An upper bound of the number of values: one before each comma, and the last one of each array and object."""
    count = sum(map(text.count, ",[{"))
    if count > _MAX_VALUES:  # commas in texts are counted as well, because telling them apart takes longer
        count = sum(found[0][0] != '"' for found in _STRING_OR_VALUE.finditer(text))
    return count


Reader: TypeAlias = Callable[[Document, Sequence[Document], list[Fault]], tuple[list[Row], list[Relation]]]


@dataclass(frozen=True, slots=True)
class MediaType:
    """A media type of request bodies, with its schema for OpenAPI, and the endings of the names of such files."""

    name: str
    schema: Mapping[str, Any] = field(compare=False)
    endings: tuple[str, ...] = ()


JSON = MediaType("application/json", {"type": "object"}, (".json",))
YAML = MediaType("application/yaml", {"type": "object"}, (".yaml", ".yml"))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ImportFormat:
    """A format of catalogs or mappings.

    ``name`` is its name in messages, the OpenAPI document and the docs. ``recognizes`` checks a document's content and
    may raise Unreadable, which counts as no. ``identity`` finds the publisher's identifier of the whole document.
    ``read`` gets the document, all documents of the import, and a list to which it adds faults; it returns rows and
    relations, and may raise Unreadable. ``media_types`` are those of request bodies, and ``example`` is the example of
    such a body. A format that ``needs_name`` cannot name its own framework. ``extra`` is the optional extra of Normata
    that reading needs.
    """

    name: str
    recognizes: Callable[[Document], bool]
    read: Reader
    media_types: Sequence[MediaType]
    identity: Callable[[Document], object] = lambda _: None
    example: Any = None
    needs_name: bool = False
    extra: str | None = None
