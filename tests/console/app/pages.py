"""What tests know of the console's pages: their addresses, and what a page is made of."""

from __future__ import annotations

from dataclasses import dataclass, field
from html.parser import HTMLParser
from urllib.parse import quote

from httpx2 import Response

from normata.console.app.routes import PAGES
from tests.console.browser import Browser

ALPHA = "/app/alpha/"

# A row of the world for the id of each page, by the beginning of its path; the longest counts.
_IDS = {
    "comments/": "comment-editor",
    "controls/": "moon.A.1",
    "frameworks/": "fw-moon",
    "frameworks/{id}/edit/": "fw-own",
    "records/": "tasks-live-org-alpha",
    "policies/": "policies-published-org-alpha",
    "policy-templates/": "backup",
    "risks/": "risks-namesake-org-alpha",
    "questionnaires/": "free-org-alpha",
    "vendor-assessments/": "vendor-assessments-answered-org-alpha",
    "incidents/": "incidents-live-org-alpha",
    "entitlement-reviews/": "entitlement-reviews-live-org-alpha",
    "audits/": "audits-live-org-alpha",
    "risk-reviews/": "risk-reviews-live-org-alpha",
    "settings/members/": "member-editor",
    "settings/service-accounts/": "robot-org-alpha",
    "settings/webhooks/": "webhook-of-org-alpha",
    "soa-versions/": "soa-org-alpha",
    "views/": "view-1-org-alpha",
    "auditItems/": "auditItems-namesake-org-alpha",
    "finalize/": "records-live-org-alpha",
    "files/": "file-of-org-alpha",
}
# The format in which a file is asked for, where it is no report.
_FORMATS = {"events/checkpoint/file/": "text", "audits/{id}/report/file/": "xlsx", "policies/{id}/file/": "pdf"} | {
    "frameworks/{id}/oscal/file/": "oscal"
}
_KIND = "tasks"  # wherever a page is about a kind of records


def path_of(page: str, organization: str = "alpha") -> str:
    """The address of a page, with ids of the world."""
    beginning = max((one for one in _IDS if page.startswith(one)), key=len, default="")
    return f"/app/{organization}/{page}".replace("{kind}", _KIND).replace(
        "{id}", quote(_IDS.get(beginning, ""), safe="")
    )


def is_file(page: str) -> bool:
    """Whether it is a file to download, and no page."""
    return page.endswith("/file/")


def address_of(page: str) -> str:
    """The address of a page, or of a file in one of its formats."""
    return path_of(page) + (f"?format={_FORMATS.get(page, 'csv')}" if is_file(page) else "")


def send(browser: Browser, form: Form, **changed: str | list[str]) -> Response:
    """The answer to a form as it was filled on its page, with some fields changed."""
    fields: dict[str, str | list[str]] = {**form.fields, **changed}
    return browser.client.post(form.action, data=fields, headers={"Sec-Fetch-Site": "same-origin"})


READ = tuple(page.path for page in PAGES if page.get is not None)
POSTED = tuple(page.path for page in PAGES if page.post is not None)
LEAST = {page.path: page.role for page in PAGES}
# The actions of the forms that every page has, for what is everybody's own, whatever their role.
FRAME = {"/account/preferences/", "/sign-out/"}
# Pages with more forms of that sort: the actions of these.
_COMMENTS = {f"{ALPHA}comments/", f"{ALPHA}comments/comment-viewer/"}
OWN = {
    "inbox/": {f"{ALPHA}inbox/"},
    "settings/members/{id}/": {f"{ALPHA}settings/members/member-viewer/"},
    "controls/{id}/": _COMMENTS,
    "records/{kind}/{id}/": _COMMENTS,
}


_TICKED = ("checkbox", "radio")


@dataclass
class Form:
    """A form: where it goes, what is in its fields, and what its buttons say when they are pressed.

    ``choices`` has the first value of each box outside of the form that belongs to it; its buttons may be outside, too.
    """

    action: str
    method: str
    fields: dict[str, str] = field(default_factory=dict)
    id: str = ""
    buttons: list[tuple[str, str]] = field(default_factory=list)
    choices: dict[str, str] = field(default_factory=dict)


class Parsed(HTMLParser):
    """A page as a browser reads it: its tags, attributes, forms and text."""

    def __init__(self, page: Response) -> None:
        super().__init__(convert_charrefs=True)
        assert page.headers["content-type"].startswith("text/html"), page.text[:300]
        self.tags: set[str] = set()
        self.attributes: list[tuple[str, str, str]] = []
        self.forms: list[Form] = []
        self.text = ""
        self._area: str | None = None
        self._outside: dict[str, dict[str, str]] = {}
        self._pressed: dict[str, list[tuple[str, str]]] = {}
        self.feed(page.text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note a tag."""
        given = {name: value or "" for name, value in attrs}
        self.tags.add(tag)
        self.attributes += [(tag, name, value) for name, value in given.items()]
        if tag == "form":
            form = Form(given.get("action", ""), given.get("method", "get"), id=given.get("id", ""))
            form.choices = self._outside.setdefault(form.id, {})
            form.buttons = self._pressed.setdefault(form.id, []) if form.id else []
            self.forms.append(form)
        elif tag == "button" and self.forms and "formaction" in given and "form" not in given:
            # It sends the same form to another address: as a form of its own, with the same fields and boxes.
            form, button = self.forms[-1], (given.get("name", ""), given.get("value", ""))
            other = Form(given["formaction"], form.method, form.fields, buttons=[button], choices=form.choices)
            self.forms.insert(-1, other)
        elif tag == "button" and "form" in given:
            self._pressed.setdefault(given["form"], []).append((given.get("name", ""), given.get("value", "")))
        elif tag == "button" and self.forms and given.get("type") != "button" and "popovertarget" not in given:
            self.forms[-1].buttons.append((given.get("name", ""), given.get("value", "")))
        elif tag == "input" and "form" in given:
            self._outside.setdefault(given["form"], {}).setdefault(given["name"], given.get("value", ""))
        elif tag == "textarea":
            self._area = given["name"]
            self.forms[-1].fields[self._area] = ""
        elif tag == "input" and "name" in given and (given.get("type") not in _TICKED or "checked" in given):
            self.forms[-1].fields[given["name"]] = given.get("value", "")

    def handle_endtag(self, tag: str) -> None:
        """Note where a field ends."""
        if tag == "textarea" and self._area is not None:
            # A line break at its beginning is none of its text (HTML, section 13.2.6.4.7).
            fields = self.forms[-1].fields
            fields[self._area] = fields[self._area].removeprefix("\n")
            self._area = None

    def handle_data(self, data: str) -> None:
        """Note text."""
        self.text += data
        if self._area is not None:
            self.forms[-1].fields[self._area] += data

    @property
    def links(self) -> list[str]:
        """Where its links lead."""
        return [value for tag, name, value in self.attributes if (tag, name) == ("a", "href")]

    def form(self, ending: str) -> Form:
        """The first form whose action ends so."""
        return next(one for one in self.forms if one.action.endswith(ending))
