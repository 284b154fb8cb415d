"""The page of all components: it is no page of the console, and shows each part once."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, timedelta
from pathlib import Path
from typing import Any

from normata.console.app.home import CalendarDay
from normata.console.app.records.references import Called, Choice
from normata.console.pages import environment
from normata.console.pictures import Axis, Span
from normata.console.series_pictures import Happening, areas, markers_of, sparkline
from normata.console.static import FOLDER

TEMPLATE = Path(__file__).with_name("components.html")
_MONDAY = date(2026, 11, 23)


def written(folder: Path) -> str:
    """The address of the page, written into a folder."""
    days = [_MONDAY + timedelta(days=number) for number in range(14)]
    due: dict[int, list[Mapping[str, Any]]] = {3: [{"label": "Management review"}], 8: [{"label": "Audit"}]}
    calendar = [CalendarDay(day, number == 1, due.get(number, []), number == 3) for number, day in enumerate(days)]
    html = (
        environment()
        .from_string(TEMPLATE.read_text("utf-8"))
        .render(
            sheet=FOLDER.joinpath("console.css").as_uri(),
            link=lambda **_: "#",
            pair=lambda *_: "#",
            axes=[Axis("a", "A.5", "Organizational controls"), Axis("b", "A.6", "People controls")],
            span=Span("Open 6 h", "2026-10-14T09:20:00.000Z", "2026-10-14T15:20:00.000Z", "partial"),
            areas=areas,
            sparkline=sparkline,
            markers=markers_of(
                [
                    (0.2, Happening("2026-02-03T08:00:00.000Z", "adoption", "Adopted")),
                    (0.6, Happening("2026-06-08T08:00:00.000Z", "audit", "Internal audit", "#")),
                    (0.62, Happening("2026-06-12T08:00:00.000Z", "adoption", "Changed to the whole framework", "#")),
                ]
            ),
            choice=Choice([Called("1", "Cryptography", (), "")], 412, "", "policies"),
            weeks=[calendar[:7], calendar[7:]],
        )
    )
    path = folder / "components.html"
    path.write_text(html, "utf-8")
    return path.as_uri()
