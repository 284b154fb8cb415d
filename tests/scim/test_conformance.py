"""scim2-tester against the shipped application: it asks what RFC 7643 and RFC 7644 demand, and finds no fault."""

from __future__ import annotations

from itertools import count
from typing import Annotated, Any

import httpx2
import pytest
from pydantic import Field
from scim2_client.engines.httpx2 import SyncSCIMClient
from scim2_models import Required, ScimProvider, Uniqueness
from scim2_tester import Status, check_server

from normata.scim.resources import PROVIDER, Group
from normata.scim.resources import User as ServedUser
from normata.settings import Settings
from tests.databases import on_both
from tests.served import Headers, Served

_NUMBERS = count()
_FINE = (Status.SUCCESS, Status.COMPLIANT, Status.ACCEPTABLE, Status.SKIPPED)


class Addresses(list[str]):
    """An address that nobody has yet, each time that one is drawn."""

    def __len__(self) -> int:
        return 1

    def __getitem__(self, _place: Any) -> Any:
        return f"person-{next(_NUMBERS)}@alpha.example"


class User(ServedUser):
    """A user as a client describes it that knows what the schema cannot say.

    User names are addresses. ``active`` always has a value: once it is removed, it has the one before (RFC 7643,
    section 2.5).
    """

    user_name: Annotated[str | None, Uniqueness.server, Required.true] = Field(None, examples=Addresses())
    active: Annotated[bool | None, Required.true] = None


@pytest.mark.long
@on_both
def test_the_tester_finds_nothing(service: Served, provider: Headers) -> None:
    transport = service.client._transport  # of the application in this process
    address = f"{Settings().public_url.rstrip('/')}/scim/v2"
    with httpx2.Client(transport=transport, base_url=address, headers=provider) as client:
        described = ScimProvider([User, Group], config=PROVIDER.config)
        results = check_server(SyncSCIMClient(client, provider=described))
    assert len(results) > 60
    assert [f"{one.title}: {one.reason}" for one in results if one.status not in _FINE] == []
    assert not [one.title for one in results if one.status is Status.SKIPPED and "crud" in (one.tags or ())]
