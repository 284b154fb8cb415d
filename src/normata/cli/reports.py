"""The commands for reports: ``gaps`` and ``soa``. They write the same bytes as HTTP answers."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import typer

from normata.cli import calls
from normata.cli import files as output_files
from normata.cli.backend import Call, Refused
from normata.cli.connection import ServerOption, connected
from normata.cli.events import VerifierOption, note_in, verifiers_of
from normata.cli.past import AsOfOption, about, moment_of
from normata.cli.shared import DatabaseOption, ForceOption, Group, echo, fail
from normata.core.log import visible

_SHOWN = 40  # rows of a table on a terminal


class _Kind(NamedTuple):
    """A report: its name, its moment (null for now), and a statement's further frameworks, as they were named."""

    name: Literal["gaps", "soa"]
    moment: str | None = None
    others: tuple[str, ...] = ()

    @property
    def call(self) -> Call:
        """The operation."""
        return calls.GAPS if self.name == "gaps" else calls.STATEMENT

    @property
    def formats(self) -> tuple[str, ...]:
        """The formats of files that it has."""
        return ("json", "csv", "xlsx") if self.name == "gaps" else ("json", "csv", "xlsx", "pdf")


OrganizationArgument = Annotated[str, typer.Argument(metavar="ORG", help="The organization, by id or slug.")]
FrameworkArgument = Annotated[
    str, typer.Argument(metavar="FRAMEWORK", help="A framework that it has adopted, by id, slug or identifier.")
]
_FORMAT = typer.Option(
    "--format",
    help="The format. Default: by the ending of the output file, else a short table.",
    show_default=False,
)
FormatOption = Annotated[Literal["json", "csv", "xlsx"] | None, _FORMAT]
StatementFormatOption = Annotated[Literal["json", "csv", "xlsx", "pdf"] | None, _FORMAT]
OthersOption = Annotated[
    list[str] | None,
    typer.Option(
        "--with",
        metavar="FRAMEWORK",
        help="A further framework that it has adopted: its requirements that apply are necessary controls, too. Repeat"
        " it for several.",
        show_default=False,
    ),
]
OutputOption = Annotated[
    Path | None,
    typer.Option(help="The file to write, readable only by its owner. Default: standard output.", show_default=False),
]


def gaps(
    organization: OrganizationArgument,
    framework: FrameworkArgument,
    *,
    wanted: FormatOption = None,
    as_of: AsOfOption = None,
    output: OutputOption = None,
    force: ForceOption = False,
    database: DatabaseOption = None,
    server: ServerOption = None,
) -> None:
    """Report the gaps of a framework, the worst first, and what would close them."""
    _report(
        _Kind("gaps", moment_of(as_of)), organization, framework, wanted, output, force=force, places=(database, server)
    )


class _ReportsByDefault(Group):
    """``soa ORG FRAMEWORK`` is ``soa report ORG FRAMEWORK``."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Insert the omitted command ``report``."""
        if args and "--help" not in args[:1] and args[0] not in self.commands:
            args = ["report", *args]
        return super().parse_args(ctx, args)


statements = typer.Typer(
    cls=_ReportsByDefault,
    help="Report the statement of applicability of a framework (ISO/IEC 27001, 6.1.3 d), or verify a version of it.",
    no_args_is_help=True,
)


@statements.command("report")
def soa(
    organization: OrganizationArgument,
    framework: FrameworkArgument,
    *,
    others: OthersOption = None,
    wanted: StatementFormatOption = None,
    as_of: AsOfOption = None,
    output: OutputOption = None,
    force: ForceOption = False,
    database: DatabaseOption = None,
    server: ServerOption = None,
) -> None:
    """Report the statement of applicability of a framework. `normata soa ORG FRAMEWORK` is the same.

    A PDF needs the extra normata[pdf].
    """
    kind = _Kind("soa", moment_of(as_of), tuple(others or ()))
    _report(kind, organization, framework, wanted, output, force=force, places=(database, server))


@statements.command("verify")
def verify(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A file of a version, in any format.")],
    proof_file: Annotated[Path, typer.Argument(metavar="PROOF", help="The answer of `GET /soa-versions/{id}/proof/`.")],
    checkpoint_file: Annotated[
        Path | None,
        typer.Option(
            "--checkpoint",
            metavar="FILE",
            help="A checkpoint that was stored elsewhere, as text or JSON. Default: that of the proof.",
            show_default=False,
        ),
    ] = None,
    verifier: VerifierOption = None,
    _database: DatabaseOption = None,
) -> None:
    """Prove that a file is that of a version of the statement of applicability, and that the log has the version.

    It needs no database. Without --key no signature is verified. It exits with 1 if the file is not proven, and with 2
    if an argument is not what it should be.
    """
    from normata.events.keys import BadNote, read_note, require_signed
    from normata.soa_versions import verifying

    try:
        proof = verifying.read_proof(proof_file.read_text("utf-8"))
        note = verifying.note_of(proof) if checkpoint_file is None else read_note(note_in(checkpoint_file))
        content = file.read_bytes()
        verifiers = [] if verifier is None else verifiers_of(verifier, note.origin)
    except UnicodeDecodeError:
        fail("a file is not text in UTF-8", code=2)
    except OSError as error:
        fail(f"{error.filename}: {error.strerror or error}", code=2)
    except (verifying.NoProof, BadNote) as error:
        fail(str(error), code=2)
    if verifiers:
        require_signed(note, *verifiers)
    else:
        echo("warning: without --key, the signer of the checkpoint is not verified", err=True)
    echo(f"{file.name} {verifying.verify(content, proof, note)}")


