"""The address at which calendar programs fetch what is due for the person: made, shown once, and ended."""

from __future__ import annotations

from starlette.responses import Response

from normata.console.account.page import account_page, chosen_organization, require_fresh
from normata.console.page_request import PageRequest
from normata.identity import calendar
from normata.identity.calendar import CALENDAR_REMOVAL, CALENDAR_WRITES
from normata.identity.me.calendar_operations import url_of


async def change_calendar(page_request: PageRequest) -> Response:
    """Make the address, and show it once, or end it, as ``step`` says.

    It outlives the session, so the sign-in must be recent. Raises SignInRefused, and NotFound for an organization that
    the person is not a member of.
    """
    visitor = await page_request.required_visitor()
    form = await page_request.form()
    if form.get("step") == "remove":
        await page_request.change_own(visitor, lambda unit: calendar.remove(unit, visitor.user_id), CALENDAR_REMOVAL)
        return page_request.redirect("/account/?done=calendar#calendar")
    require_fresh(visitor)
    organization_id = chosen_organization(visitor, form.get("organization", ""))
    made = await page_request.change_own(
        visitor, lambda unit: calendar.make(unit, visitor.user_id, organization_id), CALENDAR_WRITES
    )
    return await account_page(page_request, visitor, new_calendar=url_of(page_request.console.settings, made.secret))
