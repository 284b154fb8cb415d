"""Pages ask the database the same number of times, however much there is to show."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from normata.events.sealing import seal_all_now
from tests.console.app.conftest import People
from tests.console.app.pages import READ, address_of
from tests.core.http.counting import counting
from tests.served import served
from tests.world import ALPHA as ALPHA_ID

_MANY = 40
_PAGES = tuple(page for page in READ if page.startswith(("due/", "inbox/", "events/", "settings/", "upload/")))


def _much(numbers: range) -> dict[str, list[dict[str, Any]]]:
    """More of everything that these pages show."""
    return {
        "users": [{"id": f"u{n}", "email": f"u{n}@x.example", "name": f"User {n}"} for n in numbers]
        + [{"id": f"robot{n}", "organizationId": ALPHA_ID, "name": f"Robot {n}"} for n in numbers],
        "memberships": [
            {"id": f"{kind}m{n}", "organizationId": ALPHA_ID, "userId": f"{kind}{n}", "role": "viewer"}
            for n in numbers
            for kind in ("u", "robot")
        ],
        "frameworks": [{"id": f"f{n}", "organizationId": ALPHA_ID, "name": f"Framework {n}"} for n in numbers],
        "tasks": [
            {"id": f"t{n}", "organizationId": ALPHA_ID, "title": f"Task {n}", "deadline": "2026-01-01"}
            | {"assigneeMemberId": "member-editor"}
            for n in numbers
        ],
        "notifications": [
            {"id": f"n{n}", "organizationId": ALPHA_ID, "userId": "user-owner", "createdAt": "2026-05-01"}
            for n in numbers
        ],
    }


@pytest.fixture(scope="module")
def counts(shared_url: str) -> Iterator[dict[str, tuple[int, int]]]:
    """The statements of each page before and after there is much to show."""
    with served(shared_url) as instance, pytest.MonkeyPatch.context() as patch:
        owner = People(instance)["owner"]

        def count() -> dict[str, int]:
            found = {}
            for page in _PAGES:
                owner.get(address_of(page))  # what is made once is made now
                with counting(instance.app.services.database, patch) as asked:
                    assert owner.get(address_of(page)).status_code == 200
                found[page] = len(asked.statements)
            return found

        instance.load(_much(range(1)))
        instance.token("owner", organization=ALPHA_ID)
        seal_all_now(instance.database)  # a log that is not empty takes one statement more
        before = count()
        instance.load(_much(range(1, _MANY)))
        for user in ("editor", "viewer", "admin"):
            for _ in range(5):
                instance.token(user, organization=ALPHA_ID)
        after = count()
        yield {page: (before[page], after[page]) for page in _PAGES}


@pytest.mark.parametrize("page", _PAGES)
def test_more_to_show_is_no_more_to_ask(page: str, counts: dict[str, tuple[int, int]]) -> None:
    before, after = counts[page]
    assert 1 <= after <= before <= 20
