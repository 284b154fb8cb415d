"""Changing one's name."""

from __future__ import annotations

from pydantic import TypeAdapter, ValidationError
from starlette.responses import Response

from normata.console.account.page import account_page
from normata.console.page_request import PageRequest
from normata.console.texts import text
from normata.core.schema.fields import VisibleName
from normata.identity import users

_NAME: TypeAdapter[str] = TypeAdapter(VisibleName)


async def change_name(page_request: PageRequest) -> Response:
    """Change the person's name, which all of their organizations show from then on."""
    visitor = await page_request.required_visitor()
    form = await page_request.form()
    try:
        name = _NAME.validate_python(form.get("name", ""))
    except ValidationError:
        return await account_page(page_request, visitor, status=400, message=text("account.name_fault"))
    await page_request.change_own(visitor, lambda unit: users.rename(unit, visitor.user_id, name), users.RENAME_WRITES)
    return page_request.redirect("/account/?done=name#called")
