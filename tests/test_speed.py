"""What the measuring of speed makes of its figures. Nothing is measured here."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from benchmarks.speed import report
from benchmarks.speed.data import policy_id
from benchmarks.speed.figures import (
    Browsed,
    Figures,
    Loaded,
    Machine,
    Measured,
    Memory,
    Sample,
    Seen,
    Starting,
    ratio,
)
from benchmarks.speed.statements import Statement, Transaction
from benchmarks.speed.targets import missed, outcomes


def measured(label: str, *per_second: float) -> Measured:
    """A contender with as many rounds as there are figures."""
    return Measured(label=label, samples=[Sample(per_second=each, p50=1, p99=2, processor=3) for each in per_second])


@pytest.fixture
def figures() -> Figures:
    """A run in which one target is missed."""
    return Figures(
        date="2026-01-01",
        machine=Machine(
            processor="A processor",
            cores=2,
            memory_gib=8,
            system="Linux",
            python="3.11",
            packages={"granian": "2"},
            sqlite="3",
            generator="wrk",
            fsync_ms=0.1,
        ),
        rounds=3,
        seconds=1,
        connections=16,
        controls=1_500,
        large_controls=50_000,
        page_bytes=220_000,
        loaded=[Loaded(database="SQLite", controls=1, matches=2, policies=3, seconds=4, peak_mib=5)],
        pages={
            "bare": measured("Bare <application>", 1_000, 1_200, 800),
            "sqlite": measured("Normata, SQLite", 400, 600, 200),
            "sqlite-2": measured("Normata, SQLite, two workers", 401, 601, 201),
        },
        memory=Memory(requests=[0, 100, 200, 300, 400, 500], mib=[50, 60, 61, 62, 61, 60], statuses={200: 500}),
        starting=Starting(serve=[0.7, 0.9], help=[0.1]),
    )


def test_a_ratio_is_that_of_the_medians_beside_the_extremes_of_single_rounds(figures: Figures) -> None:
    assert ratio(figures.pages, "sqlite", "bare") == (0.4, 0.25, 0.5)
    assert ratio(figures.pages, "sqlite", "plain") is None


def test_what_is_missed_is_told(figures: Figures) -> None:
    assert [outcome.name for outcome in missed(figures)] == ["Page, SQLite / bare application"]
    (line,) = (line for line in report.page(figures).splitlines() if line.startswith("| Page, SQLite / bare"))
    assert line == "| Page, SQLite / bare application | 0.40 | 0.25 to 0.50 | ≥ 0.5 | **no** |"


def test_two_workers_are_promised_nothing_where_the_load_needs_their_cores(figures: Figures) -> None:
    def bound() -> float | None:
        return next(outcome.bound for outcome in outcomes(figures) if "two workers" in outcome.name)

    assert bound() is None
    figures.machine.cores = 4
    assert bound() == 1.7


def test_the_console_is_held_to_its_slowest_page(figures: Figures) -> None:
    def taking(*p50: float) -> Measured:
        samples = [Sample(per_second=1000 / each, p50=each, processor=each) for each in p50]
        return Measured(label="A page", samples=samples)

    figures.console = {
        "demo sqlite ": taking(5, 6, 7),
        "demo sqlite records/": taking(21, 19, 22),
        "demo postgresql records/": taking(90, 90, 90),
        "large sqlite ": taking(15, 16, 17),
        "large sqlite hasGap=true": taking(38, 39, 90),
        "large sqlite search=a": taking(61, 61, 61),
        "large sqlite isApplicable=false": taking(41, 41, 41),
    }
    figures.browsed = Browsed(
        browser="A browser",
        first_view=29_000,
        pages={"records/": Seen(label="records/", paint=[100, 110, 120], shift=[0, 0, 0.1], task=[0, 0, 51])},
        reactions=[20, 30, 101],
    )
    told = [outcome.name for outcome in missed(figures) if outcome.name.startswith("Console")]
    assert told == ["Console, slowest page of the demo, SQLite", "Console, 50,000 controls, slowest filter, SQLite"]
    page = report.page(figures)
    assert "| `records/` | 21.0 | 21.0 | 90.0 | 90.0 |  |" in page
    assert "| Console, layout shift | 0.000 | 0.000 to 0.10 | 0 | yes |" in page
    figures.browsed = Browsed(missing="there is no browser")
    assert "there is no browser" in report.page(figures)


def test_the_history_is_held_to_its_slowest_answer(figures: Figures) -> None:
    figures.adopted_controls = 70_000
    figures.history = {
        "sqlite-small-assess": measured("An assessment", 100, 100, 100),
        "sqlite-without-history-assess": measured("An assessment, no history", 116, 116, 116),
        "sqlite-small-controls-now": measured("controls", 100, 100, 100),
        "sqlite-small-controls-then": measured("controls as of a day", 60, 60, 60),
        "sqlite-small-controls-before": measured("controls as of a day before an import", 45, 45, 45),
        "sqlite-adopted-gaps-now": measured("gaps", 100, 100, 100),
        "sqlite-adopted-gaps-then": measured("gaps as of a day", 40, 40, 40),
        "sqlite-adopted-over-time-day": measured("over time", 10, 10, 10),
    }
    told = {outcome.name: outcome.met for outcome in outcomes(figures)}
    assert (
        told.items()
        >= {
            "One assessment, with history / without, SQLite, time": False,
            "First page as of a day / today, slowest, 1,500 controls, SQLite, time": False,
            "Report as of a day / today, slowest, 70,000 controls, SQLite, time": True,
            "Two years of daily changes by the day, 123 rows, 70,000 controls, SQLite": True,
        }.items()
    )
    assert "| gaps as of a day | 40 |" in report.page(figures)


def test_neighbours_are_held_to_the_slowest_hundredth_beside_the_worst(figures: Figures) -> None:
    def taking(label: str, *p99: float) -> Measured:
        return Measured(label=label, samples=[Sample(per_second=1, p50=1, p99=each) for each in p99])

    figures.neighbours = {
        "sqlite-row-alone": taking("SQLite, task, alone", 2, 2, 2),
        "sqlite-row-search": taking("SQLite, task, beside a search", 9, 6, 12),
        "sqlite-row-gaps": taking("SQLite, task, beside gaps", 11, 6, 40),
        "sqlite-page-alone": taking("SQLite, page, alone", 4, 4, 4),
        "sqlite-page-gaps": taking("SQLite, page, beside gaps", 19, 19, 19),
    }
    (task,) = (one for one in missed(figures) if "beside" in one.name)
    assert (task.name, task.measured) == ("Task beside a dear read / alone, worst, SQLite, p99", (5.5, 3, 20))
    assert "| SQLite, page, beside gaps | 1.00 | 19.00 | 19.00 to 19.00 |" in report.page(figures)


def test_the_same_figures_give_the_same_page(figures: Figures) -> None:
    again = Figures.model_validate_json(figures.model_dump_json())
    assert report.page(again) == report.page(figures)
    assert report.picture(again) == report.picture(figures)


def test_parts_that_were_not_measured_keep_what_was_written(
    figures: Figures, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(report, "_DOCS", tmp_path)
    report.write(figures)
    restores = {"sqlite-restore": measured("Normata, restore, SQLite", 9, 9, 9)}
    fewer: dict[str, Any] = {"date": "2026-01-02", "pages": {}, "memory": None, "loaded": [], "restores": restores}
    later = report.completed(figures.model_copy(update=fewer))
    assert (later.pages, later.memory, later.restores) == (figures.pages, figures.memory, restores)
    assert later.older == {"pages": "2026-01-01", "memory": "2026-01-01"}
    assert "| Date | 2026-01-02; memory: 2026-01-01; pages: 2026-01-01 |" in report.page(later)
    other = figures.model_copy(update={**fewer, "rounds": 5})
    assert report.completed(other) == other


def test_the_picture_is_well_formed_and_has_every_contender(figures: Figures) -> None:
    root = ElementTree.fromstring(report.picture(figures))  # noqa: S314 - our own
    words = {element.text for element in root.iter("{http://www.w3.org/2000/svg}text")}
    assert {each.label for each in figures.pages.values()} <= words
    assert {"1,000", "400"} <= words


def test_a_part_that_was_left_out_is_left_out_of_the_page(figures: Figures) -> None:
    figures.memory = figures.starting = None
    figures.pages.clear()
    page = report.page(figures)
    assert "## Targets" in page
    assert "## Memory" not in page
    assert "## Pages" not in page


def test_the_statements_of_one_restore_become_those_of_another() -> None:
    made = "01900000-0000-7000-8000-000000000000"
    sent = [
        Statement("BEGIN", ()),
        Statement("INSERT", (made, policy_id(0), f'{{"entityId": "{policy_id(0)}"}}', 1, None)),
    ]
    begin, insert = Transaction(policy_id(0), sent).of(policy_id(7))
    assert begin == sent[0]
    assert insert.parameters[0] not in (made, policy_id(7))
    assert insert.parameters[1:] == (policy_id(7), f'{{"entityId": "{policy_id(7)}"}}', 1, None)
