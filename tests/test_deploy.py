"""The files of deploy/: they agree with the program."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import get_args

import pytest
import yaml
from typer.testing import CliRunner

from normata.cli import env_file
from normata.cli.main import app
from normata.core.http.metrics import FIGURES, SealingFailure
from normata.errors import CommandError, UnavailableReason
from tests.client import TestClient
from tests.databases import on_sqlite

DEPLOY = Path(__file__).parents[1] / "deploy"


@pytest.mark.parametrize("unit", ["normata.service", "normata-sqlite.service", "normata-backup.service"])
def test_units_and_commands_read_the_same_settings(unit: str) -> None:
    lines = (DEPLOY / unit).read_text("utf-8").splitlines()
    assert f"EnvironmentFile={env_file.DEFAULT}" in lines
    assert not [line for line in lines if line.startswith("Environment=")]
    assert f"{env_file.DEFAULT} <<" in (DEPLOY / "README.md").read_text("utf-8")


def test_the_backup_of_the_timer_is_one_that_the_program_makes() -> None:
    lines = (DEPLOY / "normata-backup.service").read_text("utf-8").splitlines()
    [command] = [line.partition("=")[2] for line in lines if line.startswith("ExecStart=")]
    program, *arguments = shlex.split(command)
    assert program == "/opt/normata/.venv/bin/normata"
    done = CliRunner().invoke(app, [*arguments, "--database", "postgresql://user@host/name"])
    assert isinstance(done.exception, CommandError)  # it takes the arguments, and is for SQLite
    assert arguments[2] == "/var/lib/normata/backups"
    assert "StateDirectory=normata normata/backups" in lines
    timer = (DEPLOY / "normata-backup.timer").read_text("utf-8")
    assert "Persistent=true" in timer
    assert "WantedBy=timers.target" in timer


METRIC = re.compile(r"\b(?:normata|http_server)_[a-z_]+\b")


@on_sqlite
def test_alerts_use_metrics_that_there_are(client: TestClient) -> None:
    """Those that are served, and those that are not there yet, such as the time of the first backup."""
    served = set(re.findall(r"^# TYPE (\S+) ", client.get("/metrics").text, re.MULTILINE)) | FIGURES.keys()
    [group] = yaml.safe_load((DEPLOY / "alerts.yaml").read_text("utf-8"))["groups"]
    for rule in group["rules"]:
        assert rule.keys() >= {"alert", "expr", "labels", "annotations"}
        assert set(METRIC.findall(rule["expr"])) <= served, rule["alert"]
    assert METRIC.search(str(group)) is not None


@on_sqlite
def test_the_dashboard_uses_metrics_that_there_are_and_shows_each_of_them(client: TestClient) -> None:
    types = dict(re.findall(r"^# TYPE (\S+) (\S+)", client.get("/metrics").text, re.MULTILINE))
    parts = {f"{name}_{part}" for name, kind in types.items() if kind == "histogram" for part in ("bucket", "count")}
    board = json.loads((DEPLOY / "grafana.json").read_text("utf-8"))
    panels = board["panels"]
    shown = {name for panel in panels for target in panel["targets"] for name in METRIC.findall(target["expr"])}
    assert shown <= types.keys() | parts | FIGURES.keys()
    own = {name for name in types.keys() | FIGURES.keys() if METRIC.fullmatch(name) and not name.endswith("_created")}
    assert own <= shown | {name.rpartition("_")[0] for name in shown & parts}
    assert len({panel["id"] for panel in panels}) == len({str(panel["gridPos"]) for panel in panels}) == len(panels)
    variables = {variable["name"] for variable in board["templating"]["list"]}
    assert set(re.findall(r"\$\{?([a-z]+)", json.dumps(panels))) <= variables


def test_reasons_of_alerts_are_those_of_the_service() -> None:
    text = (DEPLOY / "alerts.yaml").read_text("utf-8")
    of_problems, of_sealing = re.findall(r'reason=~"([a-z|]+)"', text)
    assert set(of_problems.split("|")) <= set(get_args(UnavailableReason))
    assert set(of_sealing.split("|")) <= set(get_args(SealingFailure))
