"""The version is that of the tag or of the commit."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from normata import __version__, version
from tests.client import TestClient

ROOT = Path(__file__).parents[1]


def git(folder: Path, *arguments: str) -> str:
    identity = ("-c", "user.name=Test", "-c", "user.email=test@example.org")
    done = subprocess.run(["git", *identity, "-C", str(folder), *arguments], capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout with two commits."""
    git(tmp_path, "init", "--quiet")
    for content in ("one", "two"):
        (tmp_path / "file").write_text(content)
        git(tmp_path, "add", "file")
        git(tmp_path, "commit", "--quiet", "--message", content)
    return tmp_path


def commit_of(checkout: Path) -> str:
    return git(checkout, "rev-parse", "--short=12", "HEAD")


def test_before_the_first_tag(checkout: Path) -> None:
    assert version.of_source(checkout) == f"0.1.0.dev2+{commit_of(checkout)}"
    (checkout / "file").write_text("three")
    assert version.of_source(checkout) == f"0.1.0.dev2+{commit_of(checkout)}.changed"
    (checkout / "other").touch()  # git does not know it
    git(checkout, "checkout", "--quiet", "file")
    assert version.of_source(checkout) == f"0.1.0.dev2+{commit_of(checkout)}"


@pytest.mark.parametrize(("tag", "following"), [("0.1.0", "0.1.1"), ("1.9", "1.10"), ("2.0.0rc1", "2.0.0rc2")])
def test_with_a_tag_and_after_it(checkout: Path, tag: str, following: str) -> None:
    git(checkout, "tag", f"v{tag}")
    git(checkout, "tag", "verified")  # no version
    assert version.of_source(checkout) == tag
    (checkout / "file").write_text("three")
    assert version.of_source(checkout) == f"{following}.dev0+{commit_of(checkout)}.changed"
    git(checkout, "commit", "--quiet", "--all", "--message", "three")
    assert version.of_source(checkout) == f"{following}.dev1+{commit_of(checkout)}"


def test_an_unpacked_release_has_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also within a checkout of something else, and without git."""
    assert version.of_source(tmp_path) is None
    (tmp_path / "PKG-INFO").write_text("Metadata-Version: 2.4\nName: normata\nVersion: 3.2.1\n\nVersion: 9\n")
    monkeypatch.setenv("PATH", "/nowhere")
    assert version.of_source(tmp_path) == "3.2.1"


def test_without_git_it_is_unknown(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setattr(version, "_ROOT", checkout)
    assert version.to_build() == "0.1.0.dev0+unknown"


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="this is no checkout")
def test_a_checkout_says_its_commit() -> None:
    assert git(ROOT, "rev-parse", "--short=12", "HEAD") in __version__ or re.fullmatch(r"[0-9.]+", __version__)


def test_metrics_say_it(client: TestClient) -> None:
    assert f'normata_build_info{{version="{__version__}"}} 1.0' in client.get("/metrics").text
