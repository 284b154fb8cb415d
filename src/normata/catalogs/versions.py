"""The version of a standard, found in its name."""

from __future__ import annotations

import re

_NUMBER = r"[0-9]+(?:\.[0-9]+)*"
_YEAR = r"(?:19|20)[0-9]{2}"

# In this order: "ISO/IEC 27001:2022", "CIS Controls v8", "NIST-CSF-2.0", "SP 800-53 revision 5", "BSI-C5-2020".
_FORMS = tuple(
    re.compile(form, re.IGNORECASE)
    for form in (
        rf":\s?({_YEAR}(?:-[01][0-9](?:-[0-3][0-9])?)?)(?![0-9]|/[0-9])",
        rf"(?<![a-z0-9])v(?:er(?:sion|\.)?|\.)?[\s_-]?({_NUMBER})(?![a-z0-9/])",
        r"(?<![a-z0-9.])([0-9]{1,2}(?:\.[0-9]+)+)\s*$",
        rf"(?<![a-z0-9])r(?:ev(?:ision|\.)?)[\s_-]?({_NUMBER})(?![a-z0-9/])",
        rf"(?<![a-z0-9])({_YEAR}(?:-[01][0-9](?:-[0-3][0-9])?)?)\s*\)?\s*$",
    )
)


def version_in(*names: str | None) -> str | None:
    """The version in the first of these names that has one; null if none has."""
    for name in names:
        for form in _FORMS:
            found = form.search(name or "")
            if found:
                return found[1]
    return None
