"""Makes the register of vendors follow a list of purchasing, every night.

    NORMATA_SERVER=… NORMATA_TOKEN=… python vendors_from_csv.py vendors.csv [--dry-run] [--at-most N]

The file is a CSV with the columns `Number`, by which purchasing knows a vendor, `Name`, and, if you want them,
`Website`, `Contact`, `E-mail` and `Contract ends`, a date such as 2027-06-30. The token is one of an editor, with the
scope `write`. These fields belong to purchasing, all others to Normata. A vendor that has left the list is archived,
and restored when it is back. One that somebody has archived by hand stays archived.
"""

from argparse import Namespace

from normata_api import Failed, Organization, Outcome, Row, read_rows, require_few, run

_SOURCE = "Purchasing"
_FIELDS = {
    "Name": "name",
    "Website": "website",
    "Contact": "contactName",
    "E-mail": "contactEmail",
    "Contract ends": "contractExpiry",
}


def main(organization: Organization, arguments: Namespace) -> Outcome:
    """Create and change what is in the list, and archive what is not."""
    listed: dict[str, Row] = {}
    for row in read_rows(arguments.file, "Number", "Name"):
        if row["Number"] in listed:
            raise Failed(f"{arguments.file}: {row['Number']} is there twice, so nothing is done")
        listed[row["Number"]] = {field: row.get(column) or None for column, field in _FIELDS.items()}

    known = organization.known("vendors", _SOURCE)
    live = {vendor["id"] for vendor in organization.items("/vendors/")}
    followed = [record for record in known.values() if record in live]
    gone = [record for number, record in known.items() if number not in listed and record in live]
    require_few(gone, followed, arguments.at_most, "vendors would be archived")

    own = organization.items("/archive/", kind="vendors", userId=organization.user_id)
    archived_here = {record["id"] for record in own}
    back = {number: values for number, values in listed.items() if known.get(number) in archived_here}
    others = {number: values for number, values in listed.items() if number not in back}
    done, refused = organization.upsert("vendors", _SOURCE, others)
    restored, further = organization.upsert("vendors", _SOURCE, back, if_archived="restore")
    archived, last = organization.archive("vendors", gone, "No longer in the list of purchasing.")
    refused += further + last
    counts = f"{done['created']} created, {done['updated']} updated, {done['unchanged']} unchanged"
    return f"{counts}, {restored.total()} restored, {archived} archived, {len(refused)} refused", refused


if __name__ == "__main__":
    run(__doc__, main)
