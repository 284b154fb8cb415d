"""A seventeenth kind, run as a program: CONTRIBUTING's example, loaded, dumped, and loaded again elsewhere.

A process that has declared a kind has it for good, so this one is a process of its own. Usage: SOURCE-URL TARGET-URL;
both have a current schema, the source has the world. It prints the source's dump and the target's, as JSON.
"""

from __future__ import annotations

import io
import json
import sys
import tempfile
from contextlib import closing
from pathlib import Path

from sqlalchemy.orm import Mapped

from normata.core.db.opening import open_database
from normata.core.schema.fields import Identifier, Name, ShortId, Slug, Text, Timestamp
from normata.core.schema.table import refers_to, sql_table
from normata.records.base import Maintained
from normata.settings import Settings


class Exemption(Maintained):
    """A control that need not be followed, for a reason and a time."""

    __tablename__ = "exemption"
    path = "exemptions"
    topic = "RISKS"
    responsible = "owner_id"

    slug: Mapped[Slug]
    short_id: Mapped[ShortId]
    name: Mapped[Name]
    reason: Mapped[Text | None]
    owner_id: Mapped[Identifier | None] = refers_to("membership")
    control_id: Mapped[Identifier | None] = refers_to("control")
    ends_at: Mapped[Timestamp | None]


def main(source_url: str, target_url: str) -> None:
    """Load into the source, dump it, load that into the target, and dump this one, too."""
    # The catalogue of bundle arrays is made of the kinds that there are when it is imported.
    from normata.bundle import loading, reading
    from normata.bundle.dumping import dump
    from normata.wiring import changes_of
    from tests import world

    row = {"id": "x", "organizationId": world.ALPHA, "name": "Not here", "controlId": "star.A.3"}
    dumps = []
    with tempfile.TemporaryDirectory() as folder:
        bundle = Path(folder) / "bundle.json"
        bundle.write_text(json.dumps({Exemption.path: [row | {"ownerId": "member-editor"}]}), encoding="utf-8")
        for url in (source_url, target_url):
            with closing(open_database(Settings(database_url=url))) as database:
                database.alter_now(sql_table(Exemption).create)
                changes_of(database).make_now(lambda unit: loading.load(unit, reading.read([bundle])))
                file = io.StringIO()
                database.read_now(lambda transaction, file=file: dump(transaction, world.ALPHA, file))  # type: ignore[misc]
                dumps.append(file.getvalue())
                bundle.write_text(file.getvalue(), encoding="utf-8")
    json.dump(dumps, sys.stdout)


if __name__ == "__main__":
    main(*sys.argv[1:])
