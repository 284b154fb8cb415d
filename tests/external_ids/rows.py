"""External ids as bundles have them."""

from __future__ import annotations

from typing import Any


def external_id_row(organization_id: str, row_id: str = "") -> dict[str, Any]:
    """The external id of a live vendor."""
    return {
        "id": row_id or f"external-id-{organization_id}",
        "organizationId": organization_id,
        "kind": "vendors",
        "recordId": f"vendors-live-{organization_id}",
        "source": "erp",
        "externalId": row_id or "4711",
    }
