"""Copies tasks from a tracker: who does what until when, and how far it is.

    NORMATA_SERVER=… NORMATA_TOKEN=… python tasks_from_tracker.py issues.csv [--dry-run]

The file is a CSV with the columns `Key`, `Summary`, `Status`, `Due` and `Assignee`, an address. The token is one of an
editor, with the scope `write`. It goes one way: these fields belong to the tracker, and each run sets them again; all
others belong to Normata. A task that is not in the file stays as it is, because exports are filtered; so does one that
was archived. An assignee who is no member of the organization is left out, and counted.
"""

from argparse import Namespace

from normata_api import Failed, Organization, Outcome, Row, read_rows, run

_SOURCE = "tracker"
_STATUS = {
    "to do": "TODO",
    "in progress": "IN_PROGRESS",
    "blocked": "BLOCKED",
    "in review": "IN_REVIEW",
    "done": "DONE",
    "won't do": "CANCELLED",
}


def main(organization: Organization, arguments: Namespace) -> Outcome:
    """Create and change the tasks of the file."""
    rows = read_rows(arguments.file, "Key", "Summary", "Status")
    members = {
        member["email"].casefold(): member["id"]
        for member in organization.items("/members/")
        if not member["isServiceAccount"] and member["role"] != "auditor"  # no record newly names an auditor
    }
    tasks: dict[str, Row] = {}
    faulty, strangers = [], set()
    for row in rows:
        status, assignee = _STATUS.get(row["Status"].lower()), row.get("Assignee", "").casefold()
        if row["Key"] in tasks:
            raise Failed(f"{arguments.file}: {row['Key']} is there twice, so nothing is done")
        if status is None:
            faulty.append(f"{row['Key']}: {row['Status']} is none of {', '.join(_STATUS)}")
            continue
        if assignee and assignee not in members:
            strangers.add(assignee)
        tasks[row["Key"]] = {
            "title": row["Summary"],
            "status": status,
            "deadline": row.get("Due") or None,
            "assigneeMemberId": members.get(assignee),
        }
    done, refused = organization.upsert("tasks", _SOURCE, tasks)
    counts = f"{done['created']} created, {done['updated']} updated, {done['unchanged']} unchanged"
    return f"{counts}, {len(strangers)} assignees are no members, {len(faulty + refused)} refused", faulty + refused


if __name__ == "__main__":
    run(__doc__, main)
