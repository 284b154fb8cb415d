"""How a person wants dates and pages to look."""

from __future__ import annotations

from pydantic import ValidationError
from starlette.responses import Response

from normata.console.account.page import account_page
from normata.console.page_request import PageRequest
from normata.console.return_path import safe_path
from normata.console.texts import text
from normata.core.schema.wire import wire_names
from normata.identity import preferences
from normata.identity.model import User
from normata.identity.preferences import PREFERENCES_WRITES, Preferences, PreferencesPatch

_FIELDS = {wire_names(User)[name] for name in Preferences._fields}


async def change_preferences(page_request: PageRequest) -> Response:
    """Change the preferences that the form contains. An empty field resets its preference."""
    visitor = await page_request.required_visitor()
    form = await page_request.form()
    try:
        patch = PreferencesPatch.model_validate({name: form[name].strip() or None for name in _FIELDS & form.keys()})
    except ValidationError:
        return await account_page(page_request, visitor, status=400, message=text("account.preferences_fault"))
    await page_request.change_own(
        visitor, lambda unit: preferences.change(unit, visitor.user_id, patch.changes()), PREFERENCES_WRITES
    )
    return page_request.redirect(safe_path(form.get("return_to", "")) or "/account/?done=preferences#preferences")
