"""The data of the demo, and the texts that it prints."""

from __future__ import annotations

import mimetypes
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from functools import partial
from hashlib import sha256
from io import BytesIO
from typing import Any
from urllib.parse import quote

from sqlalchemy import select

from normata.bundle import loading, reading
from normata.cli import demo_audits
from normata.comments import commands as comments
from normata.core.changes.source import Row
from normata.core.changes.unit_of_work import COMMAND, Actor, UnitOfWork, follow
from normata.core.db.database import Database
from normata.core.db.transaction import Transaction
from normata.core.schema.fields import parse_timestamp
from normata.core.schema.table import new_id
from normata.coverage.assessments import AssessmentInput, assess
from normata.demo import audits, history
from normata.demo.entitlements import NEW, ReviewStep, review_steps
from normata.demo.files import ORGANIZATION, content_of, paths
from normata.demo.moments import day_after
from normata.demo.vendors import questionnaires
from normata.entitlements.items import (
    ItemDecision,
    ItemQuery,
    ItemTable,
    NewItem,
    PlacedItem,
    add_items,
    decide,
    list_items,
)
from normata.entitlements.reviews import ReviewFinish
from normata.entitlements.reviews import finish as finish_entitlements
from normata.events.sealing import seal_all_now
from normata.external_ids.model import External
from normata.files import files as uploads
from normata.files.store import FileStore, place_of
from normata.findings.verification import verify
from normata.identity.model import Organization, User
from normata.identity.sign_in import links as sign_in_links
from normata.identity.tokens import tokens
from normata.links.commands import Wanted, make_links
from normata.links.model import End
from normata.notifications.read_marks import mark_all
from normata.notifications.reminders import remind
from normata.policies import steps
from normata.policies.acknowledging import acknowledge, ask
from normata.policies.drafts import write_draft
from normata.policies.model import ACKNOWLEDGING_ROLES
from normata.policies.versions import Versions
from normata.records import writing
from normata.records.archive.queries import KINDS
from normata.records.archiving import archive
from normata.records.assurance import VendorAssessment
from normata.records.base import Restorable
from normata.records.batch.commands import write_batch
from normata.records.batch.items import Item
from normata.records.finalizing import finalize
from normata.records.restore import restore
from normata.recurrences.commands import set_frequency
from normata.recurrences.following import MakeNext
from normata.risks.acceptance import accept
from normata.risks.review_model import CONFIRMED
from normata.risks.reviews import OutcomeInput, RiskReviewQuery, finish, list_risks, record_outcome
from normata.soa_versions import versions
from normata.soa_versions.model import SoaVersion
from normata.soa_versions.operations import SoaVersionCreation
from normata.vendors import steps as vendors
from normata.vendors.answers import Answer, write_answers
from normata.vendors.operations import VendorReview
from normata.vendors.questionnaires import create as create_questionnaire
from normata.wiring import SUBSCRIBERS

USER = "demo@normata.example"

_ID = Organization.id
_VERSIONS = select(SoaVersion.id).order_by(SoaVersion.created_at)
_USER = select(User.id).where(User.email == USER)


def is_loaded(transaction: Transaction) -> bool:
    """Whether the demo's organization exists."""
    return transaction.scalar(select(_ID).where(_ID == ORGANIZATION)) is not None


def holds_others(transaction: Transaction) -> bool:
    """Whether there is an organization that is not the demo's: real data must not be mixed with it."""
    return transaction.scalar(select(_ID).where(_ID != ORGANIZATION).limit(1)) is not None


def fill(database: Database, progress: loading.Progress, store: FileStore) -> None:
    """Load the bundles, with the actions of the demo's members that lead to them: create, assess, change and archive.

    So the program itself writes every event, notification and archive entry. It is one transaction. The store gets the
    files of the evidence.
    """
    rows = reading.read(paths())
    database.write_now(lambda transaction: _live(transaction, rows, progress, store))
    seal_all_now(database)


def new_token(unit: UnitOfWork) -> str:
    """A token of the demo's user, valid for thirty days."""
    return tokens.create(unit, email=USER, scope="write", lifetime=timedelta(days=30))


def new_link(unit: UnitOfWork) -> str:
    """The path that signs the demo's user in to the console, once, within 15 minutes."""
    return sign_in_links.link("", sign_in_links.create(unit, str(unit.scalar(_USER))))


