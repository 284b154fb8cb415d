"""Risks with ratings, made over HTTP, and what asks about them."""

from __future__ import annotations

import time
from typing import Any

from normata.core.db.types import now
from normata.records.assurance import Risk
from tests.records.living import make
from tests.served import Served
from tests.world import ALPHA

Json = dict[str, Any]


def add(service: Served, **values: Any) -> str:
    """The id of a new risk. A rating is given as a pair: ``residual=(2, 3)``."""
    for of in ("inherent", "residual", "target"):
        if of in values:
            values[f"{of}Probability"], values[f"{of}Impact"] = values.pop(of)
    answer = make(service, Risk, service.bearer("editor"), **{"name": "Risk"} | values)
    assert answer.status_code == 201, answer.text
    return str(answer.json()["id"])


def read(service: Served, path: str, user: str = "viewer", **query: Any) -> Json:
    """The answer to a request about the organization."""
    answer = service.client.get(path, params={"organizationId": ALPHA} | query, headers=service.bearer(user))
    assert answer.status_code == 200, answer.text
    found: Json = answer.json()
    return found


def link(service: Served, control_id: str, risk_id: str) -> str:
    """The id of a new link, with which a control treats a risk."""
    ends = {"from": {"kind": "controls", "id": control_id}, "to": {"kind": "risks", "id": risk_id}}
    body = {"organizationId": ALPHA, "relation": "TREATS", **ends}
    answer = service.client.post("/links/", json=body, headers=service.bearer("editor"))
    assert answer.status_code == 201, answer.text
    return str(answer.json()["id"])


def moment() -> str:
    """A moment after all that was done, and before all that is to come: both have milliseconds."""
    time.sleep(0.002)
    found = now()
    time.sleep(0.002)
    return found
