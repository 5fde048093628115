"""``toolkit report``: reports, one self-contained HTML file each."""

import json
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from toolkit.cli.options import Archived, Recordings, Seed, Size, SizeOption, fail

__all__ = ["report_app"]

report_app = typer.Typer(
    help="Write reports: one self-contained HTML file each.", no_args_is_help=True
)

Start = Annotated[str, typer.Option(help='First time, such as 2025-09-01 or "7d".')]
End = Annotated[str | None, typer.Option(help="Last time; else now.")]
Out = Annotated[Path | None, typer.Option("--out", "-o", help="Where to write.")]
Live = Annotated[bool, typer.Option(help="Ask TOOLKIT_BASE_URL with TOOLKIT_API_KEY instead.")]
Pdf = Annotated[bool, typer.Option(help="Print it as PDF as well; needs Chromium or Chrome.")]
Code = Annotated[bool, typer.Option(help="Show the code as well, folded.")]


@report_app.callback()
def report() -> None:
    """Write reports: one self-contained HTML file each."""


@report_app.command()
def wallet(
    user: Annotated[
        list[str] | None,
        typer.Option(
            help="Address of the account; offline, else an example account. Several: a report "
            "each, --out is their folder."
        ),
    ] = None,
    start: Start = "",
    end: End = None,
    builder: Annotated[
        list[str] | None,
        typer.Option(help="A builder that the account had approved; may be given more than once."),
    ] = None,
    out: Out = None,
    seed: Seed = 7,
    size: SizeOption = Size.demo,
    recordings: Recordings = None,
    archive: Archived = None,
    live: Live = False,
    pdf: Pdf = False,
    code: Code = False,
) -> None:
    """Report what one account earned, paid and traded."""
    source = _source(seed, size, recordings, archive, live)
    if live and not user:
        fail("--live needs an account: --user 0x...", code=2)
    asked = {"start": start or 0, "end": end, "builders": builder}
    if user and len(user) > 1:
        _write_many("wallet", [{"user": one, **asked} for one in dict.fromkeys(user)], source, out)
        return
    _write("wallet", {"user": user[0] if user else None, **asked}, source, out, pdf, code)


@report_app.command()
def market(
    coin: Annotated[
        list[str] | None,
        typer.Option(help="The perp; offline, else BTC. Several: --out is their folder."),
    ] = None,
    start: Start = "30d",
    end: End = None,
    out: Out = None,
    seed: Seed = 7,
    size: SizeOption = Size.demo,
    recordings: Recordings = None,
    archive: Archived = None,
    live: Live = False,
    pdf: Pdf = False,
    code: Code = False,
) -> None:
    """Report what a perp costs to trade, when, and what its book holds."""
    source = _source(seed, size, recordings, archive, live)
    asked = [{"coin": one, "start": start, "end": end} for one in dict.fromkeys(coin or ["BTC"])]
    if len(asked) > 1:
        _write_many("market", asked, source, out)
        return
    _write("market", asked[0], source, out, pdf, code)


@report_app.command()
def builder(
    address: Annotated[
        list[str] | None,
        typer.Option(help="The builder; offline, else an example. Several: --out is their folder."),
    ] = None,
    start: Start = "",
    end: End = None,
    out: Out = None,
    seed: Seed = 7,
    size: SizeOption = Size.demo,
    recordings: Recordings = None,
    archive: Archived = None,
    live: Live = False,
    pdf: Pdf = False,
    code: Code = False,
) -> None:
    """Report what a builder earns, from whom, and what its users do elsewhere."""
    source = _source(seed, size, recordings, archive, live)
    if live and not address:
        fail("--live needs a builder: --address 0x...", code=2)
    some: list[str | None] = [*dict.fromkeys(address)] if address else [None]
    asked = [{"address": one, "start": start or 0, "end": end} for one in some]
    if len(asked) > 1:
        _write_many("builder", asked, source, out)
        return
    _write("builder", asked[0], source, out, pdf, code)