def invitation(transaction: Transaction, base: str, token: str) -> Iterator[str]:
    """The printed text: the organization, the token, and three requests that work as printed.

    ``base`` is where the server can be reached: ``http://127.0.0.1:8000``.
    """
    curl = f"curl -s -H 'Authorization: Bearer {token}'"
    yield f"Organization: {ORGANIZATION}"
    yield f"Token:        {token}"
    yield ""
    yield "Controls of the adopted frameworks, with their coverage:"
    yield f"{curl} '{base}/controls/?organizationId={ORGANIZATION}&limit=5'"
    yield "Unread notifications:"
    yield f"{curl} '{base}/notifications/?organizationId={ORGANIZATION}&unreadOnly=true&limit=5'"
    archived = _archived(transaction)
    if archived is not None:
        kind, record_id = archived
        yield f"Restore an archived {kind.words()}:"
        yield f"{curl} -X POST '{base}/{kind.path}/{quote(record_id, safe='')}/restore/'"
    else:
        yield "Frameworks (every record of the demo has been restored already):"
        yield f"{curl} '{base}/frameworks/?organizationId={ORGANIZATION}'"
    yield ""
    yield f"Documentation: {base}/docs"
    yield "Stop with Ctrl-C."


# --- The history of the demo


def _live(transaction: Transaction, rows: Sequence[Row], progress: loading.Progress, store: FileStore) -> None:
    arrays: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        arrays[row.array].append(dict(row.values))
    records = {kind.path: arrays[kind.path] for kind in Restorable.kinds}
    adopted = {one["frameworkId"]: one["adoptedAt"] for one in arrays["frameworkAdoptions"]}
    framework = {one["id"]: one["frameworkId"] for one in arrays["controls"]}
    started = min(step["createdAt"] for array in records.values() for step in array)
    doings: list[tuple[str, str, Callable[[UnitOfWork], object]]] = []

    def load(moment: str, *loaded: Row) -> None:
        doings.append((moment, "", lambda unit: loading.load(unit, loaded)))

    base = [
        row
        for row in rows
        if row.array not in {*records, "controlCoverages", "frameworkAdoptions", "links", "comments", "externalIds"}
    ]
    load(day_after(started, -1), *base)
    for row in rows:
        if row.array == "frameworkAdoptions":
            load(row.values["adoptedAt"], row, *_unassessed(rows, framework, row.values["frameworkId"]))
    batches = history.assessments(arrays["controlCoverages"], adopted, framework, arrays["auditItems"])
    doings += [(batch.moment, batch.by, partial(_assess, assessments=batch.assessments)) for batch in batches]
    doings += [(step.moment, step.by, partial(_do, step=step, store=store)) for step in history.steps(records)]
    doings += [(one["createdAt"], history.OFFICER, partial(_link, one=one)) for one in arrays["links"]]
    doings += [(one["createdAt"], history.OFFICER, partial(_name, one=one)) for one in arrays["externalIds"]]
    author = {one["id"]: one["userId"] for one in arrays["memberships"]}
    doings += [(one["createdAt"], author[one["authorId"]], partial(_comment, one=one)) for one in arrays["comments"]]
    doings += [(one["createdAt"], history.OFFICER, partial(_ask_vendors, one=one)) for one in questionnaires()]
    doings += [(one.moment, one.by, partial(_review_entitlements, one=one)) for one in review_steps()]
    doings += [(one.moment, one.by, partial(demo_audits.plan, one=one)) for one in audits.plans()]
    doings += [(one.moment, one.by, partial(demo_audits.check, one=one)) for one in audits.days()]
    until = max(moment for moment, _, _ in doings)
    doings += [(day_after(until, one.days), one.by, partial(_state, one=one)) for one in history.statements()]
    mornings = history.reminder_days(records, until)
    doings += [(moment, _REMINDERS, partial(_remind, moment=moment)) for moment in mornings]
    doings += [(moment, by, partial(_read, moment=moment)) for moment, by in history.readings(until)]
    names = {user["id"]: user["name"] for user in arrays["users"]}
    doings.sort(key=lambda doing: doing[0])
    by_name = MakeNext(lambda record_id: history.following(record_id) or new_id())
    followers = [by_name if isinstance(one, MakeNext) else one for one in SUBSCRIBERS]
    for done, (moment, by, work) in enumerate(doings):
        progress("Living through two years", done, len(doings))
        command = by if by == _REMINDERS else COMMAND.command
        actor = Actor(user_id=by, user_name=names[by]) if by in names else Actor(command=command)
        unit = UnitOfWork(transaction, actor, None, None, parse_timestamp(moment))
        work(unit)
        follow(unit, followers)