def _report(
    kind: _Kind,
    organization: str,
    framework: str,
    wanted: str | None,
    output: Path | None,
    *,
    force: bool,
    places: tuple[str | None, str | None],
) -> None:
    name = wanted or _format_of(output, kind.formats)
    if name in ("xlsx", "pdf") and output is None and sys.stdout.isatty():
        fail(f"{name} cannot be printed to a terminal; use --output with a file name", code=2)
    if output is not None:
        output_files.require_replaceable(output, force=force)  # check before the work, not after it
    found = _read(kind, organization, framework, name, places)
    if not isinstance(found, bytes):
        _show(found)
    elif output is None:
        _print(found)
    else:
        with output_files.replacing(output, force=force) as part:
            part.write_bytes(found)


def _read(
    kind: _Kind, organization: str, framework: str, name: str | None, places: tuple[str | None, str | None]
) -> Any:
    """A report in a format, or in wire form without one."""
    with connected(*places) as backend, about(kind.moment):
        owner = backend.organization(organization)
        framework_id = backend.adopted(owner, framework, kind.moment)
        query: dict[str, Any] = {"organizationId": owner, "asOf": kind.moment}
        if kind.others:
            query["otherFrameworkIds"] = [backend.adopted(owner, one, kind.moment) for one in kind.others]
        if name is None:
            return backend.read(kind.call, framework_id, **query)
        try:
            return backend.content(kind.call, framework_id, name, **query)
        except Refused as error:
            reason = error.fault("format")
            if reason is None:
                raise
            fail(f"the report {reason}")


def _format_of(output: Path | None, known: Collection[str]) -> str | None:
    """The format by the extension of a file; None if there is no file."""
    if output is None:
        return None
    found = next((name for name in known if output.suffix.lower() == f".{name}"), None)
    if found is None:
        *names, last = known
        fail(f"{output} has no known extension; use --format {', '.join(names)} or {last}", code=2)
    return found


def _print(content: bytes) -> None:
    if sys.stdout.isatty():  # data must not control the terminal
        echo("\n".join(map(visible, content.decode("utf-8-sig").splitlines())))
        return
    sys.stdout.buffer.write(content)
    sys.stdout.buffer.flush()


# --- The short table


def _show(report: Mapping[str, Any]) -> None:
    framework, counts = report["framework"], report["counts"]
    covered = _covered(counts)
    baseline = f", {report['baseline']['name']}" if report["baseline"] else ""
    echo(f"{framework['identifier']} {framework['name']}{baseline}, {report['organization']['name']}")
    echo(f"{counts['applicable']} controls apply ({covered}), {counts['notApplicable']} do not")
    if "gaps" in report:
        _print_table(("Identifier", "Covered", "Mandatory", "Evidence", "Name", "Closed by"), map(_gap, report["gaps"]))
    else:
        for line in _sections(report):
            echo(line)
        titles = ("Identifier", "Applies", "Implemented", "Covered", "Evidence", "Name", "Objections")
        _print_table(titles, map(_entry, report["controls"]))


def _sections(report: Mapping[str, Any]) -> Iterator[str]:
    """The sections besides the table, a line each."""
    mandatory, others = report["mandatory"], report["otherRequirements"]
    if mandatory["requirements"]:
        excluded = [one for one in mandatory["requirements"] if not one["isApplicable"]]
        named = ", ".join(f"{one['identifier']} {one['name']}" for one in excluded)
        line = f"Mandatory requirements: {mandatory['counts']['requirements']} ({_covered(mandatory['counts'])})"
        yield line + (f"; excluded nevertheless: {named}" if named else "")
    if others:
        yield f"Outside of the statement: {others['counts']['requirements']} ({_covered(others['counts'])})"


def _covered(counts: Mapping[str, Any]) -> str:
    return ", ".join(f"{count} {status.upper()}" for status, count in counts["effective"].items())


def _gap(gap: Mapping[str, Any]) -> tuple[str, ...]:
    suggestions = [
        f"{one['control']['framework']['identifier']} {one['control']['identifier']}" for one in gap["suggestions"]
    ]
    return (
        gap["identifier"],
        gap["effectiveCoverageStatus"],
        "yes" if gap["isMandatory"] else "no",
        _evidence(gap),
        gap["name"],
        ", ".join(suggestions),
    )


def _evidence(item: Mapping[str, Any]) -> str:
    """How many pieces of evidence there are, as far as one is valid; other formats say until when."""
    evidence = item["evidence"]
    return "" if evidence is None else str(evidence["pieces"]) if evidence["isValid"] else "ended"


def _entry(entry: Mapping[str, Any]) -> tuple[str, ...]:
    from normata.coverage.words import implemented

    return (
        entry["identifier"],
        "yes" if entry["isApplicable"] else "no",
        implemented(entry) or "",
        entry["effectiveCoverageStatus"],
        _evidence(entry),
        entry["name"],
        ", ".join(one.replace("_", " ").lower() for one in entry["objections"]),
    )


def _print_table(titles: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(*titles, box=None, pad_edge=False)
    for column in table.columns[:-2]:
        column.no_wrap = True
    count = 0
    for count, row in enumerate(rows, 1):
        if count <= _SHOWN:
            table.add_row(*(Text(visible(cell)) for cell in row))  # a text may look like markup
    if count:
        echo("")
        Console(file=sys.stdout).print(table)
    if count > _SHOWN:
        echo(f"… and {count - _SHOWN} more; --format csv has them all")
