"""Pydantic's errors as faults, with messages for the sender."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from normata.core.schema.fields import IN_WORDS

_CODES = {
    "missing": "required",
    "string_too_short": "too_short",
    "string_too_long": "too_long",
    "greater_than_equal": "too_small",
    "less_than_equal": "too_large",
    "literal_error": "not_allowed",
    "enum": "not_allowed",
    "string_pattern_mismatch": "malformed",
    "json_invalid": "malformed",
    "extra_forbidden": "unknown",
}


def describe(error: Mapping[str, Any]) -> tuple[str, str, list[str] | None]:
    """One of Pydantic's errors as (code, message for the sender, allowed values or None)."""
    kind, context = error["type"], error.get("ctx", {})
    allowed: list[str] | None = None
    match kind:
        case "missing":
            message = "is required"
        case "greater_than_equal":
            message = f"must be at least {_number(context['ge'])}"
        case "less_than_equal":
            message = f"must be at most {_number(context['le'])}"
        case "string_too_short":
            message = f"must have at least {_characters(context['min_length'])}"
        case "string_too_long":
            message = f"must have at most {_characters(context['max_length'])}"
        case "literal_error":
            allowed = re.findall(r"'([^']*)'", context["expected"])
            message = f"must be one of {', '.join(allowed)}"
        case "string_pattern_mismatch":
            message = IN_WORDS.get(context["pattern"], f"must match {context['pattern']}")
        case "value_error":
            message = str(context["error"])
        case "extra_forbidden":
            message = "is not a known field"
        case "int_parsing" | "int_type" | "int_from_float" | "int_parsing_size":
            message = "must be an integer"
        case "bool_parsing" | "bool_type":
            message, allowed = "must be true or false", ["true", "false"]
        case "float_parsing" | "float_type" | "finite_number":
            message = "must be a number"
        case "string_type":
            message = "must be a string"
        case "json_invalid":
            message = "is not valid JSON"
        case "model_type" | "model_attributes_type" | "dict_type":
            message = "must be a JSON object"
        case _:
            message = str(error["msg"])[:1].lower() + str(error["msg"])[1:]
    return _CODES.get(kind, "invalid"), message, allowed


def _number(bound: float) -> str:
    return str(int(bound) if bound == int(bound) else bound)


def _characters(count: int) -> str:
    return "1 character" if count == 1 else f"{count} characters"