_REMINDERS = "reminders"


def _unassessed(rows: Sequence[Row], framework: Mapping[str, str], framework_id: str) -> Iterator[Row]:
    """The assessments of a framework as they were when it was adopted."""
    for row in rows:
        if row.array == "controlCoverages" and framework[row.values["controlId"]] == framework_id:
            yield replace(row, values={**row.values, "coverageStatus": None, "coverageGap": None})


def _assess(unit: UnitOfWork, assessments: Sequence[Mapping[str, Any]]) -> None:
    inputs = [
        AssessmentInput(
            Row("controlCoverages", "history", "", one),
            {"coverage_status": one["coverageStatus"], "coverage_gap": one["coverageGap"]},
            control_id=one["controlId"],
        )
        for one in assessments
    ]
    assess(unit, ORGANIZATION, inputs)


def _do(unit: UnitOfWork, step: history.Step, store: FileStore) -> None:
    kind, values = KINDS[step.kind], dict(step.values or {})
    if (names := history.files_of(step)) is not None:
        values["fileIds"] = [_upload(unit, name, store) for name in names]
    if step.action == "create" and (place := audits.row_found(step.record_id)) is not None:
        demo_audits.find(unit, step.record_id, values, place)
    elif step.action == "create":
        writing.create(unit, kind, ORGANIZATION, values, record_id=step.record_id)
    elif step.action == "change":
        writing.change(unit, kind, step.record_id, values)
    elif step.kind == VendorAssessment.path and step.action in _VENDOR_STEPS:
        _VENDOR_STEPS[step.action](unit, step.record_id, values)
    elif step.action in _POLICY_STEPS:
        _POLICY_STEPS[step.action](unit, step.record_id, values)
    elif step.action == "accept":
        accept(unit, step.record_id, require_current=lambda _row: None)
    elif step.action == "verify":
        verify(unit, step.record_id, values.get("note"), require_current=lambda _row: None)
    elif step.action == "review":
        record_outcome(unit, step.record_id, OutcomeInput.model_validate(step.values))
    elif step.action == "repeat":
        set_frequency(unit, kind, step.record_id, values["frequency"])
    elif step.action == "finish":
        _finish(unit, step.record_id)
    elif step.action == "finalize":
        finalize(unit, step.record_id, require_current=lambda _row: None)
    elif step.action == "archive":
        archive(unit, kind, step.record_id, archive_id=new_id(), reason=step.reason)
    else:
        restore(unit, kind, step.record_id)


def _draft(unit: UnitOfWork, policy_id: str, values: Mapping[str, Any]) -> None:
    write_draft(unit, policy_id, values["content"], require_current=lambda _draft: None)


def _publish(unit: UnitOfWork, policy_id: str, values: Mapping[str, Any]) -> None:
    policy = steps.publish(unit, policy_id, values.get("roles", ACKNOWLEDGING_ROLES))
    version = Versions(unit, policy).last("PUBLISHED")
    if version.acknowledging_roles:
        ask(unit, version, policy)


_POLICY_STEPS: Mapping[str, Callable[[UnitOfWork, str, Mapping[str, Any]], object]] = {
    "draft": _draft,
    "submit": lambda unit, policy_id, _: steps.submit(unit, policy_id),
    "approve": lambda unit, policy_id, values: steps.approve(unit, policy_id, values["version"]),
    "publish": _publish,
    "acknowledge": lambda unit, policy_id, values: acknowledge(unit, policy_id, values["version"]),
    "retire": lambda unit, policy_id, _: steps.retire(unit, policy_id),
}


def _review(unit: UnitOfWork, assessment_id: str, values: Mapping[str, Any]) -> None:
    body = VendorReview.model_validate(values)
    vendors.review(unit, assessment_id, body.model_dump(), require_current=lambda _row: None)


_VENDOR_STEPS: Mapping[str, Callable[[UnitOfWork, str, Mapping[str, Any]], object]] = {
    "send": lambda unit, row_id, _: vendors.send(unit, row_id, require_current=lambda _row: None),
    "answer": lambda unit, row_id, values: write_answers(
        unit, row_id, [Answer(*one) for one in values["answers"]], require_current=lambda _answers: None
    ),
    "submit": lambda unit, row_id, _: vendors.submit(unit, row_id, require_current=lambda _row: None),
    "review": _review,
}


