"""The command ``explain``: the explanation of a control's coverage, as a tree."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from normata.cli import calls
from normata.cli.connection import ServerOption, connected
from normata.cli.coverage import status_words
from normata.cli.past import AsOfOption, about, moment_of
from normata.cli.shared import DatabaseOption
from normata.core.log import visible

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rich.tree import Tree

_WIDEST = 10_000  # columns if the output is no terminal, so that other programs get one line each


def explain(
    organization: Annotated[str, typer.Argument(metavar="ORG", help="The organization, by id or slug.")],
    control: Annotated[str, typer.Argument(metavar="CONTROL", help="The control, by id or identifier.")],
    *,
    framework: Annotated[
        str | None,
        typer.Option(help="The framework of the control, by id, slug or identifier.", show_default=False),
    ] = None,
    as_of: AsOfOption = None,
    database: DatabaseOption = None,
    server: ServerOption = None,
) -> None:
    """Explain the coverage of a control: its proof, other sufficient assessments, effects, and what would lift it."""
    from rich.console import Console

    moment = moment_of(as_of)
    with connected(database, server) as backend, about(moment):
        owner = backend.organization(organization)
        control_id = backend.control(owner, control, framework, moment)
        explanation = backend.read(calls.EXPLANATION, control_id, organizationId=owner, asOf=moment)
    console = Console(file=sys.stdout, width=None if sys.stdout.isatty() else _WIDEST, highlight=False)
    console.print(_tree(explanation))


def _tree(found: Mapping[str, Any]) -> Tree:
    from normata.coverage.words import STALE_WORDS

    indirect = ", indirectly" if found["isIndirectlyCovered"] else ""
    tree = _branch(None, f"{_named(found['control'])}: {found['effectiveCoverageStatus']}{indirect}")
    assessment = found["assessment"]
    if assessment is None:
        _branch(tree, "not assessed")
    else:
        applies = ", not applicable" if assessment["isApplicable"] is False else ""
        assessed = _branch(tree, f"{status_words(assessment['coverageStatus'])}{applies}")
        for label, text in (
            ("gap", assessment["coverageGap"]),
            ("justification", assessment["justification"]),
            ("reasons", ", ".join(assessment["reasons"])),
            ("owner", assessment["ownerId"]),
            ("note", assessment["note"]),
            ("review by", assessment["reviewBy"]),
        ):
            if text:
                _branch(assessed, f"{label}: {text}")
        for reason in assessment["stale"]:
            _branch(assessed, f"stale since {reason['since'][:10]}: {STALE_WORDS[reason['reason']]}")
    _add_evidence(tree, found["evidence"])
    if found["excludedBy"] is not None:
        _branch(tree, _excluding(found["excludedBy"]))
    if found["outsideOfBaseline"] is not None:
        _branch(tree, f"outside of the baseline {found['outsideOfBaseline']['name']}")
    if found["conflict"] is not None:
        _add_conflict(tree, found["conflict"])
    if found["proof"]:
        _add_proof(_branch(tree, "because"), found["proof"])
    elif not found["isProved"]:
        _branch(tree, "no proof is shown: it is too long, or the stored coverage is from before the newest upgrade")
    if found["others"]:
        more = "" if found["othersAreAll"] else ", and maybe more"
        others = _branch(tree, f"other assessments that would each be sufficient ({len(found['others'])}{more})")
        for proof in found["others"]:
            steps = len(proof) - 1
            away = f", {steps} step{'s' if steps != 1 else ''} away" if steps else ""
            _branch(others, f"{_named(proof[0]['control'])}: assessed {proof[0]['assessed']}{away}")
    _add_effects(tree, found)
    _add_lifts(tree, found)
    return tree


def _add_evidence(tree: Tree, evidence: Mapping[str, Any]) -> None:
    """The pieces of evidence, each with its files and their hashes."""
    from normata.coverage.words import evidence_words

    for title, pieces in (
        (f"evidence: {evidence_words(evidence)}", evidence["items"]),
        ("evidence recorded later", evidence["recordedLater"]),
    ):
        if not pieces:
            continue
        branch = _branch(tree, title)
        for one in pieces:
            until = "" if one["validUntil"] is None else f" until {one['validUntil'][:10]}"
            valid = f"valid{until}" if one["isValid"] else f"expired {one['validUntil'][:10]}"
            below = _branch(branch, f"{one['name']} ({one['id']}): {valid}")
            for file in one["files"]:
                _branch(below, f"{file['sha256']}  {file['name']}")


def _excluding(group: Mapping[str, Any]) -> str:
    because = "; ".join(part for part in (group["justification"], ", ".join(group["reasons"])) if part)
    return f"excluded with {group['identifier']} {group['name']}{': ' if because else ''}{because}"


def _add_conflict(tree: Tree, conflict: Mapping[str, Any]) -> None:
    if conflict["below"]:
        branch = _branch(tree, f"in conflict with what is assessed below it: {conflict['belowCount']}")
        for below in conflict["below"]:
            _branch(branch, f"{_named(below['control'])} is assessed {below['coverageStatus']}")
        if conflict["belowCount"] > len(conflict["below"]):
            _branch(branch, f"and {conflict['belowCount'] - len(conflict['below'])} more")
        return
    more = "" if conflict["matchesAreAll"] else ", and more"
    branch = _branch(tree, f"in conflict with matches that make it FULL ({len(conflict['matches'])}{more})")
    for match in conflict["matches"]:
        shown = _branch(branch, f"{_named(match['sourceControl'])}, match {match['id']}{_source(match)}")
        for one in match["assessments"]:
            _branch(shown, f"{_named(one['control'])} is assessed {one['coverageStatus']}")


def _source(match: Mapping[str, Any]) -> str:
    if match["isOwn"]:
        return " of your own"
    if match["mapping"] is None:
        return ""
    return (
        f" of {match['mapping']['name']}{' ' if match['mapping']['version'] else ''}{match['mapping']['version'] or ''}"
    )


def _add_proof(tree: Tree, proof: Sequence[Mapping[str, Any]]) -> None:
    """The steps of a proof as a tree, from the last one down to the assessments, each written once."""
    by_fact = {(step["control"]["id"], step["level"]): step for step in proof}
    written: set[int] = set()
    pending = [(tree, proof[-1], True)]
    while pending:
        above, step, is_last = pending.pop()
        branch = _branch(above, _reason(step) if is_last else f"{_named(step['control'])} {_reason(step)}")
        if id(step) not in written:
            written.add(id(step))
            premises = [by_fact[premise["controlId"], premise["level"]] for premise in step["premises"]]
            pending += [(branch, premise, False) for premise in reversed(premises)]


def _reason(step: Mapping[str, Any]) -> str:
    if step["rule"] == "ASSESSMENT":
        return f"is assessed {step['assessed']}"
    if step["rule"] == "ROLL_UP":
        count, shown = step["premiseCount"], len(step["premises"])
        if count > shown:
            return f"is {step['level']} by its {count} children; the first {shown} are shown"
        return f"is {step['level']} by {'its children' if step['level'] == 'FULL' else 'a child'}"
    assert step["match"] is not None  # noqa: S101 - a step by a match has one
    own = " (by a match of your own)" if step["match"]["isOwn"] else ""
    if step["matchBack"] is not None:
        return f"is {step['level']}, because it contains{own}"
    return f"is {step['level']}, because it {'is contained in' if step['level'] == 'FULL' else 'overlaps'}{own}"


def _add_effects(tree: Tree, found: Mapping[str, Any]) -> None:
    effects = found["effects"]
    if effects["count"] is None:
        _branch(tree, "too many controls depend on its own assessment to list all")
    elif effects["count"]:
        branch = _branch(tree, f"less covered without its own assessment: {effects['count']}")
        for effect in effects["items"]:
            _branch(branch, f"{_named(effect['control'])}: {effect['level']}, and {effect['without']} without it")
        if effects["count"] > len(effects["items"]):
            _branch(branch, f"and {effects['count'] - len(effects['items'])} more")


def _add_lifts(tree: Tree, found: Mapping[str, Any]) -> None:
    if found["lacking"]:
        branch = _branch(tree, f"children that are not FULL: {found['lackingCount']}")
        for child in found["lacking"]:
            _branch(branch, _named(child))
        if found["lackingCount"] > len(found["lacking"]):
            _branch(branch, f"and {found['lackingCount'] - len(found['lacking'])} more")
    if found["lifts"]:
        branch = _branch(tree, "would lift it" if found["liftsAreAll"] else "would lift it, and others may")
        for lift in found["lifts"]:
            _branch(branch, _lifting(lift))


def _lifting(lift: Mapping[str, Any]) -> str:
    through = [_named(control) for control in lift["path"][1:-1]]
    path = f", through {', '.join(through)}" if through else ""
    return f"{_named(lift['control'])}: {lift['needs']} instead of {lift['level']} would make it {lift['gives']}{path}"


def _named(control: Mapping[str, Any]) -> str:
    return f"{control['identifier']} {control['name']} ({control['framework']['identifier']})"


def _branch(tree: Tree | None, line: str) -> Tree:
    from rich.text import Text
    from rich.tree import Tree

    text = Text(visible(line))  # no markup: users choose the names of controls
    return Tree(text) if tree is None else tree.add(text)
