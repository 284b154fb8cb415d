"""The parts of the OpenAPI document that all changes share: dry runs and idempotency keys."""

from __future__ import annotations

from typing import Any

from normata.core.http.operation import ChangeOperation

TRYING_AND_RETRYING = """\
## Trying and retrying

`?dryRun=true` on whatever changes something says what the request would do, and does nothing of it. Everything is
carried out and taken back: the answer has what the request would be answered with, every change that would follow, and
whom it would notify. `coverage` has the controls whose effective status would be another one, `conflicts` those whose
assessments would come into conflict, or be in conflict no longer, and `stale` those whose assessments would become
stale. What the request would be refused for, its dry run is refused for.

With an `Idempotency-Key`, a `POST` can be sent again when no answer has come. A new text for each request, such as a
UUID, is its key. For 24 hours the same request with the same key gets the first answer again, and nothing is done
twice. The same key with another path, query or body is answered 422 `key_reused`, and while the first is in progress
409 `request_in_progress`. A request that was refused has not used up its key. A key is its user's own, and a dry run
uses up none.
"""

_DRY_RUN = {
    "name": "dryRun",
    "in": "query",
    "description": "Whether to say only what the request would do, and do nothing of it.",
    "required": False,
    "schema": {"type": "boolean", "default": False},
}
DRY_RUN_ANSWER = "With `dryRun=true`: what would be done."
_IDEMPOTENCY_KEY = {
    "name": "Idempotency-Key",
    "in": "header",
    "description": (
        "Names this request. Who sends it again with the same key within 24 hours gets the first answer again, and"
        " nothing is done twice."
    ),
    "required": False,
    "schema": {
        "type": "string",
        "minLength": 1,
        "maxLength": 255,
        # Text without control characters, or a quoted string (RFC 9651).
        "pattern": r"""^([^" \x00-\x1f\x7f-\x9f][^\x00-\x1f\x7f-\x9f]*|"([ !#-\[\]-~]|\\["\\])+")$""",
    },
}
_NONE: dict[str, Any] = {"count": 0, "controls": []}
_DRY_RUN_EXAMPLE: dict[str, Any] = {
    "dryRun": True,
    "status": 200,
    "answer": None,
    "changes": [],
    "notifications": [],
    "coverage": _NONE,
    "conflicts": {"appearing": _NONE, "disappearing": _NONE},
    "stale": _NONE,
}


def change_parameters(operation: ChangeOperation) -> list[dict[str, Any]]:
    """The parameters of every change besides its declared ones."""
    return [_DRY_RUN, *([_IDEMPOTENCY_KEY] if operation.takes_key else [])]


def add_dry_run(responses: dict[str, Any], operation: ChangeOperation) -> None:
    """Add the answer of a dry run: another response besides a 201, else an alternative schema."""
    dry_run = {"$ref": "#/components/schemas/DryRun"}
    content = responses["200"].setdefault("content", {}).setdefault("application/json", {})
    if operation.creates and operation.found is None:
        content["schema"] = dry_run
        content["example"] = _DRY_RUN_EXAMPLE | {"status": 201, "answer": operation.example}
    else:
        # Some tools do not accept a list of types within a choice.
        own = {
            name: value for name, value in content["schema"].items() if operation.answer is not None or name != "type"
        }
        content["schema"] = {"anyOf": [own, dry_run]}
