"""What each field means, in one sentence, by the name of its column.

A name means the same wherever it stands, so it is described once. References are described by what they refer to.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Column

FIELDS = {
    "acronym": "The abbreviation itself.",
    "acronym_plural": "The plural of the abbreviation.",
    "allow_portal_submission": "Whether people may submit records of the category through a portal.",
    "archived_at": "When the record was archived; null while it is live.",
    "auditor": "Who performs the audit: a person or a body.",
    "authority_notified_at": "When the supervisory authority was notified (GDPR, article 33).",
    "availability_rating": "How much the organization depends on availability; the scale is its own.",
    "category": "The category, as the organization names it.",
    "category_order": "The position within the category.",
    "causes": "Why it happened.",
    "closed_at": "When it was closed.",
    "color": "The color to show it in, such as `#1D4F91`.",
    "confidentiality_rating": "How much the organization depends on confidentiality; the scale is its own.",
    "contact_email": "The e-mail address of the contact.",
    "contact_name": "The name of the contact.",
    "content": "The content, as a JSON document; null where there is none.",
    "contract_expiry": "When the contract expires.",
    "correction": "What was done about the finding itself.",
    "created_at": "When it was created.",
    "created_by": "Who created it, as text.",
    "current_version": "The current version.",
    "data_subjects_notified_at": "When the data subjects were notified (GDPR, article 34).",
    "deadline": "When it has to be done.",
    "deprecated_at": "When the framework was deprecated.",
    "description": "What it is, for people.",
    "detected_at": "When it was detected.",
    "due_date": "When it is due.",
    "ended": "When the audit ended.",
    "extended": "What the abbreviation stands for.",
    "extended_plural": "The plural of what the abbreviation stands for.",
    "finalized_at": "When the record was finalized.",
    "finalized_by": "Who finalized the record, as text.",
    "findings": "What was found.",
    "finished_at": "When the review was finished.",
    "frequency": "How often it has to be done, as text.",
    "id": "The identifier: opaque, and never used again.",
    "identifier": "The identifier that people know it by, such as `A.5.2`.",
    "identifier_color": "The color to show the identifier in.",
    "inherent_impact": "The impact of the risk before treatment; the scale is the organization's own.",
    "inherent_probability": "The probability of the risk before treatment; the scale is the organization's own.",
    "instructions": "How to do it.",
    "integrity_rating": "How much the organization depends on integrity; the scale is its own.",
    "is_applicable": "Whether the control applies to the organization.",
    "is_active": "Whether organizations that have not adopted the framework see it.",
    "is_centralized": "Whether it is shared by all organizations rather than one organization's own.",
    "is_mandatory": "Whether the framework makes the control mandatory.",
    "is_personal_data_breach": "Whether personal data was breached (GDPR, article 4(12)).",
    "justification": "Why it is so, for an auditor.",
    "last_approved_at": "When it was last approved.",
    "last_approved_by": "Who approved it last, as text.",
    "last_reviewed_at": "When it was last reviewed.",
    "last_sync_at": "When an import last changed it.",
    "lessons_learned": "What the organization has learned from it.",
    "measures": "What prevents that it happens again.",
    "name": "The name.",
    "next_review_at": "When the next review is due.",
    "notes": "Notes.",
    "notification_deadline": "Until when the authority has to be notified.",
    "notification_notes": "Notes on the notifications.",
    "occurred_at": "When it happened.",
    "order": "The position among its kind.",
    "organization_id": "The organization that it belongs to.",
    "priority": "How urgent it is.",
    "priority_filter": "Which risks the review looks at.",
    "provider": "The connected system that the check is about.",
    "published_at": "When the publisher published it.",
    "purpose": "What the control is for.",
    "reasons": "Why the control applies, or does not (ISO/IEC 27001, 6.1.3 d).",
    "relationship": "The vendor's role under the GDPR.",
    "removed_at": "When it was removed; null while it is there.",
    "required_tier": "The tier that it takes to adopt the framework.",
    "residual_impact": "The impact of the risk after treatment; the scale is the organization's own.",
    "residual_probability": "The probability of the risk after treatment; the scale is the organization's own.",
    "resolved_at": "When it was resolved.",
    "root_cause": "The root cause.",
    "scope": "What the label is used for.",
    "severity": "How severe it is.",
    "short_id": "A number that people can say, counted by kind and organization.",
    "slug": "A readable name for addresses, unique among the live records of its kind.",
    "source": "Where the finding comes from.",
    "started": "When the audit started.",
    "status": "Where it stands.",
    "title": "The title.",
    "treatment_strategy": "How the risk is treated (ISO 31000).",
    "type": "The type.",
    "updated_at": "When it was last changed.",
    "value": "The text that takes the place of the variable.",
    "verification_note": "What the verification showed.",
    "verified_at": "When the correction was verified.",
    "verified_by_name": "Who verified the correction, as text.",
    "version": "The version, as its publisher writes it.",
    "website": "The address of the website.",
    # What answers have besides columns.
    "adopted_at": "When the organization adopted the framework.",
    "adoption": "The organization's adoption of the framework; null where there is none.",
    "body_key": "The key of the translated text.",
    "children": "The controls below it, in catalog order.",
    "controls": "How many controls there are, categories included.",
    "count": "How much there is of it.",
    "coverage": "The organization's own statement of coverage.",
    "coverage_gap": "What is missing; null where nothing is stated.",
    "coverage_status": "How far the organization says that it covers the control.",
    "entity_id": "The id of the row that it is about.",
    "entity_label": "The name or title of the row that it is about.",
    "entity_meta": "What tells the row from others of the same name: its slug, where it has one.",
    "entity_type": "The kind of row that it is about, such as `Policy`.",
    "framework": "The framework that it belongs to.",
    "is_adopted": "Whether the organization has adopted the framework.",
    "items": "The items of the page.",
    "limit": "How many items a page has at most.",
    "match_level": "How far the source covers the control.",
    "matched_control": "The source of the match.",
    "page": "The number of the page, from 1.",
    "params": "What to fill into the translated texts.",
    "parent": "The control above it; null at the top.",
    "payload": "What the notification says.",
    "read_at": "When the user read it; null while it is unread.",
    "source_matches": "The matches into the control from controls of adopted frameworks.",
    "title_key": "The key of the translated title.",
    "url": "The path of what it is about.",
}


def describe(column: Column[Any]) -> str:
    """The description of a column, for OpenAPI. Raises KeyError where nobody has written one."""
    if "description" in column.info:
        text: str = column.info["description"]
    elif "refers_to" in column.info:
        text = f"The id of {with_article(column.info['refers_to'].replace('_account', '').replace('_', ' '))}."
    elif column.name in FIELDS:
        text = FIELDS[column.name]
    elif column.name.endswith("_id"):
        # Normata keeps no such thing, so the id may be any.
        words = column.name.removesuffix("_id").replace("_", " ")
        text = f"The id of {with_article(words)} in another system; Normata does not check it."
    else:
        raise KeyError(f"the field {column.name} has no description in core/schema/descriptions.py")
    return text + known_values(column.info.get("known", ()))


def known_values(values: Sequence[str]) -> str:
    """What to say of the known values of an open enum; nothing where there are none."""
    return f" Known values: {', '.join(f'`{value}`' for value in values)}; there may be others." if values else ""


def with_article(words: str) -> str:
    """A noun with its indefinite article: ``an audit``."""
    return f"{'an' if words[0] in 'aeiou' else 'a'} {words}"
