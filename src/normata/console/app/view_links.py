"""Where saved views lead: the list that each is of, with its state in the address."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from normata.console.app.api_calls import Query
from normata.console.app.sections import PLACES

_MOST = 12  # in the sidebar: the page of all has the others
PARAMETER = "view"  # of an address: the view that is open
# The lists that have views, each with its place in the sidebar.
LIST_PLACES = {place.key: place for place in PLACES if place.key == "controls" or place.is_kind}


def steps_of(kind: str) -> tuple[str, ...]:
    """The steps of the path to a list, after the organization."""
    return LIST_PLACES[kind].steps


def query_of(view: Mapping[str, Any]) -> Query:
    """The query of the list's address, with the state of a view."""
    state = {name: values for name, values in view["query"].items() if name != PARAMETER}
    return {**state, PARAMETER: view["id"]}


def sidebar_links(
    views: Sequence[Mapping[str, Any]], path: Callable[..., str], here: str, opened: str | None
) -> list[tuple[str, str, str, bool]]:
    """The saved views in the sidebar: name, path, icon, and whether one is there. ``path`` makes a path of steps."""
    known = [view for view in views if view["kind"] in LIST_PLACES]
    links = [(view, path(*steps_of(view["kind"]), query=query_of(view))) for view in known[:_MOST]]
    return [
        (
            view["name"],
            address,
            LIST_PLACES[view["kind"]].icon,
            view["id"] == opened and here == address.partition("?")[0],
        )
        for view, address in links
    ]
