"""The pages on which a vendor answers a questionnaire, by a link and without an account.

The address with the secret only sets a cookie and leads on, so that no further address has the secret. The cookie is
sent to these pages alone. Whatever reads for a page takes the digest of the secret, and finds one assessment.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from starlette.responses import Response

from normata.console.page_request import PageRequest
from normata.console.texts import text
from normata.core.changes.source import FaultyInput
from normata.core.changes.unit_of_work import UnitOfWork
from normata.core.db.types import now
from normata.core.http.problems import InvalidRequest
from normata.identity.secrets import digest_of, is_secret
from normata.vendors import links
from normata.vendors.answers import Answer
from normata.vendors.operations import MAX_ANSWER
from normata.vendors.questions import MAX_QUESTIONS, NOT_APPLICABLE, SCORES
from normata.vendors.rules import SENT
from normata.vendors.scoring import Score, score_of

COOKIE = "normata-vendor"
FINISH = f"{links.PATH}finish/"
_MOST_FIELDS = 2 * MAX_QUESTIONS + 10

_STATUS: Mapping[str, int] = {
    "unknown": 404,
    "other": 409,
    "revoked": 410,
    "expired": 410,
    "closed": 410,
    "submitted": 200,
}


@dataclass(frozen=True, slots=True)
class Found:
    """What a secret leads to: the ``link`` with its assessment, null if there is none, and the state of both.

    The state is ``open``, or why nothing can be answered. ``shown`` is the assessment that a form is about: whoever has
    opened two links has the cookie of the second one on the pages of both.
    """

    secret: str
    link: Any = None
    shown: str | None = None

    @property
    def state(self) -> str:
        link = self.link
        if link is None:
            return "unknown"
        if self.shown not in (None, link.assessment_id):
            return "other"
        if link.revoked_at is not None:
            return "revoked"
        if link.expires_at <= now():
            return "expired"
        if link.archived_at is not None:
            return "closed"
        return "open" if link.status == SENT else "submitted"

    @property
    def parts(self) -> Sequence[Mapping[str, Any]]:
        found: Sequence[Mapping[str, Any]] = json.loads(self.link.parts)
        return found


async def open_link(page_request: PageRequest) -> Response:
    """Exchange the secret of an address for a cookie. Nothing is used up, because mail scanners open links, too."""
    secret = page_request.query.get("secret", "")
    await _count(page_request, secret)
    found = await _find(page_request, secret)
    if found.state not in ("open", "submitted"):
        return _closed(page_request, found.state)
    end = datetime.fromisoformat(found.link.expires_at) - datetime.fromisoformat(now())
    return page_request.redirect(links.PATH, _cookie(page_request, secret, max(int(end.total_seconds()), 1)))


async def show(page_request: PageRequest) -> Response:
    """Show the questions of one part, with the answers that are there."""
    found = await _of_cookie(page_request)
    if found.state != "open":
        return _closed(page_request, found.state)
    return await _part_page(page_request, found, _number(page_request, found.parts))


async def save(page_request: PageRequest) -> Response:
    """Store the answers to one part, and go on to the next one, or to the end."""
    found = await _of_cookie(page_request)
    await _count(page_request, found.secret)
    if found.state != "open":
        return _closed(page_request, found.state, is_change=True)
    pairs = dict(await page_request.form_pairs(_MOST_FIELDS))
    number = _number(page_request, found.parts)
    answers = list(_answers(found.parts[number]["questions"], pairs))
    response = await _make(page_request, found, lambda unit: links.answer(unit, found.link, answers))
    if response is not None:
        return response
    is_last = number + 1 == len(found.parts)
    return page_request.redirect(FINISH if is_last else f"{links.PATH}?part={number + 2}")


async def show_finish(page_request: PageRequest) -> Response:
    """Show what is answered and what is not, and ask whether to submit."""
    found = await _of_cookie(page_request)
    if found.state != "open":
        return _closed(page_request, found.state)
    answers = await _stored(page_request, found)
    return page_request.page("vendor/finish.html", **_shared(found, answers), current=-1, finish=FINISH)


async def finish(page_request: PageRequest) -> Response:
    """Submit the answers. They stay as they are from then on."""
    found = await _of_cookie(page_request)
    await _count(page_request, found.secret)
    if found.state != "open":
        return _closed(page_request, found.state, is_change=True)
    response = await _make(page_request, found, lambda unit: links.submit(unit, found.link))
    return response or page_request.redirect(links.PATH)


async def _make(page_request: PageRequest, found: Found, work: Callable[[UnitOfWork], None]) -> Response | None:
    """Make a change for the vendor. Returns the page that says why it cannot be made, or null."""
    try:
        await page_request.console.services.changes.make(
            work,
            actor=links.actor_of(page_request.context.request_id, page_request.address),
            scope=links.reach_of(found.link),
            writes=links.PAGE_WRITES,
        )
    except links.LinkClosed:  # somebody was faster
        state = (await _find(page_request, found.secret)).state
        return _closed(page_request, "submitted" if state == "open" else state, is_change=True)
    except FaultyInput:
        raise InvalidRequest(text("problem.form")) from None
    return None


async def _find(page_request: PageRequest, secret: str) -> Found:
    if not is_secret(secret):
        return Found(secret)
    rows = await page_request.console.services.database.look_up(links.VENDOR_LINK_LOOKUP, digest_of(secret))
    return Found(secret, rows[0] if rows else None)


async def _of_cookie(page_request: PageRequest) -> Found:
    name = page_request.console.site.cookie_name(COOKIE, is_bound=True)
    found = await _find(page_request, page_request.request.cookies.get(name, ""))
    return replace(found, shown=page_request.query.get("assessment"))


async def _stored(page_request: PageRequest, found: Found) -> Mapping[str, Any]:
    digest = digest_of(found.secret)
    rows = await page_request.console.services.database.look_up(links.VENDOR_ANSWERS_LOOKUP, digest)
    return {row.question: row for row in rows}


async def _count(page_request: PageRequest, secret: str) -> None:
    """Count the request of an address, and of a link. Raises SignInRefused."""
    await page_request.console.throttles.count(page_request.address, link=digest_of(secret))


def _cookie(page_request: PageRequest, secret: str, max_age: int) -> Mapping[str, str]:
    path = f"{page_request.context.prefix}{links.PATH}"
    return {"Set-Cookie": page_request.console.site.cookie(COOKIE, secret, max_age=max_age, path=path)}


def _number(page_request: PageRequest, parts: Sequence[Any]) -> int:
    """The index of the part in the address; the first one if it names none."""
    wanted = page_request.query.get("part", "1")
    number = int(wanted) if wanted.isascii() and wanted.isdigit() and len(wanted) < 4 else 1
    return min(max(number, 1), len(parts)) - 1


def _answers(questions: Sequence[Mapping[str, Any]], pairs: Mapping[str, str]) -> list[Answer]:
    """The answers in a form to the questions of a part. Raises InvalidRequest."""
    found = []
    for question in questions:
        key = question["id"]
        if f"value.{key}" not in pairs and f"remark.{key}" not in pairs:
            continue
        value, remark = (pairs.get(f"{name}.{key}", "").replace("\r\n", "\n").strip() for name in ("value", "remark"))
        if max(len(value), len(remark)) > MAX_ANSWER:
            raise InvalidRequest(text("vendor_page.too_long", most=f"{MAX_ANSWER:,}"))
        found.append(Answer(key, value or None, remark or None))
    return found


async def _part_page(page_request: PageRequest, found: Found, number: int) -> Response:
    answers = await _stored(page_request, found)
    part = found.parts[number]
    return page_request.page(
        "vendor/part.html",
        **_shared(found, answers),
        current=number,
        part=part,
        questions=[(question, options_of(question), answers.get(question["id"])) for question in part["questions"]],
        most=MAX_ANSWER,
    )


def options_of(question: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The answers that a question offers, each with its words; none if it is answered with a text."""
    if question["kind"] == "TEXT":
        return []
    if question["kind"] == "CHOICE":
        values = [(choice["text"], choice["text"]) for choice in question["choices"]]
    else:
        values = [(value, text(f"vendor_answer.{value}")) for value in SCORES]
    return [*values, (NOT_APPLICABLE, text(f"vendor_answer.{NOT_APPLICABLE}"))]


def _shared(found: Found, answers: Mapping[str, Any]) -> dict[str, Any]:
    values = {key: row.value for key, row in answers.items()}
    counts = [score_of(part["questions"], values) for part in found.parts]
    return {
        "assessment": found.link.assessment_id,
        "organization": found.link.organization_name,
        "title": found.link.title,
        "deadline": found.link.deadline,
        "parts": list(zip([part["name"] for part in found.parts], counts, strict=True)),
        "answered": sum(one.answered for one in counts),
        "questions_in_all": sum(map(_size, counts)),
        "here": links.PATH,
        "visitor": None,
    }


def _size(score: Score) -> int:
    return score.answered + score.unanswered


def _closed(page_request: PageRequest, state: str, *, is_change: bool = False) -> Response:
    """The page that says why there is nothing to answer."""
    status = 409 if is_change and state == "submitted" else _STATUS[state]
    return page_request.page("vendor/closed.html", status=status, state=state, visitor=None)
