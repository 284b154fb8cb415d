"""Makes findings follow the report of a scanner: new ones are opened, and those that are gone are resolved.

    NORMATA_SERVER=… NORMATA_TOKEN=… python findings_from_scanner.py report.json [--dry-run] [--at-most N]

The report is of everything that the scanner looks at, as JSON: {"findings": [{"id", "title", "severity", "details"}]}.
The token is one of an editor, with the scope `write`. A scanner that does not find something is no proof that it was
corrected, so what is gone becomes RESOLVED, and people verify and close it. What is RESOLVED and found again is opened
again. What people have CLOSED or VERIFIED stays so, and is counted.
"""

import json
from argparse import Namespace

from normata_api import Failed, Organization, Outcome, Row, require_few, run

_SOURCE = "scanner"
_GONE = "RESOLVED"
_ENDED = {_GONE, "VERIFIED", "CLOSED"}
_TYPES = {
    "critical": "MAJOR_NONCONFORMITY",
    "high": "MAJOR_NONCONFORMITY",
    "medium": "MINOR_NONCONFORMITY",
    "low": "OBSERVATION",
}


def main(organization: Organization, arguments: Namespace) -> Outcome:
    """Open what is found, and resolve what is gone."""
    try:
        report = {str(one["id"]): one for one in json.loads(arguments.file.read_bytes())["findings"]}
    except OSError as error:
        raise Failed(str(error)) from None
    except (ValueError, TypeError, KeyError):
        raise Failed(f'{arguments.file} is no JSON of the form {{"findings": [{{"id": …}}]}}') from None
    known = organization.known("auditItems", _SOURCE)
    status = {finding["id"]: finding["status"] for finding in organization.items("/auditItems/")}
    followed = {record for record in known.values() if status.get(record, _GONE) not in _ENDED}
    gone = {one: record for one, record in known.items() if one not in report and record in followed}
    require_few(gone, followed, arguments.at_most, "findings would be resolved")

    found, faulty, stays = {}, [], 0
    for one, finding in report.items():
        values = _values(finding)
        if values is None:
            faulty.append(f"{one}: no title, or a severity that is none of {', '.join(_TYPES)}")
            continue
        before = status.get(known.get(one, ""))
        stays += before in _ENDED - {_GONE}
        found[one] = values | ({"status": "OPEN"} if before in {None, _GONE} else {})
    done, refused = organization.upsert("auditItems", _SOURCE, found)
    resolved, further = organization.upsert("auditItems", _SOURCE, {one: {"status": _GONE} for one in gone})
    counts = f"{done['created']} new, {done['updated']} changed, {done['unchanged']} unchanged"
    ended = f"{resolved['updated']} resolved, {stays} found although closed"
    return f"{counts}, {ended}, {len(refused + further + faulty)} refused", refused + further + faulty


def _values(finding: Row) -> Row | None:
    """The fields that belong to the scanner; null if the finding is not one."""
    title, kind = finding.get("title"), _TYPES.get(str(finding.get("severity")).lower())
    if not title or kind is None:
        return None
    return {"name": title, "type": kind, "source": "MONITORING", "findings": finding.get("details")}


if __name__ == "__main__":
    run(__doc__, main)
