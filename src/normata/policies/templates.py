"""The templates of policies: their texts, the controls that each helps with, and the names that are filled in."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

ISO_27001, CSF = "ISO/IEC 27001:2022", "NIST CSF 2.0"

# What is written in the text of a template, in double braces, and filled in when a policy is created from it.
PLACEHOLDERS = ("organization", "approver", "date")

_MARKUP = re.compile(r"[\\`*\[\]<>~]|\b_|_\b")  # what Markdown takes for more than a letter within a line

_TEXTS = Path(__file__).with_name("template_texts")


class HelpedControl(NamedTuple):
    """A control that a policy helps with: its framework and its identifier there."""

    framework: str
    identifier: str


class Template(NamedTuple):
    """A text that policies begin with."""

    id: str
    title: str
    controls: Sequence[HelpedControl]

    @property
    def text(self) -> str:
        """The text, in Markdown, with its placeholders."""
        return _text(self.id)

    def filled(self, values: Mapping[str, str]) -> str:
        """The text with a value for each of ``PLACEHOLDERS``, which is not read as markup."""
        return re.sub(r"\{\{(\w+)\}\}", lambda found: _MARKUP.sub(r"\\\g<0>", values[found[1]]), self.text)


@cache
def _text(template_id: str) -> str:
    return (_TEXTS / f"{template_id}.md").read_text("utf-8").rstrip("\n")


def is_of(framework: str, identifier: str, name: str, version: str | None) -> bool:
    """Whether a stored framework, by what it says of itself, is one of those whose controls templates name."""
    says = f"{identifier} {name} {version or ''}".casefold()
    wanted = {ISO_27001: r"27001.*2022", CSF: r"(?:csf|cybersecurity framework).*2\.0"}
    return re.search(wanted[framework], says) is not None


def _template(template_id: str, title: str, iso_27001: str, csf: str) -> Template:
    named = ((ISO_27001, iso_27001), (CSF, csf))
    found = [HelpedControl(framework, one) for framework, identifiers in named for one in identifiers.split()]
    return Template(template_id, title, found)


# The most general first.
TEMPLATES: Mapping[str, Template] = {
    one.id: one
    for one in (
        _template(
            "information-security", "Information Security",
            "A.5.1 A.5.2 A.5.3 A.5.4 A.5.5 A.5.6 A.5.31 A.5.35 A.5.36",
            "GV.PO-01 GV.PO-02 GV.RR-01 GV.RR-02 GV.RM-01 GV.RM-02 GV.OV-01 ID.IM-01",
        ),
        _template(
            "acceptable-use", "Acceptable Use",
            "A.5.10 A.5.14 A.6.3 A.6.7 A.6.8 A.7.7 A.8.1 A.8.7",
            "PR.AT-01 PR.AA-01 PR.DS-01 PR.DS-02 GV.PO-01",
        ),
        _template(
            "access-control", "Access Control",
            "A.5.3 A.5.15 A.5.16 A.5.17 A.5.18 A.8.2 A.8.3 A.8.4 A.8.5",
            "PR.AA-01 PR.AA-02 PR.AA-03 PR.AA-04 PR.AA-05",
        ),
        _template(
            "asset-management", "Asset Management",
            "A.5.9 A.5.10 A.5.11 A.5.12 A.5.13 A.7.10 A.7.14 A.8.10",
            "ID.AM-01 ID.AM-02 ID.AM-03 ID.AM-04 ID.AM-05 ID.AM-07 ID.AM-08",
        ),
        _template(
            "backup", "Backup and Restoration",
            "A.8.13 A.8.14 A.5.29 A.5.33",
            "PR.DS-11 PR.DS-01 RC.RP-03 RC.RP-05 ID.IM-02",
        ),
        _template(
            "business-continuity", "Business Continuity",
            "A.5.29 A.5.30 A.8.14 A.5.37",
            "GV.OC-04 GV.OC-05 ID.IM-02 ID.IM-04 PR.IR-03 PR.IR-04 RC.RP-01 RC.RP-02 RC.CO-03",
        ),
        _template(
            "cryptography", "Cryptography and Keys",
            "A.8.24 A.5.14 A.5.31 A.8.5",
            "PR.DS-01 PR.DS-02 PR.DS-10 ID.AM-08",
        ),
        _template(
            "incident-response", "Incident Response",
            "A.5.5 A.5.24 A.5.25 A.5.26 A.5.27 A.5.28 A.6.8",
            "RS.MA-01 RS.MA-02 RS.MA-03 RS.AN-03 RS.AN-07 RS.CO-02 RS.CO-03 RS.MI-01 RS.MI-02 ID.IM-03 ID.IM-04",
        ),
        _template(
            "logging-and-monitoring", "Logging and Monitoring",
            "A.8.15 A.8.16 A.8.17 A.8.6 A.5.7 A.5.28",
            "PR.PS-04 DE.CM-01 DE.CM-03 DE.CM-06 DE.CM-09 DE.AE-02 DE.AE-03 DE.AE-06 PR.IR-04",
        ),
        _template(
            "physical-security", "Physical Security",
            "A.7.1 A.7.2 A.7.3 A.7.4 A.7.5 A.7.6 A.7.7 A.7.8 A.7.9 A.7.11 A.7.12 A.7.13 A.7.14",
            "PR.AA-06 PR.IR-02 DE.CM-02",
        ),
        _template(
            "secure-development", "Secure Development",
            "A.5.8 A.8.4 A.8.8 A.8.9 A.8.25 A.8.26 A.8.27 A.8.28 A.8.29 A.8.30 A.8.31 A.8.32 A.8.33",
            "PR.PS-01 PR.PS-02 PR.PS-06 ID.RA-01 ID.RA-07 ID.RA-08 ID.RA-09",
        ),
        _template(
            "supplier-security", "Security of Suppliers",
            "A.5.19 A.5.20 A.5.21 A.5.22 A.5.23",
            "GV.SC-01 GV.SC-02 GV.SC-03 GV.SC-04 GV.SC-05 GV.SC-06 GV.SC-07 GV.SC-08 GV.SC-10 ID.RA-10",
        ),
    )
}  # fmt: skip
