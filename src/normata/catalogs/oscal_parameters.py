"""The parameters of an OSCAL catalog, written into its prose."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from normata.core.changes.source import Fault, pointer
from normata.core.documents.json_text import MOST_FLAWS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from trestle.oscal import catalog as catalog_model
    from trestle.oscal import common

    _Owner: TypeAlias = catalog_model.Catalog | catalog_model.Group1 | catalog_model.Group2 | catalog_model.Control
    _Parameter: TypeAlias = common.Parameter1 | common.Parameter2

_UNKNOWN = "[Assignment: organization-defined value]"

# Choices that insert choices grow exponentially. Real parameters and texts are much shorter.
_LONGEST_PARAMETER = 5_000
_LONGEST_PROSE = 1_000_000

# Includes the blank that NIST leaves between an insertion and a punctuation mark.
_INSERTION = re.compile(r"\{\{\s*(?:insert:\s*[\w-]+\s*,\s*)?([^\s{},]+)\s*\}\}(?: +(?=[.,;:)]))?")

# The three spellings with which labels of combined parameters in SP 800-53 begin.
_DEFINED = re.compile(r"organization(?:al|ally)?[- ]defined\b")

# A link within the catalog does not work outside of it, so only its text stays.
_INNER_LINK = re.compile(r"\[([^\[\]]*)\]\(#[^()\s]*\)")


@dataclass(frozen=True, slots=True)
class _Form:
    """The form of a parameter: texts, a separator, and an optional frame as a selection or assignment."""

    texts: Sequence[str]
    separator: str = ", "
    opening: str = ""
    is_assignment: bool = False


class Parameters:
    """Writes parameters into prose the way SP 800-53 prints them: ``[Assignment: organization-defined frequency]``.

    If parameters insert each other in a circle, a fault is added to ``faults``.
    """

    def __init__(self, file: str, catalog: catalog_model.Catalog, faults: list[Fault]) -> None:
        self._file = file
        self._faults = faults
        self._by_name: dict[str, tuple[str, _Parameter]] = {}
        self._written: dict[str, str] = {}
        self._circles = 0
        former: dict[str, tuple[str, _Parameter]] = {}
        for place, parameter in _declared(catalog):
            if parameter.id is not None:
                self._by_name.setdefault(parameter.id, (place, parameter))
            for name in _values_of(parameter, "alt-identifier"):
                former.setdefault(name, (place, parameter))
        self._by_name = former | self._by_name

    def written_into(self, prose: str) -> str:
        """The prose with each insertion replaced, and without broken links."""
        for name in _inserted(prose):
            self._write(name)
        return self._replaced(prose, _LONGEST_PROSE)

    def _write(self, name: str) -> None:
        """Compute the text of a parameter, after those of the parameters that it inserts.

        Chains of insertions can be deeper than Python's recursion limit, so this uses a list instead of recursion.
        """
        row: dict[str, Iterator[str]] = {}
        following: str | None = name
        while following is not None or row:
            if following is not None and following not in self._written:
                row[following] = iter(_names_in(self._form(following).texts))
            last = next(reversed(row), None)
            if last is None:
                return
            following = next(row[last], None)
            if following is None:
                self._written[last] = self._text(self._form(last))
                row.popitem()
            elif following in row and following not in self._written:
                self._report_cycle(list(row), following)
                self._written[following] = _UNKNOWN

    def _report_cycle(self, row: list[str], name: str) -> None:
        self._circles += 1
        if self._circles > MOST_FLAWS:
            return
        place, _ = self._by_name[name]
        way = row[row.index(name) + 1 :]
        shown = ", ".join(way[:5]) + (f" and {len(way) - 5:,} more" if len(way) > 5 else "")
        self._faults.append(Fault(self._file, place, f"inserts itself{' by way of ' + shown if way else ''}"))

    def _form(self, name: str) -> _Form:
        """Its values if they are set, else its choices, else its label."""
        if name not in self._by_name:
            return _Form([_UNKNOWN])
        _, parameter = self._by_name[name]
        aggregated = [other for other in _values_of(parameter, "aggregates") if other in self._by_name]
        values = getattr(parameter, "values", None)
        select = getattr(parameter, "select", None)
        if values:
            return _Form([", ".join(values)])
        if select and select.choice:
            several = select.how_many is not None and select.how_many.value == "one-or-more"
            return _Form(select.choice, "; ", f"[Selection{' (one or more)' if several else ''}: ")
        all_set = all(getattr(self._by_name[other][1], "values", None) for other in aggregated)
        if aggregated and (all_set or not parameter.label):
            return _Form([f"{{{{ {other} }}}}" for other in aggregated])
        # SP 800-53 prints the alternative label; the label itself is worded for the assessments of SP 800-53A.
        label = next(iter(_values_of(parameter, "alt-label")), parameter.label)
        return _Form([label or ""], is_assignment=True)

    def _text(self, form: _Form) -> str:
        """The parameter as text, once the parameters that it inserts are written."""
        texts: list[str] = []
        size = 0
        for text in form.texts:
            texts.append(self._replaced(text, _LONGEST_PARAMETER))
            size += len(texts[-1]) + len(form.separator)
            if size > _LONGEST_PARAMETER:
                return _UNKNOWN
        if form.is_assignment:
            label = texts[0]
            prefix = "" if _DEFINED.match(label) else "organization-defined "
            return f"[Assignment: {prefix}{label}]" if label else _UNKNOWN
        if form.opening:
            return f"{form.opening}{form.separator.join(texts)}]"
        return form.separator.join(dict.fromkeys(texts))

    def _replaced(self, prose: str, most: int) -> str:
        """The prose with the texts of its parameters, cut off if it becomes far too long."""
        pieces: list[str] = []
        end = size = 0
        for insertion in _INSERTION.finditer(prose):
            pieces += (prose[end : insertion.start()], self._written[insertion[1]])
            end = insertion.end()
            size += len(pieces[-2]) + len(pieces[-1])
            if size > most:
                break
        else:
            pieces.append(prose[end:])
        return _INNER_LINK.sub(r"\1", "".join(pieces)).strip()


def _declared(catalog: catalog_model.Catalog) -> Iterator[tuple[str, _Parameter]]:
    """All parameters with their places.

    Their ids are unique in the catalog, because prose inserts those of any control.
    """
    within: list[tuple[str, _Owner]] = [("/catalog", catalog)]
    while within:
        place, item = within.pop()
        for index, parameter in enumerate(item.params or ()):
            yield place + pointer("params", index), parameter
        for key in ("groups", "controls"):
            for index, inner in enumerate(getattr(item, key, None) or ()):
                within.append((place + pointer(key, index), inner))


def _values_of(parameter: _Parameter, name: str) -> list[str]:
    return [prop.value for prop in parameter.props or () if prop.name == name]


def _inserted(prose: str) -> Iterator[str]:
    return (insertion[1] for insertion in _INSERTION.finditer(prose))


def _names_in(texts: Iterable[str]) -> list[str]:
    """The parameters that these texts insert, each once."""
    return list(dict.fromkeys(name for text in texts for name in _inserted(text)))
