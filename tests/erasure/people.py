"""A person who is everywhere: in every text column of every table, in events, documents and other people's inboxes."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import timedelta
from typing import Any

from sqlalchemy import Select, insert, select, update

from normata.core.changes.idempotency import IdempotencyKey
from normata.core.db.database import Database
from normata.core.db.transaction import Transaction
from normata.core.schema.addresses import email_key
from normata.core.schema.table import Table, sql_table, tables
from normata.core.schema.text import fold
from normata.erasure.columns import keys_of, own_tables, texts_of
from normata.events.model import AuditEvent
from normata.external_ids.model import ExternalId
from normata.identity import sign_in_model as sign_in
from normata.identity.model import AccessToken, Invitation, Operator, User
from normata.identity.provisioning_model import ProvisionedPerson
from normata.identity.tokens import tokens
from normata.records.kinds import Asset, Policy
from tests.databases import change
from tests.history.rows import fill
from tests.served import Served
from tests.world import ALPHA, BETA, SET_ASIDE, record_id

ANN, NAME, ADDRESS = "user-ann", "Ann Šmith", "Ann.Smith@alpha.example"
MEMBER = "member-ann"
TEXT = f"Ask {NAME.upper()} <{ADDRESS.lower()}>."
SPELLED = ("ann šmith", "ann smith", "ann-smith", "ann.smith@", "ann_šmith")
FAR = "2099-01-01T00:00:00.000Z"


def traces(value: Any) -> list[str]:
    """How a person is named in a value, in any spelling, escaped or not."""
    text = json.dumps(value, ensure_ascii=False) if isinstance(value, list | dict) else str(value)
    return [spelled for spelled in SPELLED if spelled in fold(text)]


def named(database: Database) -> list[str]:
    """Every column of every row of every table that names the person."""

    def look(transaction: Transaction) -> list[str]:
        return [
            f"{table.__tablename__}.{name} of {row[0]}: {value!r}"
            for table in tables()
            for row in transaction.rows(_every(table))
            for name, value in row._asdict().items()
            if traces(value)
        ]

    return database.read_now(look)


def join(service: Served) -> None:
    """Ann becomes an editor of alpha and a viewer of beta, and is known to the instance by everything that there is."""
    service.load(
        {
            "users": [{"id": ANN, "email": ADDRESS, "name": NAME}],
            "memberships": [
                {"id": MEMBER, "organizationId": ALPHA, "userId": ANN, "role": "editor"},
                {"id": "member-ann-beta", "organizationId": BETA, "userId": ANN, "role": "viewer"},
            ],
            "notifications": [{"id": "note-ann", "organizationId": ALPHA, "userId": ANN, "createdAt": "2026-03-01"}],
            "mappingDocuments": [{"id": "mapping", "document": "A mapping", "name": "A mapping"}],
            "controlWordings": [
                {
                    "id": "wording",
                    "controlId": "sun.A.1",
                    "identifier": "A.1",
                    "name": "Small boats",
                    "replacedAt": "2026-03-01",
                }
            ],
            "baselines": [{"id": "baseline", "frameworkId": "fw-sun", "name": "Small boats"}],
            "baselineControls": [{"id": "selected", "baselineId": "baseline", "controlId": "sun.A.1"}],
            "setAsideMatches": [
                {"id": "aside", "organizationId": ALPHA, "matchId": SET_ASIDE, "justification": "They are not alike."}
            ],
        }
    )
    insert_rows(service.database, _rows_of(ANN))
    insert_rows(service.database, [(table, row) for table, row in _rows_of("user-viewer") if table is not Invitation])
    attempt = {"kind": "oidc", "data": json.dumps({"login_hint": ADDRESS})}
    offer = {"organization_id": BETA, "email": ADDRESS, "email_folded": email_key(ADDRESS), "role": "viewer"}
    insert_rows(
        service.database,
        [
            (sign_in.SignInAttempt, _only(sign_in.SignInAttempt, _own(ANN)) | attempt),
            (User, {"id": "bot-of-ann", "name": TEXT, "organization_id": ALPHA}),
            (Invitation, _only(Invitation, _own(ANN)) | offer | {"created_by": ANN}),
        ],
    )


def bearer(service: Served) -> dict[str, str]:
    """The Authorization header with a new token of Ann's."""
    token = change(
        service.database, lambda unit: tokens.create(unit, email=ADDRESS, scope="write", lifetime=timedelta(hours=1))
    )
    return {"Authorization": f"Bearer {token}"}


