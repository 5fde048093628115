"""``toolkit report``: reports, one self-contained HTML file each."""

import inspect
import json
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial, wraps
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from toolkit.cli.options import Archived, Recordings, Seed, Size, SizeOption, fail

__all__ = ["report_app"]

report_app = typer.Typer(
    help="Write reports: one self-contained HTML file each.", no_args_is_help=True
)

Start = Annotated[str, typer.Option(help='First time, such as 2025-09-01 or "7d".')]
End = Annotated[str | None, typer.Option(help="Last time; else now.")]

Asked = tuple[str | Path, list[dict[str, Any]]]
"""Which notebook, and the parameters of each report."""


def _shared(
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Where to write.")] = None,
    seed: Seed = 7,
    size: SizeOption = Size.demo,
    recordings: Recordings = None,
    archive: Archived = None,
    live: Annotated[
        bool, typer.Option(help="Ask TOOLKIT_BASE_URL with TOOLKIT_API_KEY instead.")
    ] = False,
    pdf: Annotated[
        bool, typer.Option(help="Print it as PDF as well; needs Chromium or Chrome.")
    ] = False,
    code: Annotated[bool, typer.Option(help="Show the code as well, folded.")] = False,
) -> None:
    """Name the options of every report."""


_SHARED: Final = inspect.signature(_shared).parameters


def _reporting(command: Callable[..., Asked], live_needs: str = "") -> Callable[..., None]:
    """Make a command that writes reports of one that says what is asked, with the shared options.

    Parameters
    ----------
    command : callable
        Takes the options of its own, the first of which says whom a report is about.
    live_needs : str
        What cannot be chosen for a live service, in words.
    """
    own = inspect.signature(command).parameters

    @wraps(command)
    def call(**given: Any) -> None:
        out, pdf, code = given["out"], given["pdf"], given["code"]
        source = _source(
            *(given[name] for name in ("seed", "size", "recordings", "archive", "live"))
        )
        if live_needs and given["live"] and not given[next(iter(own))]:
            fail(f"--live needs {live_needs}", code=2)
        notebook, asked = command(**{name: given[name] for name in own})
        if len(asked) > 1:
            _write_many(notebook, asked, source, out, pdf, code)
        else:
            _write(notebook, asked[0], source, out, pdf, code)

    every = [*own.values(), *_SHARED.values()]
    keywords = [one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for one in every]
    call.__signature__ = inspect.Signature(keywords)  # type: ignore[attr-defined]
    call.__annotations__ = {one.name: one.annotation for one in every}
    return call


@report_app.callback()
def report() -> None:
    """Write reports: one self-contained HTML file each."""


@report_app.command()
@partial(_reporting, live_needs="an account: --user 0x...")
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
) -> Asked:
    """Report what one account earned, paid and traded."""
    more = {"start": start or 0, "end": end, "builders": builder}
    return "wallet", [{"user": one, **more} for one in _each(user)]


@report_app.command()
@_reporting
def market(
    coin: Annotated[
        list[str] | None,
        typer.Option(help="The perp; offline, else BTC. Several: --out is their folder."),
    ] = None,
    start: Start = "30d",
    end: End = None,
) -> Asked:
    """Report what a perp costs to trade, when, and what its book holds."""
    return "market", [{"coin": one, "start": start, "end": end} for one in _each(coin, "BTC")]


@report_app.command()
@partial(_reporting, live_needs="a builder: --address 0x...")
def builder(
    address: Annotated[
        list[str] | None,
        typer.Option(help="The builder; offline, else an example. Several: --out is their folder."),
    ] = None,
    start: Start = "",
    end: End = None,
) -> Asked:
    """Report what a builder earns, from whom, and what its users do elsewhere."""
    more = {"start": start or 0, "end": end}
    return "builder", [{"address": one, **more} for one in _each(address)]


@report_app.command("market-quality")
@_reporting
def market_quality(
    dex: Annotated[str, typer.Option(help="Whose perps; the native dex by default.")] = "",
    coin: Annotated[
        list[str] | None, typer.Option(help="Which perps; else the 12 traded most.")
    ] = None,
    start: Start = "7d",
    end: End = None,
) -> Asked:
    """Compare perps: what a size costs, how much fits, how the books stand."""
    return "market_quality", [{"dex": dex, "start": start, "end": end, "coins": coin}]


@report_app.command("run")
@_reporting
def run_own(
    notebook: Annotated[Path, typer.Argument(help="A notebook: .py, .md or .ipynb.")],
    parameter: Annotated[
        list[str] | None, typer.Option("-p", help="name=value; a value is JSON, or else text.")
    ] = None,
) -> Asked:
    """Report with a notebook of your own: its cells tagged source and parameters are set."""
    return notebook, [dict(map(_parameter, parameter or []))]


def _each(given: list[str] | None, otherwise: str | None = None) -> list[str | None]:
    """Name each subject once; where none is given, the one that is taken then."""
    return [*dict.fromkeys(given)] if given else [otherwise]


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


def _write_many(
    notebook: str | Path,
    asked: list[dict[str, Any]],
    source: str,
    out: Path | None,
    pdf: bool,
    code: bool,
) -> None:
    """Build a report for each; say of each where it lies, or why there is none."""
    from toolkit.reports.batch import write_many

    failed = 0
    folder = out or Path("build/report")
    for one in write_many(notebook, asked, source, folder, pdf=pdf, code=code):
        failed += one.error is not None
        told = [str(part) for part in (one.path, one.pdf, one.error) if part is not None]
        typer.echo(f"{one.name}: {', '.join(told)}")
    if failed:
        fail(f"{failed} of {len(asked)} reports could not be made")


def _parameter(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not equals:
        fail(f"a parameter is name=value, not {text!r}", code=2)
    try:
        return name.strip(), json.loads(value)
    except ValueError:
        return name.strip(), value
