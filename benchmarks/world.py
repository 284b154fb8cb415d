"""Generated organizations, frameworks and records as rows of bundles; the same in each run."""

import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import cache
from itertools import accumulate, pairwise
from typing import Any

from normata.core.db.types import format_timestamp
from normata.core.schema.wire import wire_names
from normata.identity.tokens.tokens import digest
from normata.records.base import Restorable

Row = dict[str, Any]
Arrays = Iterable[tuple[str, Iterable[Row]]]
Tokens = Mapping[tuple[int, str], str]  # by user and scope

ROLES = ("owner", "editor", "admin", "viewer", "viewer")  # of the members of an organization
EDITOR = 1  # the position of the member who restores
LIVE_SHARE = 10  # archived records for each live one
_CATEGORY = 15  # controls in a category, including the category

_WORDS = """
    access account alert approval archive asset assurance audit authentication authority availability awareness
    backup baseline boundary breach capacity certificate change classification cloud code communication compliance
    confidentiality configuration consent container continuity contract control credential cryptography custodian
    data database deletion deployment destruction detection device disclosure disposal document duty employee
    encryption endpoint environment escalation event evidence exception facility failover firewall gateway
    governance guideline hardening identity impact incident information infrastructure integrity interface inventory
    isolation journal key labelling law leakage least legal licence lifecycle location logging maintenance malware
    management masking media mobile monitoring network notification objective obligation offboarding onboarding
    operation owner partner password patch penetration personnel physical planning policy privacy privilege
    procedure process procurement protection provider purpose quality recovery redundancy register regulation
""".split()  # noqa: SIM905 - a line each would be a hundred lines


def sentence(rng: random.Random, words: int) -> str:
    return " ".join(rng.choices(_WORDS, k=words)).capitalize()


@cache
def moment(step: int) -> str:
    """One of some thousand timestamps of the last years, in wire form."""
    start = datetime(2024, 1, 1, tzinfo=UTC)
    return format_timestamp(start + timedelta(hours=step * 6, milliseconds=step % 1000))


def made_id(sort: str, number: int) -> str:
    """An id of a usual length, in order of creation, and no UUID, so that it differs from Normata's own ids."""
    return f"{number:08}-{sort}".ljust(20, "-")


def member(organization: int, place: int) -> int:
    """The number of an organization's member, which user and membership share."""
    return organization * len(ROLES) + place


