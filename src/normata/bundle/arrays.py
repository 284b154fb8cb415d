"""The arrays of a bundle, each with the table that it carries, in the order in which a dump writes them."""

from __future__ import annotations

from normata.audits.model import ChecklistRow
from normata.comments.model import Comment
from normata.entitlements.model import EntitlementReviewItem
from normata.events.model import AuditEvent
from normata.external_ids.model import ExternalId
from normata.files.model import File
from normata.frameworks.baseline_model import Baseline, BaselineControl
from normata.frameworks.model import (
    Control,
    ControlCoverage,
    ControlMatch,
    Framework,
    FrameworkAdoption,
    MappingDocument,
    SetAsideMatch,
)
from normata.frameworks.source_model import SourceDocument
from normata.frameworks.wording_model import ControlWording
from normata.identity.model import AccessToken, Membership, Organization, User
from normata.links.model import Link
from normata.notifications.model import Notification
from normata.policies.acknowledgement_model import Acknowledgement
from normata.policies.model import PolicyVersion
from normata.records.base import Restorable
from normata.recurrences.model import Recurrence
from normata.risks.review_model import RiskReviewOutcome
from normata.soa_versions.model import SoaVersion
from normata.tables import Table
from normata.vendors.model import Questionnaire, VendorAnswer
from normata.views.model import SavedView

# These belong to the operator of the instance. A token acts as its user in all organizations, and audit events are
# proof. No dump of an organization contains them.
OPERATORS_OWN: tuple[type[Table], ...] = (AccessToken, AuditEvent)

_TABLES: tuple[type[Table], ...] = (
    Organization,
    User,
    Membership,
    Framework,
    Control,
    ControlWording,
    Baseline,
    BaselineControl,
    SourceDocument,
    MappingDocument,
    ControlMatch,
    FrameworkAdoption,
    ControlCoverage,
    SetAsideMatch,
    Notification,
    SavedView,
    SoaVersion,
    File,
    Questionnaire,
    *Restorable.kinds,
    PolicyVersion,
    Acknowledgement,
    Link,
    Comment,
    Recurrence,
    RiskReviewOutcome,
    VendorAnswer,
    ChecklistRow,
    EntitlementReviewItem,
    ExternalId,
    *OPERATORS_OWN,
)

ARRAYS: dict[str, type[Table]] = {table.array: table for table in _TABLES}

HISTORY = "history"  # the array with the past of an organization, whose rows are of several tables
