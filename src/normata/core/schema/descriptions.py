"""A description of each field, in one sentence, by the name of its column.

A name means the same in every table, so it is described once. A reference is described by the kind it refers to.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Column

FIELDS = {
    "about_id": "The id of what the comment is about.",
    "about_kind": "The kind of what the comment is about: a kind of records as in its path, or `controls`.",
    "accepted_at": "When the owner accepted the residual risk; null if they have not, or if it has changed since.",
    "accepted_by_id": "The member who accepted the residual risk.",
    "acronym": "The abbreviation itself.",
    "acronym_plural": "The plural of the abbreviation.",
    "allow_portal_submission": "Whether people may submit records of the category through a portal.",
    "archived_at": "When the record was archived; null while it is live.",
    "applicability_prefix": "What identifiers in the table of applicability begin with, if there is one.",
    "auditor": "Who performs the audit: a person or a body.",
    "authority_notified_at": "When the supervisory authority was notified (GDPR, article 33).",
    "availability_rating": "How much the organization depends on availability; the scale is its own.",
    "category": "The category, as the organization names it.",
    "category_order": "The position within the category.",
    "causes": "Why it happened.",
    "closed_at": "When it was closed.",
    "collected_at": "When it was collected.",
    "color": "The color to show it in, such as `#1D4F91`.",
    "confidentiality_rating": "How much the organization depends on confidentiality; the scale is its own.",
    "contact_email": "The email address of the contact.",
    "contact_name": "The name of the contact.",
    "content": "The content, as a JSON document; null if there is none.",
    "contract_expiry": "When the contract expires.",
    "correction": "What was done about the finding itself.",
    "created_at": "When it was created.",
    "created_by": "Who created it, as text.",
    "current_version": "The current version.",
    "data_subjects_notified_at": "When the data subjects were notified (GDPR, article 34).",
    "deadline": "When it must be done.",
    "deprecated_at": "When the framework was deprecated.",
    "description": "What it is, for people.",
    "detected_at": "When it was detected.",
    "document": "The identifier that its publisher gave to the document, the same in all its versions.",
    "due_date": "When it is due.",
    "ended": "When the audit ended.",
    "extended": "What the abbreviation stands for.",
    "extended_plural": "The plural of what the abbreviation stands for.",
    "finalized_at": "When the record was finalized.",
    "finalized_by": "Who finalized the record, as text.",
    "file_ids": "The ids of its files, in the order in which they are shown; at most 50.",
    "findings": "What was found.",
    "finished_at": "When the review was finished.",
    "from_id": "The id of what the link leads from.",
    "from_kind": "The kind of what the link leads from: a kind of records as in its path, `controls` or `memberships`.",
    "frequency": "How often it must be done. `DAILY`, `WEEKLY`, `MONTHLY`, `QUARTERLY`, `HALF_YEARLY` and `YEARLY` let"
    " it recur; any other text is only a note.",
    "id": "The identifier: opaque, and never reused.",
    "identifier": "The identifier that people use, such as `A.5.2`.",
    "identifier_color": "The color to show the identifier in.",
    "inherent_impact": "The impact of the risk before treatment, from 1 to 5.",
    "inherent_probability": "The probability of the risk before treatment, from 1 to 5.",
    "instructions": "How to do it.",
    "integrity_rating": "How much the organization depends on integrity; the scale is its own.",
    "is_applicable": "Whether the control applies to the organization; null: as a category above or the baseline says.",
    "is_active": "Whether organizations that have not adopted the framework can see it.",
    "is_centralized": "Whether it is published for all organizations rather than owned by one.",
    "is_decomposed": "Whether the children of the control are all of it, so that they are counted in its place.",
    "is_mandatory": "Whether the framework makes the control mandatory.",
    "is_shared": "Whether all members of the organization see it; else only who has saved it.",
    "is_personal_data_breach": "Whether personal data was breached (GDPR, article 4(12)).",
    "justification": "The justification, for an auditor.",
    "kind": "The list that it is of: `controls`, or a kind of records as in its path, such as `tasks`.",
    "outcome": "What came of the review for the risk.",
    "query": "The state of the list: the parameters of the address of its page in the console, each with its values.",
    "rationale": "How the publisher of the mapping compared the two controls.",
    "recorded_at": "When the outcome was recorded.",
    "recorded_by_id": "The member who recorded the outcome.",
    "retired_at": "Since when the newest version of its document does not have it any more: it does not count.",
    "strength": "How strong the publisher says that the relation is, on its own scale.",
    "inherent_reason": "Why the inherent risk is rated so.",
    "last_assessment_id": "The id of the assessment of the vendor that was reviewed last; a load keeps any.",
    "next_assessment_at": "When to assess the vendor again.",
    "reopening_reason": "Why the answers were reopened last.",
    "residual_reason": "Why the residual risk is rated so.",
    "reviewed_at": "When the answers were reviewed.",
    "score": "The score of all answers, from 0 to 100; null before they are submitted, and if none has one.",
    "sent_at": "When it was sent: since then it can be answered.",
    "submitted_at": "When the answers were submitted.",
    "last_approved_at": "When it was last approved.",
    "last_approved_by": "Who approved it last, as text.",
    "last_reviewed_at": "When it was last reviewed.",
    "last_sync_at": "When an import last changed it.",
    "lessons_learned": "What the organization learned from it.",
    "measures": "What prevents it from happening again.",
    "name": "The name.",
    "next_review_at": "When the next review is due.",
    "note": "How the organization does what the control asks for.",
    "notes": "Notes.",
    "notification_deadline": "When the authority must be notified at the latest: 72 hours after `detectedAt` if it is a"
    " personal data breach, unless it is set otherwise (GDPR, article 33).",
    "notification_notes": "Notes on the notifications.",
    "occurred_at": "When it happened.",
    "order": "The position among the records of its kind.",
    "organization_id": "The organization that it belongs to.",
    "position": "The place in the order of the publisher, from 0.",
    "priority": "How urgent it is.",
    "priority_filter": "Which risks the review covers.",
    "provider": "The connected system that the check is about.",
    "published_at": "When the publisher published it.",
    "purpose": "What the control is for.",
    "reasons": "Why the control applies, or does not (ISO/IEC 27001, 6.1.3 d).",
    "relation": "How what the link leads from is related to what it leads to.",
    "relationship": "The vendor's role under the GDPR.",
    "removed_at": "When it was removed; null if it was not.",
    "required_tier": "The tier required to adopt the framework.",
    "residual_impact": "The impact of the risk after treatment, from 1 to 5.",
    "residual_probability": "The probability of the risk after treatment, from 1 to 5.",
    "resolved_at": "When it was resolved.",
    "review_by": "When the assessment must be reviewed.",
    "root_cause": "The root cause.",
    "scope": "What the label is used for.",
    "severity": "How severe it is.",
    "short_id": "A short number for people, unique by kind and organization.",
    "slug": "A readable name for URLs, unique among the live records of its kind.",
    "source": "Where the finding comes from.",
    "started": "When the audit started.",
    "status": "The status.",
    "target_impact": "How much harm it shall be able to do once the treatment is complete.",
    "target_probability": "How likely it shall be once the treatment is complete.",
    "title": "The title.",
    "to_id": "The id of what the link leads to.",
    "to_kind": "The kind of what the link leads to: a kind of records as in its path, `controls` or `memberships`.",
    "treatment_strategy": "How the risk is treated (ISO 31000).",
    "type": "The type.",
    "updated_at": "When it was last changed.",
    "valid_until": "Until when it shows what it shows; null: with no end.",
    "value": "The text that replaces the variable.",
    "verification_note": "What the verification showed.",
    "verified_at": "When the correction was verified.",
    "verified_by_name": "Who verified the correction, as text.",
    "version": "The version, as the publisher writes it.",
    "website": "The address of the website.",
    # Members of answers that are no columns.
    "adopted_at": "When the organization adopted the framework.",
    "adoption": "The organization's adoption of the framework; null if there is none.",
    "body_key": "The key of the translated text.",
    "children": "The child controls, in catalog order.",
    "controls": "How many controls there are, categories included.",
    "count": "The number of items.",
    "coverage": "The organization's assessment of the control.",
    "coverage_gap": "What is missing; null if nothing is recorded.",
    "coverage_status": "How far the organization covers the control, by its own assessment; null if not assessed.",
    "entity_id": "The id of the row that this is about.",
    "entity_label": "The name or title of the row that this is about.",
    "entity_meta": "What distinguishes the row from others with the same name: its slug, if it has one.",
    "entity_type": "The kind of the row that this is about, such as `Policy`.",
    "framework": "The framework that it belongs to.",
    "is_adopted": "Whether the organization has adopted the framework.",
    "items": "The items of the page.",
    "limit": "How many items a page has at most.",
    "match_level": "How far the source covers the control.",
    "matched_control": "The source of the match.",
    "owner_id": "The membership of the responsible member; null if there is none.",
    "page": "The number of the page, from 1.",
    "params": "The values of the placeholders in the translated texts.",
    "parent": "The parent control; null at the top.",
    "payload": "The content of the notification.",
    "read_at": "When the user read it; null while it is unread.",
    "source_matches": "The matches into the control from controls of adopted frameworks.",
    "title_key": "The key of the translated title.",
    "url": "The path of the row that this is about.",
}


def describe(column: Column[Any]) -> str:
    """The description of a column, for OpenAPI. Raises KeyError if there is none."""
    if "description" in column.info:
        text: str = column.info["description"]
    elif "refers_to" in column.info:
        text = f"The id of {with_article(column.info['refers_to'].replace('_account', '').replace('_', ' '))}."
    elif column.name in FIELDS:
        text = FIELDS[column.name]
    elif column.name.endswith("_id"):
        # The other system's ids are not stored, so any id is valid.
        words = column.name.removesuffix("_id").replace("_", " ")
        text = f"The id of {with_article(words)} in another system; Normata does not check it."
    else:
        raise KeyError(f"the field {column.name} has no description in core/schema/descriptions.py")
    return text + known_values(column.info.get("known", ()))


def known_values(values: Sequence[str]) -> str:
    """A sentence that lists the known values of an open enum; empty if there are none."""
    return f" Known values: {', '.join(f'`{value}`' for value in values)}; there may be others." if values else ""


def with_article(words: str) -> str:
    """A noun with its indefinite article: ``an audit``."""
    return f"{'an' if words[0] in 'aeiou' else 'a'} {words}"
