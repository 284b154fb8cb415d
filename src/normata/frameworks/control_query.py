"""The parameters of the list of controls."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field
from sqlalchemy import ColumnElement
from typing_extensions import override

from normata.core.schema.paging import PastPageQuery, Search, SortDirection
from normata.frameworks.baselines import BASELINE_FILTER, in_baseline_named
from normata.frameworks.coverage_filter import CoverageFilter


class ControlQuery(PastPageQuery):
    """The query of the list of controls."""

    counts_all: ClassVar[bool] = True

    repeated: ClassVar[tuple[str, ...]] = ("frameworks",)
    bracketed: ClassVar[tuple[str, ...]] = ("frameworks",)

    sort_column: Annotated[
        Literal[
            "identifier",
            "name",
            "slug",
            "type",
            "framework",
            "isMandatory",
            "coverageStatus",
            "effectiveCoverageStatus",
            "createdAt",
            "updatedAt",
        ]
        | None,
        Field(description="What to sort by; unless said, by the framework's identifier and then in catalog order."),
    ] = None
    sort_direction: SortDirection | None = None
    search: Search | None = None
    frameworks: Annotated[
        list[str] | None,
        Field(
            description="Only controls of these adopted frameworks: ids, slugs or identifiers, as a repeated parameter,"
            " as `frameworks[]`, `frameworks[0]`… or separated by commas. What matches nothing selects nothing."
        ),
    ] = None

    baseline: Annotated[str | None, Field(description=BASELINE_FILTER)] = None

    @classmethod
    @override
    def read(cls, pairs: Sequence[tuple[str, str]]) -> Self:
        """The query, with all encodings of the array combined."""
        return super().read([(re.sub(r"\Aframeworks\[\d*\]\Z", "frameworks", name), value) for name, value in pairs])

    @property
    def selected_frameworks(self) -> set[str]:
        """The selected frameworks; empty without a filter. An entry with commas may be one identifier or several."""
        return {
            entry.strip()
            for value in self.frameworks or ()
            for entry in (value, *value.split(","))
            if entry.strip(" ,")
        }

    @property
    def conditions(self) -> Sequence[ColumnElement[bool]]:
        """Further conditions on the controls, their assessments and their effective coverage."""
        return () if self.baseline is None else (in_baseline_named(self.baseline),)

    @property
    def coverage_filter(self) -> CoverageFilter | None:
        """The same as a coverage filter if it concerns only assessments and coverage; else null."""
        return None
