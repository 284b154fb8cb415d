"""The version of a standard in what people call it."""

from __future__ import annotations

import pytest

from normata.catalogs.versions import version_in


@pytest.mark.parametrize(
    ("name", "version"),
    [
        ("ISO/IEC 27001:2022", "2022"),
        ("ISO/IEC 27001:2022/Amd 1:2024", "2022"),
        ("ISO 27001: 2013", "2013"),
        ("IEC 62443-3-3:2013-08", "2013-08"),
        ("NIST-CSF-2.0", "2.0"),
        ("NIST CSF version 2.0", "2.0"),
        ("NIST CSF v1.1", "1.1"),
        ("NIST-SP-800-53-rev5", "5"),
        ("NIST SP 800-53 revision 5", "5"),
        ("NIST SP-800-66 rev2 (HIPAA)", "2"),
        ("SP 800-171 Rev. 3", "3"),
        ("CIS Controls v8", "8"),
        ("PCI DSS 4.0.1", "4.0.1"),
        ("aircyber-v1.5.2", "1.5.2"),
        ("ISM_framework_v2", "2"),
        ("BSI-C5-2020", "2020"),
        ("ccb-cff-2023-03-01", "2023-03-01"),
        # Numbers that are names, parts of laws or parts of documents, and no versions.
        ("SP 800-53", None),
        ("SOC2", None),
        ("NIS2", None),
        ("FEDRAMP-20X", None),
        ("Loi 09-08", None),
        ("Directive (EU) 2022/2555", None),
        ("annex-nis2-regulation--2024-2690", None),
        ("45 CFR 164.308", None),
        ("Rules of the kitchen", None),
        ("", None),
        (None, None),
    ],
)
def test_version(name: str | None, version: str | None) -> None:
    assert version_in(name) == version


def test_the_first_name_that_has_a_version_counts() -> None:
    assert version_in(None, "NIST CSF", "CSF v2.0", "CSF v3.0") == "2.0"
