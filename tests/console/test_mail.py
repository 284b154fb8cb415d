"""The choice of mail on the account page, and in the settings of an organization."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from sqlalchemy import update

from normata.identity.mail_choices import NOTIFICATION_TYPES
from normata.identity.model import Organization, User
from tests import stored
from tests.console.browser import Browser, text_of
from tests.databases import on_both
from tests.served import Served
from tests.world import ALPHA

SignIn = Callable[[Browser, str], None]

ACCOUNT, MAIL = "/account/", "/account/mail/"


def chosen(instance: Served) -> tuple[str | None, dict[str, str] | None]:
    """What is stored of the editor's choice."""
    row = stored.row(instance.database, User, "user-editor")
    return row["mail"], row["mail_by_type"]


@on_both
def test_a_person_chooses_and_takes_it_back(instance: Served, browser: Browser, sign_in: SignIn) -> None:
    sign_in(browser, "editor")
    fields = {"mail": "OFF", "type.record.due_now": "IMMEDIATELY", "type.coverage.lost": ""}

    answer = browser.post(MAIL, headers=None, **fields)

    assert (answer.status_code, answer.headers["location"]) == (303, "/account/?done=mail#mail")
    assert chosen(instance) == ("OFF", {"record.due_now": "IMMEDIATELY"})
    page = browser.get(ACCOUNT).text
    assert page.count('<option value="OFF" selected>') == page.count('<option value="IMMEDIATELY" selected>') == 1
    assert all(f'name="type.{one}"' in page for one in NOTIFICATION_TYPES)

    browser.post(MAIL, mail="")
    assert chosen(instance) == (None, None)


@pytest.mark.parametrize("fields", [{"mail": "WEEKLY"}, {"mail": "OFF", "type.record.archived": "off"}])
def test_a_choice_that_there_is_not_changes_nothing(
    instance: Served, browser: Browser, sign_in: SignIn, fields: dict[str, str]
) -> None:
    sign_in(browser, "editor")
    assert browser.post(MAIL, headers=None, **fields).status_code == 400
    assert chosen(instance) == (None, None)


def test_an_address_that_was_refused_is_shown_and_tried_again(
    instance: Served, browser: Browser, sign_in: SignIn
) -> None:
    sign_in(browser, "editor")
    email = stored.row(instance.database, User, "user-editor")["email"]
    refused = f"The mail server has refused {email}"
    assert refused not in text_of(browser.get(ACCOUNT))
    statement = update(User).where(User.id == "user-editor").values(refused_email=email)
    instance.database.write_now(lambda transaction: transaction.rows(statement))
    assert refused in text_of(browser.get(ACCOUNT))

    browser.post(MAIL, mail="DAILY")
    assert refused in text_of(browser.get(ACCOUNT)), "another choice does not say that the address is right"
    browser.post(MAIL, step="retry")
    assert refused not in text_of(browser.get(ACCOUNT))
    assert chosen(instance) == ("DAILY", None)


def test_admins_choose_for_those_who_have_not_chosen(instance: Served, browser: Browser, sign_in: SignIn) -> None:
    sign_in(browser, "admin")
    assert '<option value="DAILY" selected>' in browser.get("/app/alpha/settings/").text
    answer = browser.post("/app/alpha/settings/", step="change", name="Alpha", scope="", mail="OFF")
    assert answer.status_code == 303, text_of(answer)
    assert stored.row(instance.database, Organization, ALPHA)["mail"] == "OFF"
