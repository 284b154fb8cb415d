"""When notifications are mailed to a person, and an address that the mail server has refused."""

from __future__ import annotations

from typing import Any

from pydantic import ValidationError
from starlette.responses import Response

from normata.console.account.page import account_page
from normata.console.page_request import PageRequest
from normata.console.texts import text
from normata.identity import preferences
from normata.identity.mail_choices import NOTIFICATION_TYPES
from normata.identity.preferences import PREFERENCES_WRITES, PreferencesPatch


async def change_mail(page_request: PageRequest) -> Response:
    """Change when notifications are mailed, or have a refused address tried again, as ``step`` says.

    An empty field takes a choice back.
    """
    visitor = await page_request.required_visitor()
    form = dict(await page_request.form_pairs(2 + len(NOTIFICATION_TYPES)))
    entered: dict[str, Any] = {"isMailRefused": False}
    if form.get("step") != "retry":
        chosen = {name: form.get(f"type.{name}", "") for name in NOTIFICATION_TYPES}
        entered = {
            "mail": form.get("mail") or None,
            "mailByType": {name: choice for name, choice in chosen.items() if choice},
        }
    try:
        patch = PreferencesPatch.model_validate(entered)
    except ValidationError:
        return await account_page(page_request, visitor, status=400, message=text("problem.form"))
    await page_request.change_own(
        visitor, lambda unit: preferences.change(unit, visitor.user_id, patch.changes()), PREFERENCES_WRITES
    )
    return page_request.redirect("/account/?done=mail#mail")
