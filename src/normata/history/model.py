"""The history of what coverage follows from (what organizations have said and adopted, and catalogs).

Evidence and risks have one as well.
"""

from __future__ import annotations

from sqlalchemy.orm import Mapped, mapped_column

from normata.core.db.schema_items import Trigger
from normata.core.schema.fields import Identifier, Timestamp
from normata.core.schema.history import history_of_changed_rows, history_of_every_row
from normata.core.schema.history_triggers import ON_POSTGRESQL, ON_SQLITE
from normata.core.schema.table import CODED, Table, sql_table
from normata.frameworks.baseline_model import BaselineControl
from normata.frameworks.evidence_model import ControlEvidence
from normata.frameworks.model import (
    Control,
    ControlCoverage,
    ControlMatch,
    EffectiveCoverage,
    Framework,
    FrameworkAdoption,
    SetAsideMatch,
)
from normata.identity.model import Organization
from normata.links.model import Link
from normata.records.assurance import Evidence, Risk

AssessmentHistory = history_of_every_row(ControlCoverage, "organization_id", "control_id")
EffectiveHistory = history_of_every_row(EffectiveCoverage, "organization_id", "control_id")
AdoptionHistory = history_of_every_row(
    FrameworkAdoption, "organization_id", "framework_id", indexes=[("framework_id",)]
)
SetAsideHistory = history_of_every_row(SetAsideMatch, "organization_id", "match_id")
RiskHistory = history_of_every_row(Risk, "organization_id", "id")
EvidenceHistory = history_of_every_row(Evidence, "organization_id", "id")
LinkHistory = history_of_every_row(Link, "organization_id", "id", indexes=[("organization_id", "to_id")])
ControlEvidenceHistory = history_of_every_row(ControlEvidence, "organization_id", "control_id")

# Nobody has seen a framework that nobody had adopted, so what it lacked then need not be noted.
_WAS_ADOPTED = (
    "EXISTS (SELECT 1 FROM {schema}framework_adoption_history AS a WHERE a.framework_id = {row}.framework_id)"
)
_TARGET_WAS_ADOPTED = (
    "EXISTS (SELECT 1 FROM {schema}framework_adoption_history AS a JOIN {schema}control AS c"
    " ON c.framework_id = a.framework_id WHERE c.id = {row}.target_control_id)"
)
_ITS_FRAMEWORK_WAS_ADOPTED = (
    "EXISTS (SELECT 1 FROM {schema}framework_adoption_history AS a JOIN {schema}baseline AS b"
    " ON b.framework_id = a.framework_id WHERE b.id = {row}.baseline_id)"
)

ControlHistory = history_of_changed_rows(
    Control, "parent_id", "type", "is_mandatory", "is_decomposed", "position", known_if=_WAS_ADOPTED
)
MatchHistory = history_of_changed_rows(
    ControlMatch,
    *("source_control_id", "target_control_id", "match_level", "organization_id", "retired_at"),
    known_if=_TARGET_WAS_ADOPTED,
)
BaselineControlHistory = history_of_changed_rows(BaselineControl, "retired_at", known_if=_ITS_FRAMEWORK_WAS_ADOPTED)
FrameworkHistory = history_of_changed_rows(Framework, "control_count", "is_active", "deprecated_at")


class HistoryStart(Table):
    """The moment since which the past of an organization is known. A trigger on organizations inserts it.

    ``rules_since`` is the moment since which its coverage has followed the rules of this version: an upgrade that
    changed them has computed it anew. Null if it always has.
    """

    __tablename__ = "history_start"
    array = "historyStarts"
    published = False

    organization_id: Mapped[Identifier] = mapped_column(primary_key=True, info=CODED)
    since: Mapped[Timestamp]
    rules_since: Mapped[Timestamp | None]


NOTE_START = Trigger(
    "note_history_start",
    f"""\
CREATE TRIGGER note_history_start AFTER INSERT ON organization
BEGIN
    INSERT INTO history_start (organization_id, since) SELECT NEW.id, {ON_SQLITE}
    WHERE NOT EXISTS (SELECT 1 FROM history_start WHERE organization_id = NEW.id);
END
""",
    "CREATE TRIGGER note_history_start AFTER INSERT ON organization FOR EACH ROW EXECUTE FUNCTION note_history_start()",
    f"""\
BEGIN
    INSERT INTO public.history_start (organization_id, since) VALUES (NEW.id, {ON_POSTGRESQL}) ON CONFLICT DO NOTHING;
    RETURN NULL;
END
""",
)
sql_table(Organization).info["triggers"] = (*sql_table(Organization).info.get("triggers", ()), NOTE_START)
sql_table(Organization).info["is_dated"] = True

HISTORY_TABLES = (
    *(AssessmentHistory, EffectiveHistory, AdoptionHistory, SetAsideHistory, RiskHistory),
    *(EvidenceHistory, LinkHistory, ControlEvidenceHistory),
    *(FrameworkHistory, ControlHistory, MatchHistory, BaselineControlHistory),
    HistoryStart,
)