def work(service: Served) -> None:
    """Ann writes, archives and restores, and others write of her: events, notifications, kept answers, the archive."""
    ann, editor = bearer(service), service.bearer("editor")

    def send(headers: dict[str, str], method: str, path: str, **body: Any) -> Any:
        key = {"Idempotency-Key": f"{method} {path}"} if method == "POST" else {}
        answer = service.client.request(method, path, json=body, headers=headers | key)
        assert answer.status_code in (200, 201), answer.text
        return answer.json()

    made = send(
        ann, "POST", "/tasks/", organizationId=ALPHA, title=f"Laptop of {NAME}", assigneeMemberId="member-editor"
    )
    send(editor, "PATCH", f"/tasks/{made['id']}/", description=TEXT, instructions="Nothing about her.")
    send(
        editor,
        "POST",
        "/tasks/",
        organizationId=ALPHA,
        title="Plain",
        description="Of nobody.",
        assigneeMemberId=MEMBER,
    )
    policy = f"/policies/{record_id(Policy, 'live')}/"
    send(editor, "PATCH", policy, content={"authors": [{"name": NAME, "mail": ADDRESS}]})
    service.sql(f"UPDATE policy SET last_approved_by = '{NAME}' WHERE id = '{record_id(Policy, 'live')}'")
    asset = f"/assets/{record_id(Asset, 'live')}/"
    send(ann, "POST", f"{asset}archive/", reason=f"{NAME} has lost it")
    send(ann, "POST", f"{asset}restore/")
    send(editor, "PATCH", policy, title=f"Policy for {ADDRESS}")


def insert_rows(database: Database, rows: Iterable[tuple[type[Table], dict[str, Any]]]) -> None:
    """Insert rows past all rules."""

    def work(transaction: Transaction) -> None:
        for table, row in rows:
            every = {column.name: None for column in sql_table(table).c} | row
            transaction.rows(insert(sql_table(table)).values(**every))

    database.write_now(work)


def _own(user: str) -> dict[str, Any]:
    times = dict.fromkeys(("created_at", "expires_at", "last_used_at"), FAR)
    return {"id": f"own-{user}", "user_id": user, "digest": f"{len(user):064}"} | times


def _rows_of(user: str) -> list[tuple[type[Table], dict[str, Any]]]:
    """A row of everything that a user may have."""
    own = _own(user)
    about = {"means": "link", "address": "192.0.2.7", "user_agent": TEXT}
    passkey = {"credential_id": user, "credential": "c", "sign_count": 0, "name": TEXT}
    request = {"user_id": user, "key": "k", "method": "POST", "path": "/", "fingerprint": "f", "status": 200}
    return [
        (AccessToken, own | {"name": TEXT, "scope": "write"}),
        (Operator, {"user_id": user, "since": FAR}),
        *_said(user),
        (sign_in.Session, own | about),
        (sign_in.SignInLink, _only(sign_in.SignInLink, own)),
        (sign_in.Password, {"user_id": user, "hash": "h", "changed_at": FAR}),
        (sign_in.Passkey, _only(sign_in.Passkey, own) | passkey),
        (
            sign_in.ExternalIdentity,
            _only(sign_in.ExternalIdentity, own) | {"issuer": "https://id.example", "subject": user},
        ),
        (IdempotencyKey, request | {"headers": {}, "body": json.dumps({"name": NAME}), "created_at": FAR}),
    ]


def _said(user: str) -> list[tuple[type[Table], dict[str, Any]]]:
    """What a provider says of Ann; it knows nobody else."""
    if user != ANN:
        return []
    of = {"organization_id": ALPHA, "user_id": ANN, "membership_id": MEMBER, "created_at": FAR, "changed_at": FAR}
    said = {"user_name": ADDRESS, "user_name_folded": ADDRESS, "external_id": NAME, "details": {"displayName": NAME}}
    return [(ProvisionedPerson, of | said | {"id": "said-of-ann", "made_account": True})]


def _only(table: type[Table], row: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name in sql_table(table).c}


def plant(database: Database) -> None:
    """Name the person in every text column of every table, in a row that is not theirs.

    It goes past all rules, so that a column that nobody thought of is there, too.
    """
    database.alter_now(lambda connection: [connection.exec_driver_sql(statement) for statement in fill()])

    def work(transaction: Transaction) -> None:
        own = dict(own_tables())
        for table in tables():
            # Those of users are their own; events and what is transient have names already.
            named = table in (User, AuditEvent) or (table.transient and table is not ExternalId)
            if named or not texts_of(table):
                continue
            rows = transaction.rows(_every(table))
            row = next((one._asdict() for one in rows if table not in own or getattr(one, own[table]) != ANN), None)
            assert row is not None, f"nobody but Ann has a row in {table.__tablename__}: add one"
            _put(transaction, table, row)

    database.write_now(work)


def _put(transaction: Transaction, table: type[Table], row: dict[str, Any]) -> None:
    sql, keys, texts = sql_table(table), keys_of(table), texts_of(table)
    special = {"document": {"by": [TEXT], NAME: 1}, "whole": json.dumps({"a": NAME}), "slug": "of-ann-smith"}
    for name, use in texts.items():
        length = getattr(sql.c[name].type, "length", None)
        row[name] = special.get(use, TEXT[:length])
    table.derive(row)
    where = [sql.c[name] == row[name] for name in keys]
    transaction.rows(update(sql).where(*where).values({name: row[name] for name in row if name not in keys}))


def _every(table: type[Table]) -> Select[Any]:
    return select(*sql_table(table).c).order_by(*(sql_table(table).c[name] for name in keys_of(table)))
