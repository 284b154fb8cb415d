"""The page and picture of the figures. The same figures always give the same files. The text is in `performance.md`."""

import re
import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from xml.sax.saxutils import escape

from benchmarks.speed.contenders import ANSWERS, LONGEST
from benchmarks.speed.data import SHORT
from benchmarks.speed.figures import Browsed, Figures, Loaded, Measured, Memory
from benchmarks.speed.outcome import Outcome
from benchmarks.speed.targets import outcomes, warm_sample

_DOCS = Path(__file__).parents[2] / "docs"
_TEMPLATE = Path(__file__).with_name("performance.md")

_TARGETS = ("What", "Measured", "Least to greatest", "Target", "Met")
_MEASURED = ("", "A second", "Least to greatest", "p50, ms", "p99, ms", "Processor, ms", "Database, ms")
_NEIGHBOURS = ("", "p50, ms", "p99, ms", "Least to greatest p99, ms")
_CONSOLE = ("", "SQLite, ms", "Processor, ms", "PostgreSQL, ms", "Processor, ms", "Database, ms")
_BROWSED = ("", "Seen after, ms", "Longest task, ms", "Layout shift")
_PARTS = ("pages", "restores", "records", "mixed", "coverage", "history", "neighbours", "console", "memory", "starting")
_LOADED = ("Database", "Controls", "Matches", "Policies", "Seconds", "Peak, MiB")


def completed(figures: Figures) -> Figures:
    """The figures, completed with the stored ones of parts that were not measured, if they are comparable."""
    known = Figures.model_validate_json((_DOCS / "performance.json").read_bytes())
    if _terms(known) != _terms(figures):
        return figures
    kept = {name: value for name, value in dict(known).items() if not getattr(figures, name)}
    kept["loaded"] = figures.loaded if figures.pages else known.loaded
    dates = {name: known.older.get(name, known.date) for name in _PARTS if not getattr(figures, name) and kept[name]}
    older = {name: date for name, date in dates.items() if date != figures.date}
    return figures.model_copy(update={**kept, "older": older})


def _terms(figures: Figures) -> tuple[object, ...]:
    """What must be equal for figures to be comparable."""
    return figures.rounds, figures.seconds, figures.machine.cores, figures.machine.packages


def write(figures: Figures) -> None:
    """Write the page, its picture, and the figures that both are made from."""
    raw = figures.model_dump_json(indent=1) + "\n"
    for suffix, text in {"json": raw, "svg": picture(figures), "md": page(figures)}.items():
        (_DOCS / f"performance.{suffix}").write_text(text, encoding="utf-8")


def page(figures: Figures) -> str:
    """The page in Markdown, without sections about parts that were not measured."""
    memory = figures.memory or Memory()
    values = {
        **dict(figures),
        "date": "; ".join([figures.date, *(f"{name}: {date}" for name, date in sorted(figures.older.items()))]),
        "framework_controls": f"{figures.controls // 5:,}",
        "controls": f"{figures.controls:,}",
        "large_controls": f"{figures.large_controls:,}",
        "adopted": _adopted(figures),
        "adopted_controls": f"{figures.adopted_controls:,}",
        "short": SHORT,
        "page_size": f", {figures.page_bytes / 1000:,.0f} kB of JSON" if figures.page_bytes else "",
        "longest": LONGEST,
        "answers": ANSWERS,
        "packages": ", ".join(f"{name} {version}" for name, version in figures.machine.packages.items()),
        "statuses": ", ".join(f"{count:,} of {status}" for status, count in memory.statuses.items()),
        "targets": table(_TARGETS, map(_target, outcomes(figures))),
        "pages": _measured(figures.pages),
        "restores": _measured(figures.restores),
        "records": _measured(figures.records),
        "mixed": _measured(figures.mixed),
        "coverage": _measured(figures.coverage),
        "history": _measured(figures.history),
        "neighbours": _neighbours(figures.neighbours),
        "console": _of_console(figures, "demo"),
        "console_large": _of_console(figures, "large"),
        "browsed": _browsed(figures.browsed or Browsed()),
        "memory": table(("Requests", "MiB", ""), _samples(memory), left=(2,)),
        "loaded": table(_LOADED, map(_load, figures.loaded)),
    }
    parts = (*(part for part in _PARTS if part != "starting"), "browsed", "loaded")
    absent = [f"{{{name}}}" for name in parts if not getattr(figures, name)]
    sections = re.split(r"^(?=## )", _TEMPLATE.read_text("utf-8"), flags=re.MULTILINE)
    return "".join(each.format(**values) for each in sections if not any(name in each for name in absent))


def _adopted(figures: Figures) -> str:
    if "assess-many" not in figures.coverage:
        return ""
    return (
        f"Where it says so, {figures.adopted_controls:,} controls are adopted: five large frameworks and one of {SHORT}"
        " controls, whose gaps are reported with what would close them. "
    )


def table(head: Sequence[str], rows: Iterable[Sequence[str]], left: Sequence[int] = (0,)) -> str:
    """A table in Markdown. The columns in ``left`` are aligned left, all others right."""
    rule = ["---" if number in left else "--:" for number in range(len(head))]
    return "\n".join([f"| {' | '.join(head)} |", f"|{'|'.join(rule)}|", *(f"| {' | '.join(row)} |" for row in rows)])


