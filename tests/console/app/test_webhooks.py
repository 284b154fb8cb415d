"""Settings: webhooks."""

from __future__ import annotations

import re

from normata.webhooks.model import Webhook
from tests import stored
from tests.console.app.conftest import People
from tests.console.app.pages import ALPHA, Form, Parsed, send
from tests.console.browser import Browser, is_refused, text_of
from tests.webhooks.receiver import is_signed
from tests.webhooks.sending import sending_of

WEBHOOKS = f"{ALPHA}settings/webhooks/"
_SECRET = re.compile(r'<code class="secret">([^<]*)</code>')


def _form(browser: Browser, path: str, field: str) -> Form:
    """The form of a page that has a field."""
    return next(form for form in Parsed(browser.get(path)).forms if field in form.fields)


def test_a_webhook_lives_in_the_console(database_url: str) -> None:
    with sending_of(database_url) as sending:
        admin = People(sending.service)["admin"]
        form = _form(admin, WEBHOOKS, "url")
        refused = send(admin, form, url="https://10.0.0.1/", kinds="labels, nothing", format="THIN")
        assert is_refused(refused, status=400)
        assert "Address: must be a public address" in text_of(refused)
        assert "Kinds: is no kind of row that events are about: nothing" in text_of(refused)

        url = f"http://127.0.0.1:{sending.receiver.port}/hook"
        made = send(admin, form, url=url, kinds="labels, tasks", format="FULL")
        (secret,) = _SECRET.findall(made.text)
        assert "Active Nothing yet 0 events" in text_of(made)
        assert not _SECRET.findall(admin.get(WEBHOOKS).text)
        [row] = [one for one in stored.rows(sending.service.database, Webhook) if one["url"] == url]
        assert (row["kinds"], row["actions"]) == (["labels", "tasks"], [])
        page = f"{WEBHOOKS}{row['id']}/"

        assert "The test was taken: answered 204" in text_of(admin.post(page, step="test"))
        sending.happen("One")
        [got] = sending.run()
        assert is_signed(got, secret)
        assert f"event {got.data['number']}" in text_of(admin.get(page))

        rotated = admin.post(page, step="rotate")
        assert _SECRET.findall(rotated.text) != [secret]
        assert admin.post(page, step="replay", number=str(got.data["number"])).status_code == 303
        assert len(sending.run()) == 1
        assert is_refused(admin.post(page, step="replay", number="99999"), status=400)
        assert is_refused(admin.post(page, step="replay", number="x"), status=400)
        for step, state in (("stop", "Stopped"), ("start", "Active")):
            assert admin.post(page, step=step).status_code == 303
            assert state in text_of(admin.get(WEBHOOKS))
        sending.receiver.answer = lambda _: (500, {})
        assert "The test failed The receiver refuses it, answered 500" in text_of(admin.post(page, step="test"))
        assert admin.post(page, step="remove").status_code == 303
        assert admin.get(page).status_code == 404


def test_nobody_else_sees_them(readers: People) -> None:
    for user in ("editor", "auditor", "viewer"):
        assert readers[user].get(WEBHOOKS).status_code == 403
