"""What a restore sends to the database, taken from Normata itself, so that it can be sent again without Normata.

One request is made of the application in this process. The transaction with its UPDATE is kept, statement by statement
and with its parameters, as the driver gets them. For another record its id is put in the place of the first's, and new
ids for those that Normata made: they are the only parameters that look like UUIDs.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from sqlalchemy import Connection, event
from starlette.testclient import TestClient

from benchmarks.speed.data import policy_id
from normata.app import create_app
from normata.database import Database
from normata.settings import Settings
from normata.vocabulary import new_id
from tests.following import follow

_MADE_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


class Statement(NamedTuple):
    """What the driver is given."""

    text: str
    parameters: tuple[Any, ...]


class Transaction(NamedTuple):
    """The statements of the restore of one policy, from the one that begins it; that which commits it is not there."""

    policy_id: str
    statements: list[Statement]

    def of(self, number: int) -> list[Statement]:
        """The same for another policy."""
        other = policy_id(number)
        return [
            Statement(text, tuple(self._put(value, other) for value in parameters))
            for text, parameters in self.statements
        ]

    def _put(self, value: Any, other: str) -> Any:
        if not isinstance(value, str):
            return value
        return new_id() if _MADE_ID.fullmatch(value) else value.replace(self.policy_id, other)


def capture(database_url: str, token: str, number: int) -> Transaction:
    """What the restore of a policy sends. The policy is live afterwards."""
    app = create_app(Settings(database_url=database_url, log_level="error"))
    database: Database = app.state.database
    # Scripts are followed past SQLAlchemy, where nobody can listen. The statements are the same.
    app.state.database.perform = lambda script, sight: database.write(lambda c: follow(c, script()), sight)
    transactions: dict[Connection, list[Statement]] = {}

    def note(connection: Connection, _cursor: object, text: str, parameters: Any, *_: object) -> None:
        transactions.setdefault(connection, []).append(Statement(text, tuple(parameters)))

    with TestClient(app, headers={"Authorization": f"Bearer {token}"}) as client:
        event.listen(database.engine, "before_cursor_execute", note)
        client.post(f"/policies/{policy_id(number)}/restore/").raise_for_status()
        event.remove(database.engine, "before_cursor_execute", note)
    (restore,) = (
        statements
        for statements in transactions.values()
        if any("UPDATE policy" in statement.text for statement in statements)
    )
    return Transaction(policy_id(number), restore)