class World:
    """The content of a database, by numbers.

    ``centralized`` and ``own`` are the numbers of controls in the centralized frameworks and in each organization's own
    one. An organization adopts centralized frameworks up to ``adoptable`` controls; the first one adopts all.
    ``matches`` lead to each centralized control. ``assessed`` is the share of controls that organizations assess.
    """

    def __init__(self, centralized: list[int], own: list[int], adoptable: int, matches: int, assessed: float) -> None:
        self.organizations = range(len(own))
        self._centralized, self._matches, self._assessed = range(len(centralized)), matches, assessed
        sizes = [*centralized, *own]
        self.catalogs = [range(first, end) for first, end in pairwise(accumulate(sizes, initial=0))]
        self.adopted: list[list[int]] = []  # the frameworks of each organization
        rng = random.Random(1)
        for organization, controls in enumerate(own):
            chosen, left = [len(centralized) + organization] * bool(controls), adoptable - controls
            for framework in rng.sample(self._centralized, len(centralized)):
                if organization == 0 or sizes[framework] <= left:
                    chosen.append(framework)
                    left -= sizes[framework]
            self.adopted.append(chosen)

    def control_count(self, organization: int) -> int:
        return sum(len(self.catalogs[framework]) for framework in self.adopted[organization])

    def holder(self, index: int) -> int:
        """The organization of a record: every second one is the first's, the others are of the other ones in turn."""
        return 0 if index % 2 == 0 or len(self.organizations) == 1 else 1 + index // 2 % (len(self.organizations) - 1)

    def arrays(self, tokens: Tokens, consulted: Sequence[int] = ()) -> Arrays:
        """All but notifications and records. A further user is a member of the organizations in ``consulted``."""
        users = range(member(len(self.organizations), 0) + 1)
        members = [(one, member(one, place), role) for one in self.organizations for place, role in enumerate(ROLES)]
        members += [(one, users[-1], "editor") for one in consulted]
        ties = ((one, {"userId": made_id("user", user), "role": role}) for one, user, role in members)
        adopted = [(one, framework) for one in self.organizations for framework in self.adopted[one]]
        frameworks = [number for number, controls in enumerate(self.catalogs) if controls]
        yield "organizations", (_named("organization", one, slug=f"organization-{one}") for one in self.organizations)
        yield "users", (_named("user", user, email=f"user{user}@benchmark.example") for user in users)
        yield "memberships", (_of("membership", number, one, **tie) for number, (one, tie) in enumerate(ties))
        yield "accessTokens", (_token(*key, token) for key, token in tokens.items())
        yield "frameworks", map(self._framework, frameworks)
        yield "controls", self._controls()
        yield "controlMatches", self._match_rows()
        yield "frameworkAdoptions", (_adoption(number, *each) for number, each in enumerate(adopted))
        yield "controlCoverages", self._assessments(adopted)

    def _framework(self, number: int) -> Row:
        rng, owner = random.Random(number), number - len(self._centralized)
        return {
            "id": made_id("framework", number),
            "organizationId": None if owner < 0 else made_id("organization", owner),
            "identifier": f"FRAMEWORK-{number}",
            "slug": f"framework-{number}",
            "version": f"{number % 7}.{number % 3}",
            "identifierColor": "#2f6f9f",
            "name": sentence(rng, 2),
            "description": sentence(rng, 40),
        }

    def _controls(self) -> Iterator[Row]:
        rng = random.Random(2)
        for framework, controls in enumerate(self.catalogs):
            for position, control in enumerate(controls):
                category, place = divmod(position, _CATEGORY)
                identifier = f"C.{category + 1}.{place}" if place else f"C.{category + 1}"
                yield {
                    "id": made_id("control", control),
                    "frameworkId": made_id("framework", framework),
                    "parentId": made_id("control", controls[category * _CATEGORY]) if place else None,
                    "identifier": identifier,
                    "name": sentence(rng, 3),
                    "slug": f"{identifier}-{sentence(rng, 2)}".lower().replace(".", "-").replace(" ", "-"),
                    "purpose": sentence(rng, 8),
                    "type": "CONTROL" if place else "CATEGORY",
                    "description": sentence(rng, 14),
                    "isMandatory": rng.random() < 0.7,
                    "createdAt": moment(rng.randrange(1_000)),
                    "updatedAt": moment(rng.randrange(1_000, 2_000)),
                }

    def _match_rows(self) -> Iterator[Row]:
        """Matches to each centralized control from other frameworks; two to four from and to own controls."""
        rng, pairs = random.Random(3), list[tuple[int, int]]()
        for framework in self._centralized:
            others = [self.catalogs[other] for other in self._centralized if other != framework]
            for target in self.catalogs[framework]:
                pairs += [(rng.choice(source), target) for source in rng.sample(others, self._matches)]
        for organization in self.organizations:
            adopted = [self.catalogs[one] for one in self.adopted[organization] if one in self._centralized]
            for control in self.catalogs[len(self._centralized) + organization]:
                for other in rng.choices(adopted, k=2 if organization else 1):
                    pairs += [(control, rng.choice(other)), (rng.choice(other), control)]
        for number, (source, target) in enumerate(pairs):
            ends = {"sourceControlId": made_id("control", source), "targetControlId": made_id("control", target)}
            yield {"id": made_id("match", number), **ends, "matchLevel": rng.choice(("PARTIAL", "FULL"))}

    def _assessments(self, adopted: Iterable[tuple[int, int]]) -> Iterator[Row]:
        rng = random.Random(4)
        every = ((one, control) for one, framework in adopted for control in self.catalogs[framework])
        for number, (organization, control) in enumerate(every):
            if rng.random() < self._assessed:
                values = {"controlId": made_id("control", control), "coverageStatus": rng.choice(("PARTIAL", "FULL"))}
                yield _of("assessment", number, organization, **values, coverageGap=sentence(rng, 8))

    def records(self, kind: type[Restorable], count: int, archived: int) -> Iterator[Row]:
        """Records of a kind: the first ``archived`` are archived, others live; the first live one has the first's slug.

        The responsible member is never the editor, so each restore notifies somebody.
        """
        names, rng = wire_names(kind), random.Random(5)
        texts = [(sentence(rng, 3).lower(), sentence(rng, 40)) for _ in range(1_000)]
        for number in range(count):
            live = number >= archived
            organization = self.holder(number - archived if live else number)
            title, text = texts[number % 1_000]
            row = {
                "slug": f"{kind.__tablename__}-{0 if number == archived else number:07}",
                kind.title_column(): f"{kind.__name__} {number:07} on {title}",
                "created_at": moment(number % 1_000),
                "updated_at": moment(1_500),
                "archived_at": None if live else moment(1_500),
                # columns of some kinds
                kind.responsible: made_id("membership", member(organization, 2 + number % 3)),
                "description": text,
                "findings": text,
                "content": {"blocks": [{"type": "paragraph", "text": text}]},
            }
            values = {names[name]: value for name, value in row.items() if name in names}
            yield _of(kind.__tablename__, number, organization, **values)


def notifications(users: Sequence[int], each: int) -> Iterator[Row]:
    """Notifications as restores write them, the oldest first, so that those of one user are scattered as in reality."""
    for number in range(each * len(users)):
        user, step = users[number % len(users)], number // len(users) * 10
        payload = {
            "titleKey": "notifications.policy.restored.title",
            "bodyKey": "notifications.policy.restored.body",
            "params": {"label": f"Policy {number:07}", "restoredBy": "Alex Approver"},
            "url": f"/policies/{number}/",
            "entityType": "Policy",
            "entityId": str(number),
            "entityLabel": f"Policy {number:07}",
            "entityMeta": None,
        }
        values = {"userId": made_id("user", user), "type": "record.restored", "category": "POLICIES"}
        times = {"readAt": moment(step + 1) if number % 4 else None, "createdAt": moment(step)}
        yield _of("notification", number, user // len(ROLES), **values, **times, payload=payload)


def _of(sort: str, number: int, organization: int, **values: Any) -> Row:
    return {"id": made_id(sort, number), "organizationId": made_id("organization", organization), **values}


def _named(sort: str, number: int, **values: str) -> Row:
    return {"id": made_id(sort, number), "name": f"{sort.capitalize()} {number}", **values}


def _token(user: int, scope: str, token: str) -> Row:
    return {"id": made_id(scope, user), "userId": made_id("user", user), "digest": digest(token), "scope": scope}


def _adoption(number: int, organization: int, one: int) -> Row:
    return _of("adoption", number, organization, frameworkId=made_id("framework", one), adoptedAt=moment(one))
