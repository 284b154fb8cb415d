"""A framework as an OSCAL catalog: its groups and controls, with their texts."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import BindParameter, and_, bindparam, select

from normata.core.db.transaction import Transaction
from normata.errors import NotFound
from normata.frameworks.model import Control, Framework, FrameworkAdoption
from normata.frameworks.visibility import visible_to
from normata.oscal.names import (
    Document,
    catalog_uuid,
    control_names,
    left_out,
    line,
    metadata,
    prop,
    uuid_of,
    without_empty,
)

CATEGORY = "CATEGORY"


@dataclass(frozen=True)
class FrameworkContent:
    """A framework and all its controls in catalog order, as rows."""

    framework: Any
    controls: Sequence[Any]

    @property
    def modified(self) -> str:
        """When the framework or one of its controls was last changed."""
        return str(max(row.updated_at for row in (self.framework, *self.controls)))

    def names(self) -> dict[str, str]:
        """The ids of the controls in the catalog, by the ids of the controls."""
        return control_names(self.framework.id, self.controls)

    def present(self) -> Document:
        """The document."""
        framework, catalog = self.framework, _Catalog(self)
        creator = line(framework.created_by) if framework.organization_id is None else ""
        party = uuid_of("creator", creator)
        return {
            "catalog": without_empty(
                {
                    "uuid": catalog_uuid(framework.id),
                    "metadata": metadata(
                        framework.name,
                        framework.version,
                        self.modified,
                        [prop("id", line(framework.id)), *_LEFT_OUT],
                        published=framework.published_at,
                        document_ids=[{"identifier": line(framework.identifier) or line(framework.id)}],
                        roles=creator and [{"id": "creator", "title": "Publisher"}],
                        parties=creator and [{"uuid": party, "type": "organization", "name": creator}],
                        responsible_parties=creator and [{"role-id": "creator", "party-uuids": [party]}],
                        remarks=framework.description,
                    ),
                    **catalog.content(),
                }
            )
        }


_LEFT_OUT = (
    left_out("matches", "A catalog of OSCAL has no relations to the controls of other catalogs."),
    left_out("baselines", "A catalog of OSCAL has no selections of its controls: they are profiles."),
)


def read_framework(transaction: Transaction, organization_id: str, framework_id: str) -> FrameworkContent:
    """A framework with its controls, in two statements. Raises NotFound unless the organization can see it."""
    framework = find_framework(transaction, organization_id, framework_id)
    return FrameworkContent(framework, transaction.rows(_CONTROLS, {"framework": framework_id}))


def find_framework(transaction: Transaction, organization_id: str, framework_id: str) -> Any:
    """The row of a framework. Raises NotFound unless the organization can see it."""
    framework = transaction.row(_FRAMEWORK, {"organization": organization_id, "framework": framework_id})
    if framework is None:
        raise NotFound
    return framework


class _Catalog:
    """The tree of a catalog.

    In OSCAL a group has either groups or controls, and a control has controls only. So a category is a group where all
    beside it are categories, and all above it are groups. Elsewhere it is a control that says that it is a category.
    """

    def __init__(self, content: FrameworkContent) -> None:
        self._names = content.names()
        self._below: dict[str | None, list[Any]] = defaultdict(list)
        for control in content.controls:
            self._below[control.parent_id].append(control)

    def content(self) -> Document:
        """The groups and controls of the whole."""
        whole: Document = {}
        # Without recursion, because a framework may be nested deeply.
        waiting = [(whole, self._below[None], True)]
        while waiting:
            above, rows, may_group = waiting.pop()
            kinds = [row.type == CATEGORY for row in rows]
            # At the top both may be, and groups come first; below, only one of them.
            in_order = kinds == sorted(kinds, reverse=True) if above is whole else all(kinds)
            for row, is_category in zip(rows, kinds, strict=True):
                is_group = is_category and may_group and in_order
                node = self._node(row, is_group=is_group)
                above.setdefault("groups" if is_group else "controls", []).append(node)
                waiting.append((node, self._below.get(row.id, []), is_group))
        return whole

    def _node(self, row: Any, *, is_group: bool) -> Document:
        name = self._names[row.id]
        return without_empty(
            {
                "id": name,
                "title": line(row.name) or line(row.identifier) or name,
                "props": [*_properties(row, is_group=is_group)],
                "parts": [*_parts(row, name)],
            }
        )


def _properties(row: Any, *, is_group: bool) -> Iterator[Document]:
    if identifier := line(row.identifier):
        yield {"name": "label", "value": identifier}
    yield prop("id", line(row.id))
    if row.type == CATEGORY and not is_group:
        yield prop("type", CATEGORY)
    if row.is_mandatory:
        yield prop("mandatory", "true")
    if row.is_decomposed:
        yield prop("decomposed", "true", "What is below it makes up all of it, so that it requires nothing of its own.")


def _parts(row: Any, name: str) -> Iterator[Document]:
    for part, ending, prose in (("statement", "smt", row.description), ("guidance", "gdn", row.purpose)):
        if prose:
            yield {"id": f"{name}_{ending}", "name": part, "prose": prose}


_ORGANIZATION: BindParameter[str] = bindparam("organization")
_OF_FRAMEWORK: BindParameter[str] = bindparam("framework")
_FRAMEWORK = (
    select(
        Framework.id,
        Framework.organization_id,
        Framework.identifier,
        Framework.version,
        Framework.name,
        Framework.description,
        Framework.published_at,
        Framework.created_by,
        Framework.updated_at,
    )
    .outerjoin(
        FrameworkAdoption,
        and_(FrameworkAdoption.framework_id == Framework.id, FrameworkAdoption.organization_id == _ORGANIZATION),
    )
    .where(Framework.id == _OF_FRAMEWORK, visible_to(_ORGANIZATION))
)
_CONTROLS = (
    select(
        Control.id,
        Control.parent_id,
        Control.identifier,
        Control.name,
        Control.purpose,
        Control.description,
        Control.type,
        Control.is_mandatory,
        Control.is_decomposed,
        Control.updated_at,
    )
    .where(Control.framework_id == _OF_FRAMEWORK)
    .order_by(Control.position, Control.id)
)
