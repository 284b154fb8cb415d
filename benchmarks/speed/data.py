"""The data that is asked for: bundles, made from a seed, the same every time."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.scale import moment, sentence
from normata.identity.tokens import digest, generate

Row = dict[str, Any]

FRAMEWORKS = 5
MATCHES = 4  # into each control
_CATEGORY = 15  # a category and what it holds
_STATED = 0.3  # share of controls that the organization says something of
_NOTIFICATIONS = 300
_BLOCK_WORDS = 40

# No id here looks like a UUID: those that do are the product's own, see `statements.py`.
ORGANIZATION = "org-of-the-benchmark"
_CALLER, APPROVER = "user-caller", "user-approver"
_CALLER_MEMBER, _APPROVER_MEMBER = "member-caller", "member-approver"


@dataclass(frozen=True, slots=True)
class Tokens:
    """What a caller shows; made anew for every run."""

    reader: str
    writer: str


def make_tokens() -> Tokens:
    """Tokens of the caller."""
    return Tokens(generate(), generate())


def policy_id(number: int) -> str:
    """The id of an archived policy. All are of one length."""
    return f"policy-{number:07}"


@dataclass(frozen=True, slots=True)
class World:
    """What one database holds: an organization with its frameworks, and policies that it has archived."""

    controls: int
    policies: int
    tokens: Tokens

    @property
    def matches(self) -> int:
        """How many there are in all."""
        return self.controls * MATCHES

    def write(self, path: Path) -> None:
        """Write the bundle. Each array is made and written on its own, so that no more than one is held."""
        with path.open("w", encoding="utf-8") as file:
            file.write("{")
            for number, (array, rows) in enumerate(self._arrays()):
                file.write(f"{',' if number else ''}{json.dumps(array)}:{json.dumps(list(rows))}\n")
            file.write("}")

    def _arrays(self) -> Iterator[tuple[str, Iterator[Row]]]:
        yield "organizations", iter([{"id": ORGANIZATION, "name": "Benchmark", "slug": "benchmark"}])
        yield "users", _users()
        yield "memberships", _memberships()
        yield "accessTokens", self._tokens()
        yield "frameworks", (_framework(number) for number in range(FRAMEWORKS))
        yield "controls", self._controls()
        yield "controlMatches", self._matches()
        yield "frameworkAdoptions", _adoptions()
        yield "controlCoverages", self._statements()
        yield "policies", (_policy(number) for number in range(self.policies))
        yield "notifications", (_notification(number) for number in range(_NOTIFICATIONS))

    def _tokens(self) -> Iterator[Row]:
        for scope, token in (("read", self.tokens.reader), ("write", self.tokens.writer)):
            yield {
                "id": f"token-{scope}",
                "userId": _CALLER,
                "digest": digest(token),
                "scope": scope,
                "createdAt": moment(0),
            }

    def _places(self) -> Iterator[tuple[int, int]]:
        for framework in range(FRAMEWORKS):
            for position in range(self.controls // FRAMEWORKS):
                yield framework, position

    def _controls(self) -> Iterator[Row]:
        rng = random.Random("controls")
        for framework, position in self._places():
            category = position - position % _CATEGORY
            identifier = _identifier(position)
            yield {
                "id": _control_id(framework, position),
                "frameworkId": _framework_id(framework),
                "parentId": None if category == position else _control_id(framework, category),
                "identifier": identifier,
                "name": sentence(rng, 3),
                "slug": f"{identifier}-{'-'.join(sentence(rng, 2).split())}".lower().replace(".", "-"),
                "purpose": sentence(rng, 8),
                "type": "CATEGORY" if category == position else "CONTROL",
                "description": sentence(rng, 14),
                "isMandatory": rng.random() < 0.7,
                "createdAt": moment(rng.randrange(1_000)),
                "updatedAt": moment(rng.randrange(1_000, 2_000)),
            }

    def _matches(self) -> Iterator[Row]:
        """Into each control one from each of the other frameworks, as there are four."""
        rng = random.Random("matches")
        for framework, position in self._places():
            for other in range(FRAMEWORKS):
                if other != framework:
                    source = rng.randrange(self.controls // FRAMEWORKS)
                    yield {
                        "id": f"match-{framework}-{position:05}-{other}",
                        "sourceControlId": _control_id(other, source),
                        "targetControlId": _control_id(framework, position),
                        "matchLevel": rng.choice(("PARTIAL", "FULL")),
                    }

    def _statements(self) -> Iterator[Row]:
        rng = random.Random("statements")
        for framework, position in self._places():
            if rng.random() < _STATED:
                status = rng.choice(("PARTIAL", "FULL"))
                yield {
                    "id": f"statement-{framework}-{position:05}",
                    "organizationId": ORGANIZATION,
                    "controlId": _control_id(framework, position),
                    "coverageStatus": status,
                    "coverageGap": sentence(rng, 8) if status == "PARTIAL" else None,
                }


def _identifier(position: int) -> str:
    category, place = divmod(position, _CATEGORY)
    return f"C.{category + 1}.{place}" if place else f"C.{category + 1}"


def _framework_id(number: int) -> str:
    return f"framework-{number}-2024"


def _control_id(framework: int, position: int) -> str:
    return f"{_framework_id(framework)}:{_identifier(position)}"


def _users() -> Iterator[Row]:
    yield {"id": _CALLER, "email": "caller@benchmark.example", "name": "Casey Caller"}
    yield {"id": APPROVER, "email": "approver@benchmark.example", "name": "Alex Approver"}


def _memberships() -> Iterator[Row]:
    for member, user in ((_CALLER_MEMBER, _CALLER), (_APPROVER_MEMBER, APPROVER)):
        yield {"id": member, "organizationId": ORGANIZATION, "userId": user, "role": "editor"}


def _framework(number: int) -> Row:
    rng = random.Random(f"framework {number}")
    return {
        "id": _framework_id(number),
        "identifier": f"FRAMEWORK-{number}",
        "slug": f"framework-{number}",
        "version": "2024",
        "identifierColor": "#2f6f9f",
        "name": sentence(rng, 2),
        "description": sentence(rng, 40),
        "createdAt": moment(number),
        "updatedAt": moment(number + 100),
        "isCentralized": True,
    }


def _adoptions() -> Iterator[Row]:
    for number in range(FRAMEWORKS):
        yield {
            "id": f"adoption-{number}",
            "organizationId": ORGANIZATION,
            "frameworkId": _framework_id(number),
            "adoptedAt": moment(number + 200),
        }


def _policy(number: int) -> Row:
    """Somebody else than the caller answers for it, so that a restore has somebody to tell."""
    rng = random.Random(number)
    return {
        "id": policy_id(number),
        "organizationId": ORGANIZATION,
        "slug": f"policy-{number:07}",
        "title": f"Policy {number:07} on {sentence(rng, 3).lower()}",
        "order": number,
        "status": "PUBLISHED",
        "content": {"blocks": [{"type": "paragraph", "text": sentence(rng, _BLOCK_WORDS)}]},
        "approverId": _APPROVER_MEMBER,
        "currentVersion": "1.0",
        "createdAt": moment(number % 1_000),
        "updatedAt": moment(1_500),
        "archivedAt": moment(1_500),
    }


def _notification(number: int) -> Row:
    label = f"Policy {number:07}"
    return {
        "id": f"notification-{number}",
        "organizationId": ORGANIZATION,
        "userId": _CALLER,
        "type": "record.restored",
        "category": "POLICIES",
        "payload": {
            "titleKey": "notifications.policy.restored.title",
            "bodyKey": "notifications.policy.restored.body",
            "params": {"label": label, "restoredBy": "Alex Approver"},
            "url": f"/policies/{number}/",
            "entityType": "Policy",
            "entityId": str(number),
            "entityLabel": label,
            "entityMeta": None,
        },
        "readAt": None,
        "createdAt": moment(number),
    }