@report_app.command("market-quality")
def market_quality(
    dex: Annotated[str, typer.Option(help="Whose perps; the native dex by default.")] = "",
    coin: Annotated[
        list[str] | None, typer.Option(help="Which perps; else the 12 traded most.")
    ] = None,
    start: Start = "7d",
    end: End = None,
    out: Out = None,
    seed: Seed = 7,
    size: SizeOption = Size.demo,
    recordings: Recordings = None,
    archive: Archived = None,
    live: Live = False,
    pdf: Pdf = False,
    code: Code = False,
) -> None:
    """Compare perps: what a size costs, how much fits, how the books stand."""
    source = _source(seed, size, recordings, archive, live)
    asked = {"dex": dex, "start": start, "end": end, "coins": coin}
    _write("market_quality", asked, source, out, pdf, code)


@report_app.command("run")
def run_own(
    notebook: Annotated[Path, typer.Argument(help="A notebook: .py, .md or .ipynb.")],
    parameter: Annotated[
        list[str] | None, typer.Option("-p", help="name=value; a value is JSON, or else text.")
    ] = None,
    out: Out = None,
    seed: Seed = 7,
    size: SizeOption = Size.demo,
    recordings: Recordings = None,
    archive: Archived = None,
    live: Live = False,
    pdf: Pdf = False,
    code: Code = False,
) -> None:
    """Report with a notebook of your own: its cells tagged source and parameters are set."""
    source = _source(seed, size, recordings, archive, live)
    _write(notebook, dict(map(_parameter, parameter or [])), source, out, pdf, code)


def _source(seed: int, size: Size, recordings: Path | None, archive: str | None, live: bool) -> str:
    from toolkit.reports import source

    if live:
        return source.live()
    if archive is not None:
        return source.archived(archive)
    if recordings is not None:
        if not recordings.is_dir():
            fail(f"there is no folder {recordings}", code=2)
        return source.recorded(recordings)
    return source.simulated(seed, size.value)


def _write(
    notebook: str | Path,
    parameters: Mapping[str, Any],
    source: str,
    out: Path | None,
    pdf: bool,
    code: bool,
) -> None:
    """Build a report, write it, and say what it says."""
    from toolkit.errors import ReportFailed
    from toolkit.reports.building import build, digest_of, write
    from toolkit.reports.printing import print_pdf

    out = out or Path("build/report") / f"{Path(notebook).stem.replace('_', '-')}.html"
    try:
        with _told(Path(notebook).stem) as on_cell:
            page = build(notebook, source, parameters, code=code, on_cell=on_cell)
        path = write(page.html, out)
        printed = print_pdf(path) if pdf else None
    except ReportFailed as error:
        fail(str(error))
    except OSError as error:
        fail(f"{out} cannot be written: {error.strerror or error}")
    typer.echo(f"{page.title} ({page.facts['source']})")
    for label, value, note in page.facts.get("headlines", ()):
        typer.echo(f"  {label:26}{value:>22}  {note}")
    typer.echo(f"report: {path}")
    typer.echo(f"digest: {digest_of(page.html)}")
    if printed is not None:
        typer.echo(f"pdf: {printed}")


@contextmanager
def _told(name: str) -> Iterator[Callable[[int, int], None] | None]:
    """Say on a terminal how far the notebook is."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console

    with Console(stderr=True).status(f"{name}: starting a kernel") as status:
        yield lambda cell, cells: status.update(f"{name}: cell {cell} of {cells}")


def _write_many(notebook: str, asked: list[dict[str, Any]], source: str, out: Path | None) -> None:
    """Build a report for each; say of each where it lies, or why there is none."""
    from toolkit.reports.batch import write_many

    failed = 0
    for one in write_many(notebook, asked, source, out or Path("build/report")):
        failed += one.error is not None
        typer.echo(f"{one.name}: {one.path or one.error}")
    if failed:
        fail(f"{failed} of {len(asked)} reports could not be built")


def _parameter(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not equals:
        fail(f"a parameter is name=value, not {text!r}", code=2)
    try:
        return name.strip(), json.loads(value)
    except ValueError:
        return name.strip(), value
