"""The commands for frameworks and their coverage: ``adopt``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from normata.cli.shared import DatabaseOption, changed, echo

if TYPE_CHECKING:
    from normata.changes.unit_of_work import UnitOfWork


def adopt(
    organization: Annotated[str, typer.Argument(metavar="ORG", help="The organization, by id or slug.")],
    frameworks: Annotated[
        list[str], typer.Argument(metavar="FRAMEWORK…", help="Frameworks, by id, slug or identifier.")
    ],
    database: DatabaseOption = None,
) -> None:
    """Have an organization adopt frameworks, and compute its coverage anew."""
    from normata.frameworks.adoption import adopt as adopt_frameworks
    from normata.identity.organizations import find

    def work(unit: UnitOfWork) -> dict[str, bool]:
        return adopt_frameworks(unit, find(unit, organization), frameworks)

    for framework_id, is_new in changed(database, work).items():
        echo(f"{framework_id}: {'adopted' if is_new else 'was adopted already'}")
