"""All tables: importing this module defines them."""

from normata.audits import model as _audits
from normata.comments import model as _comments
from normata.core.changes import idempotency as _idempotency
from normata.core.changes import jobs as _jobs
from normata.core.changes import revisions as _revisions
from normata.core.changes import short_ids as _short_ids
from normata.core.schema.table import Table
from normata.coverage import upgrades as _upgrades
from normata.entitlements import model as _entitlements
from normata.events import model as _events
from normata.external_ids import model as _external_ids
from normata.files import model as _files
from normata.frameworks import baseline_model as _baselines
from normata.frameworks import evidence_model as _evidence
from normata.frameworks import model as _frameworks
from normata.frameworks import source_model as _sources
from normata.frameworks import wording_model as _wordings
from normata.history import model as _history
from normata.identity import model as _identity
from normata.identity import provisioning_model as _provisioning
from normata.identity import sign_in_model as _sign_in
from normata.links import model as _links
from normata.notifications import model as _notifications
from normata.policies import acknowledgement_model as _acknowledgements
from normata.policies import model as _policies
from normata.records import archiving as _archiving
from normata.records import assurance as _records
from normata.recurrences import model as _recurrences
from normata.risks import review_model as _reviews
from normata.soa_versions import model as _soa_versions
from normata.vendors import link_model as _vendor_links
from normata.vendors import model as _vendors
from normata.views import model as _views
from normata.webhooks import model as _webhooks

__all__ = ["Table"]

_modules = (
    *(_acknowledgements, _audits),
    *(
        _archiving,
        _baselines,
        _comments,
        _entitlements,
        _events,
        _evidence,
        _external_ids,
        _files,
        _frameworks,
        _history,
        _idempotency,
        _identity,
    ),
    *(
        _jobs,
        _links,
        _notifications,
        _policies,
        _provisioning,
        _records,
        _recurrences,
        _reviews,
        _revisions,
        _short_ids,
        _sign_in,
        _soa_versions,
        _sources,
    ),
    _upgrades,
    *(_vendor_links, _vendors, _views, _webhooks, _wordings),
)