def _target(outcome: Outcome) -> Sequence[str]:
    value, low, high = (
        f"{value:.1f}" if value >= 10 else f"{value:.2f}" if value >= 0.1 else f"{value:.3f}"
        for value in outcome.measured
    )
    met = "" if outcome.bound is None else "yes" if outcome.met else "**no**"
    return outcome.name, f"{value}{outcome.unit}", f"{low} to {high}", outcome.target, met


def _measured(measured: Mapping[str, Measured]) -> str:
    rows = []
    for each in _fastest_first(measured):
        speeds = [sample.per_second for sample in each.samples]
        times = (each.median(name) for name in ("p50", "p99", "processor", "database"))
        row = each.label, f"{each.per_second:,.0f}", f"{min(speeds):,.0f} to {max(speeds):,.0f}"
        rows.append((*row, *("" if time is None else f"{time:,.2f}" for time in times)))
    return table(_MEASURED, rows)


def _neighbours(measured: Mapping[str, Measured]) -> str:
    rows = []
    for each in measured.values():
        times = [sample.p99 or 0 for sample in each.samples]
        row = each.label, f"{each.median('p50') or 0:.2f}", f"{each.median('p99') or 0:.2f}"
        rows.append((*row, f"{min(times):.2f} to {max(times):.2f}"))
    return table(_NEIGHBOURS, rows)


def _of_console(figures: Figures, size: str) -> str:
    """Pages by name, the slowest first. Without PostgreSQL its columns are empty."""
    named = {key.removeprefix(f"{size} sqlite "): key for key in figures.console if key.startswith(f"{size} sqlite ")}
    rows = []
    for name, key in named.items():
        on_sqlite, on_postgresql = figures.console[key], figures.console.get(f"{size} postgresql {name}")
        times = [on_sqlite.median(one) for one in ("p50", "processor")]
        times += [on_postgresql.median(one) if on_postgresql else None for one in ("p50", "processor", "database")]
        rows.append((name, times))
    rows.sort(key=lambda row: -(row[1][0] or 0))
    return table(
        _CONSOLE, ((_code(name), *("" if time is None else f"{time:.1f}" for time in times)) for name, times in rows)
    )


def _browsed(browsed: Browsed) -> str:
    if not browsed.browser:
        return f"None of it was measured: {browsed.missing}."
    rows = []
    for one in browsed.pages.values():
        paint, task, shift = map(statistics.median, (one.paint, one.task, one.shift))
        rows.append((_code(one.label), f"{paint:.0f}", f"{task:.0f}" if task else "none", f"{shift:.3f}"))
    return table(_BROWSED, rows)


def _code(name: str) -> str:
    """The filter or path as code; empty for the home page and the list without a filter."""
    return f"`{name}`" if name else "-"


def _samples(memory: Memory) -> Iterator[Sequence[str]]:
    for number, (requests, mib) in enumerate(zip(memory.requests, memory.mib, strict=True)):
        yield f"{requests:,}", f"{mib:.1f}", "flat from here on" if number == warm_sample(memory) else ""


def _load(one: Loaded) -> Sequence[str]:
    counts = (f"{count:,}" for count in (one.controls, one.matches, one.policies))
    return one.database, *counts, f"{one.seconds:.1f}", f"{one.peak_mib:,.0f}"


def _fastest_first(measured: Mapping[str, Measured]) -> list[Measured]:
    return sorted(measured.values(), key=lambda each: -each.per_second)


# --- The picture: rectangles and texts, without a library

_WIDTH, _LABELS, _NUMBERS = 860, 400, 90
_BAR, _GAP, _HEAD, _MARGIN = 18, 8, 34, 16


def picture(figures: Figures) -> str:
    """Bars as SVG: one panel for pages and one for restores, each with its own scale."""
    titles = {"Pages of 100 controls a second": figures.pages, "Restores a second": figures.restores}
    parts, y = [f"<title>{', '.join(titles)}</title>"], _MARGIN
    for title, contenders in ((title, _fastest_first(measured)) for title, measured in titles.items() if measured):
        parts.append(_words(_MARGIN, y + 16, title, weight="bold"))
        y += _HEAD
        for each in contenders:
            share = each.per_second / contenders[0].per_second
            width = max(1.0, share * (_WIDTH - _LABELS - _NUMBERS - _MARGIN))
            colour = "#2f6f9f" if each.label.startswith("Normata") else "#8a8f98"
            parts.append(_words(_LABELS - 8, y + 14, each.label, anchor="end"))
            parts.append(f'<rect x="{_LABELS}" y="{y}" width="{width:.1f}" height="{_BAR}" fill="{colour}"/>')
            parts.append(_words(_LABELS + width + 6, y + 14, f"{each.per_second:,.0f}"))
            y += _BAR + _GAP
        y += _GAP
    size = f'width="{_WIDTH}" height="{y + _MARGIN}"'
    box = f'viewBox="0 0 {_WIDTH} {y + _MARGIN}" {size} font-family="system-ui, sans-serif" font-size="13" role="img"'
    parts.insert(1, f'<rect {size} fill="#ffffff"/>')
    return "\n".join([f'<svg xmlns="http://www.w3.org/2000/svg" {box}>', *parts, "</svg>\n"])


def _words(x: float, y: float, text: str, *, anchor: str = "start", weight: str = "normal") -> str:
    style = f'text-anchor="{anchor}" font-weight="{weight}" fill="#1f2328"'
    return f'<text x="{x:.1f}" y="{y}" {style}>{escape(text)}</text>'
