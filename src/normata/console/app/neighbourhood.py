"""The neighbourhood of a control: what covers it, what covers that, and what it covers, according to its proof."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from markupsafe import Markup

from normata.console.app.organization_request import OrganizationRequest
from normata.console.pictures import Node, Tie, neighbourhood
from normata.console.texts import text

_MOST = 8  # controls in a layer; the table of matches lists all


class Row(NamedTuple):
    """A control of the neighbourhood, and its relation to the one in the middle."""

    node: Node
    relation: str


class Neighbourhood(NamedTuple):
    """The picture, and the same content as a table."""

    picture: Markup
    rows: list[Row]


def neighbourhood_of(
    page_request: OrganizationRequest, control: Mapping[str, Any], why: Mapping[str, Any]
) -> Neighbourhood | None:
    """The neighbourhood: two layers that cover the control, and one that it covers. Null if there are none."""
    me = _node(control, control["effectiveCoverageStatus"])
    levels = {(step["control"]["id"]): step for step in why["proof"]}
    near: dict[str, Node] = {}
    far: dict[str, Node] = {}
    ties: list[Tie] = []
    rests_on = _premises(levels.get(me.id))
    for match in control["sourceMatches"][:_MOST]:
        source = match["matchedControl"]
        step = levels.get(source["id"])
        near[source["id"]] = _node(source, step["level"] if step else match.get("level"))
        ties.append(Tie(source["id"], me.id, match["matchLevel"] == "FULL", source["id"] in rests_on))
    for near_id in near:
        for premise in _premises(levels.get(near_id)):
            step = levels.get(premise)
            if step is not None and premise not in near and premise != me.id and len(far) < _MOST:
                far[premise] = _node(step["control"], step["level"])
                is_full = (levels[near_id].get("match") or {}).get("matchLevel") == "FULL"
                ties.append(Tie(premise, near_id, is_full, is_live=near_id in rests_on))
    covered = {}
    for effect in why["effects"]["items"][:_MOST]:
        covered[effect["control"]["id"]] = _node(effect["control"], effect["level"])
        ties.append(Tie(me.id, effect["control"]["id"], effect["level"] == "FULL", is_live=True))
    if not near and not covered:
        return None
    layers = [
        (text("control.around.far"), list(far.values())),
        (text("control.around.near"), list(near.values())),
        (text("control.around.me"), [me]),
        (text("control.around.covered"), list(covered.values())),
    ]
    shown = [(head, nodes) for head, nodes in layers if nodes]
    picture = neighbourhood(
        name=text("control.neighbourhood_of", control=me.label),
        about=text("control.neighbourhood.about", control=me.label, near=len(near), covered=len(covered)),
        heads=[head for head, _ in shown],
        layers=[nodes for _, nodes in shown],
        ties=ties,
        me=me.id,
        href=lambda control_id: page_request.context.prefix + page_request.path("controls", control_id),
    )
    return Neighbourhood(picture, [Row(node, head) for head, nodes in shown for node in nodes if node.id != me.id])


def _premises(step: Mapping[str, Any] | None) -> frozenset[str]:
    return frozenset(one["controlId"] for one in step["premises"]) if step else frozenset()


def _node(control: Mapping[str, Any], level: str | None) -> Node:
    return Node(control["id"], control["identifier"], control["name"], control["framework"]["identifier"], level)
