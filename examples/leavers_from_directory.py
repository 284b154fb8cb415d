"""Removes members who have left: those whose address is not in a directory's export of the people who are there.

    NORMATA_SERVER=… NORMATA_TOKEN=… python leavers_from_directory.py people.csv [--dry-run] [--at-most N]

The file is a CSV with a column `email`. The token is one of an admin, with the scope `admin`. Nobody is removed if the
export has no row, or one without an address, or if more than a fifth of the members would go. Owners, service accounts
and the user of the token are never removed. An owner who has left is refused, and somebody has to look.
"""

from argparse import Namespace
from urllib.parse import quote

from normata_api import Failed, Organization, Outcome, read_rows, require_few, run


def main(organization: Organization, arguments: Namespace) -> Outcome:
    """Remove who has left."""
    present = set()
    for row in read_rows(arguments.file, "email"):
        if "@" not in row["email"]:
            raise Failed(f"{arguments.file}: {row['email']} is no address, so nobody is removed")
        present.add(row["email"].casefold())

    # The service refuses a parameter that it does not know, so a filter that is misspelled does not select everybody.
    people = [member for member in organization.items("/members/", removed="exclude") if not member["isServiceAccount"]]
    left = [member for member in people if member["email"].casefold() not in present]
    require_few(left, people, arguments.at_most, "members would be removed")

    removed, refused = [], []
    for member in left:
        if member["role"] == "owner" or member["userId"] == organization.user_id:
            refused.append(f"{member['email']} has left and is {member['role']}: make somebody else {member['role']}")
            continue
        try:
            organization.change("DELETE", f"/members/{quote(member['id'], safe='')}/")
            removed.append(member["email"])
        except Failed as error:
            refused.append(f"{member['email']}: {error}")
    names = f" ({', '.join(removed)})" if removed else ""
    return f"{len(people)} members, {len(present)} people in the directory: {len(removed)} removed{names}", refused


if __name__ == "__main__":
    run(__doc__, main)