def _ask_vendors(unit: UnitOfWork, one: Mapping[str, Any]) -> None:
    """Write a questionnaire for vendors."""
    create_questionnaire(unit, ORGANIZATION, one["name"], one["parts"], row_id=one["id"])


def _upload(unit: UnitOfWork, name: str, store: FileStore) -> str:
    """Upload a file of evidence, and return its id."""
    content = content_of(name)
    media_type = mimetypes.guess_type(name)[0] or "text/markdown"
    upload = uploads.Upload(f"file-{name.replace('.', '-')}", media_type, len(content), sha256(content).hexdigest())
    store.put(place_of(ORGANIZATION, upload.id, upload.sha256), BytesIO(content))
    return str(uploads.add(unit, ORGANIZATION, name, upload, quota=0).id)


def _finish(unit: UnitOfWork, review_id: str) -> None:
    """Finish a review, which confirms the ratings of all its other risks."""
    query = RiskReviewQuery(organizationId=ORGANIZATION, isOpen="true")
    for one in list_risks(unit, query, review_id)["items"]:
        record_outcome(unit, review_id, OutcomeInput(riskId=one["id"], outcome=CONFIRMED))
    finish(unit, review_id)


def _review_entitlements(unit: UnitOfWork, one: ReviewStep) -> None:
    """Do one thing with an entitlement review."""
    if one.added:
        new = [NewItem.model_validate({name: item.get(name) for name in NEW}) for item in one.added]
        add_items(unit, one.review_id, ItemTable([PlacedItem("", item) for item in new], []))
    elif one.decided:
        there = list_items(unit, ItemQuery(organizationId=ORGANIZATION), one.review_id)["items"]
        ids = {tuple(item[name] for name in NEW[:3]): item["id"] for item in there}
        decisions = [(ids[tuple(item[name] for name in NEW[:3])], item) for item in one.decided]
        decide(
            unit,
            one.review_id,
            [ItemDecision(itemId=id_, decision=item["decision"], change=item.get("change")) for id_, item in decisions],
        )
    else:
        finish_entitlements(unit, one.review_id, ReviewFinish(deadline=one.deadline))


def _link(unit: UnitOfWork, one: Mapping[str, Any]) -> None:
    start, end = End(one["fromKind"], one["fromId"]), End(one["toKind"], one["toId"])
    make_links(unit, ORGANIZATION, [Wanted(start, end, one["relation"], one.get("note"), link_id=one["id"])])


def _name(unit: UnitOfWork, one: Mapping[str, Any]) -> None:
    external = External(one["source"], one["externalId"])
    write_batch(unit, KINDS[one["kind"]], ORGANIZATION, [Item("update", {}, one["recordId"], external)])


def _comment(unit: UnitOfWork, one: Mapping[str, Any]) -> None:
    comments.write(unit, ORGANIZATION, End(one["aboutKind"], one["aboutId"]), one["text"], comment_id=one["id"])


def _state(unit: UnitOfWork, one: history.Statement) -> None:
    if one.title is None:
        versions.approve(unit, unit.scalars(_VERSIONS)[-1])
        return
    body = {"organizationId": ORGANIZATION, "frameworkId": one.framework_id, "title": one.title}
    versions.create(unit, SoaVersionCreation.model_validate(body | {"approverId": one.approver_id}))


def _remind(unit: UnitOfWork, moment: str) -> None:
    while remind(unit, ORGANIZATION, moment):
        pass


def _read(unit: UnitOfWork, moment: str) -> None:
    mark_all(unit, ORGANIZATION, parse_timestamp(moment))


def _archived(transaction: Transaction) -> tuple[type[Restorable], str] | None:
    """An archived record, of the first kind that has one whose slug is free."""
    for kind in Restorable.kinds:
        table = kind.sql()
        statement = select(table.c.id).where(table.c.organization_id == ORGANIZATION, table.c.archived_at.is_not(None))
        if "slug" in table.c:
            live = table.alias("live")
            taken = select(live.c.id).where(
                live.c.organization_id == table.c.organization_id,
                live.c.slug == table.c.slug,
                live.c.archived_at.is_(None),
            )
            statement = statement.where(~taken.exists())
        record_id = transaction.scalar(statement.order_by(table.c.id).limit(1))
        if record_id is not None:
            return kind, record_id
    return None
