"""The example that copies tasks from a tracker, one way."""

from __future__ import annotations

from typing import Any

import pytest

from tests import world
from tests.databases import on_both
from tests.examples.integrating import Done, Integrations

PROGRAM = "tasks_from_tracker.py"
COLUMNS = ("Key", "Summary", "Status", "Due", "Assignee")
EDITOR = world.USERS["editor"].upper()


def issue(number: int, **other: str) -> dict[str, str]:
    """A line of the tracker."""
    line = {"Key": f"OPS-{number}", "Summary": f"Issue {number}", "Status": "In Progress", "Due": "2028-03-31"}
    return line | {"Assignee": EDITOR} | other


def run(integrations: Integrations, *lines: dict[str, str], user: str = "editor") -> Done:
    """One export."""
    file = integrations.table("issues.csv", lines, COLUMNS)
    return integrations.run(PROGRAM, file, token=integrations.token(user, "write"))


def tasks(integrations: Integrations) -> dict[str, Any]:
    """The tasks of the tracker, by title."""
    return {task["title"]: task for task in integrations.items("/tasks/") if task["title"].startswith("Issue")}


def counts(created: int = 0, updated: int = 0, unchanged: int = 0, strangers: int = 0) -> str:
    """What a run says in which nothing was refused."""
    done = f"{created} created, {updated} updated, {unchanged} unchanged"
    return f"{done}, {strangers} assignees are no members, 0 refused\n"


@on_both
def test_the_second_run_changes_nothing(integrations: Integrations) -> None:
    lines = issue(1), issue(2, Status="Done", Due="", Assignee=""), issue(3, Assignee="stranger@else.example")
    first = run(integrations, *lines)
    assert (first.refused, first.status, first.said) == ([], 0, counts(created=3, strangers=1))
    made = tasks(integrations)
    assert (made["Issue 1"]["assigneeMemberId"], made["Issue 1"]["deadline"][:10]) == ("member-editor", "2028-03-31")
    assert (made["Issue 2"]["status"], made["Issue 2"]["deadline"]) == ("DONE", None)
    assert made["Issue 3"]["assigneeMemberId"] is None
    events = integrations.events()
    assert run(integrations, *lines).said == counts(unchanged=3, strangers=1)
    assert integrations.events() == events


def test_what_people_do_in_between(integrations: Integrations) -> None:
    lines = issue(1), issue(2), issue(3)
    run(integrations, *lines)
    made = tasks(integrations)
    by_hand = {"title": "Issue one", "status": "BLOCKED", "description": "Wait for parts.", "assigneeMemberId": None}
    integrations.change("PATCH", f"/tasks/{made['Issue 1']['id']}/", by_hand)
    integrations.change("POST", f"/tasks/{made['Issue 2']['id']}/archive/", {"reason": "Not ours."})
    integrations.change("DELETE", "/members/member-viewer/", user="admin", scope="admin")

    # What belongs to the tracker is set again, and the rest stays. Who has archived a task has meant it.
    again = run(integrations, *lines[:2], issue(4, Assignee=world.USERS["viewer"]))
    assert (again.status, again.said) == (0, counts(created=1, updated=1, unchanged=1, strangers=1))
    now = tasks(integrations)
    assert {"Issue 1", "Issue 3", "Issue 4"} == set(now)
    assert now["Issue 1"] | {"updatedAt": None} == made["Issue 1"] | {
        "description": "Wait for parts.",
        "updatedAt": None,
    }


def test_a_line_that_is_refused_changes_nothing_and_the_others_do(integrations: Integrations) -> None:
    run(integrations, issue(1), issue(2), issue(3))
    bad = run(integrations, issue(1, Status="Someday"), issue(2, Due="soon"), issue(3, Status="Won't do"))
    assert bad.status == 1
    assert bad.said == "0 created, 1 updated, 0 unchanged, 0 assignees are no members, 2 refused\n"
    assert [line.split(":")[0] for line in bad.refused] == ["OPS-1", "OPS-2"]
    assert {title: task["status"] for title, task in tasks(integrations).items()} == {
        "Issue 1": "IN_PROGRESS",
        "Issue 2": "IN_PROGRESS",
        "Issue 3": "CANCELLED",
    }


@pytest.mark.parametrize(
    ("lines", "why"),
    [
        ([], "no rows"),
        ([issue(1), issue(1)], "OPS-1 is there twice"),
        ([issue(1), issue(2, Summary="")], "row 3: no Summary"),
    ],
)
def test_an_export_with_a_fault_changes_nothing(unchanged: Integrations, lines: list[Any], why: str) -> None:
    faulty = run(unchanged, *lines)
    assert (faulty.status, faulty.said) == (1, "")
    assert why in faulty.refused[0]
    assert not tasks(unchanged)


def test_a_viewer_is_refused(unchanged: Integrations) -> None:
    refused = run(unchanged, issue(1), user="viewer")
    assert (refused.status, refused.said) == (1, "")
    assert "403 forbidden" in refused.refused[0]
