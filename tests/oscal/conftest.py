"""What the tests of OSCAL share: those of reports."""

from __future__ import annotations

from tests.reports.conftest import ask, database_url, service, shared_url, viewer

__all__ = ["ask", "database_url", "service", "shared_url", "viewer"]
