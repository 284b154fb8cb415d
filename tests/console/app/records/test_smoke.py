import pytest
from normata.records.base import Restorable
from tests.console.app.conftest import People
from tests.console.app.pages import ALPHA, Parsed, send
from tests.console.browser import text_of
from tests.world import record_id
from tests.records.shapes import KINDS

@pytest.mark.parametrize("kind", KINDS)
def test_smoke(kind, readers):
    for user in ("viewer", "editor"):
        for path in ("", "?filters=all", "new/", f"{record_id(kind,'live')}/", f"{record_id(kind,'archived')}/", f"{record_id(kind,'live')}/edit/"):
            a = readers[user].get(f"{ALPHA}records/{kind.path}/{path}")
            assert a.status_code == 200, (path, a.text[:2000])
    a = readers["editor"].get(f"{ALPHA}archive/")
    assert a.status_code == 200
    a = readers["editor"].get(f"{ALPHA}records/")
    assert a.status_code == 200
