"""``toolkit report``: each report is one self-contained HTML file."""

import inspect
import json
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial, wraps
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from toolkit.cli.console import fail
from toolkit.cli.options import (
    ArchiveOption,
    RecordingsOption,
    SeedOption,
    SizeChoice,
    SizeOption,
    set_options,
)
from toolkit.contract.apis import NAMES, find_address
from toolkit.contract.requests import is_address
from toolkit.times import to_ms

report_app = typer.Typer(
    help="Write reports; each is one self-contained HTML file.", no_args_is_help=True
)


def _check_time(option: typer.CallbackParam, time: str | None) -> str | None:
    try:
        to_ms(time or 0, now_ms=0)
    except ValueError as error:
        fail(f"{option.opts[0]}: {error}", code=2)
    return time


def _check_addresses(option: typer.CallbackParam, addresses: list[str] | None) -> list[str] | None:
    for address in addresses or ():
        if not is_address(address):
            fail(
                f"{option.opts[0]}: {address!r} is not an address. "
                "An address is 0x and 40 hex digits",
                code=2,
            )
    return addresses


# A report checks its options before it starts a kernel, which takes seconds.
StartOption = Annotated[
    str, typer.Option(help='First time, for example 2025-09-01 or "7d".', callback=_check_time)
]
EndOption = Annotated[
    str | None, typer.Option(help="Last time; by default the present.", callback=_check_time)
]

ReportRequest = tuple[str | Path, list[dict[str, Any]]]
"""A notebook, and the parameters of each report."""


def _common_options(
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Where to write.")] = None,
    seed: SeedOption = 7,
    size: SizeOption = SizeChoice.demo,
    recordings: RecordingsOption = None,
    archive: ArchiveOption = None,
    live: Annotated[
        bool, typer.Option(help="Use the service at TOOLKIT_BASE_URL with TOOLKIT_API_KEY instead.")
    ] = False,
    exchange: Annotated[
        str | None,
        typer.Option(help="Use the own API of this exchange instead, without a key: hyperliquid."),
    ] = None,
    pdf: Annotated[
        bool, typer.Option(help="Write a PDF, too; this needs Chromium or Chrome.")
    ] = False,
    code: Annotated[bool, typer.Option(help="Show the code, too, in folded sections.")] = False,
) -> None:
    """Declare the options of every report."""


_COMMON: Final = inspect.signature(_common_options).parameters


def _report_command(
    command: Callable[..., ReportRequest], live_needs: str = ""
) -> Callable[..., None]:
    """Return a command that writes the reports that `command` requests.

    Parameters
    ----------
    command : callable
        Takes its own options and returns a `ReportRequest`. Its first option is the subject.
    live_needs : str
        The option that a live service needs, with its meaning; empty if it needs none.
    """
    own = inspect.signature(command).parameters

    @wraps(command)
    def call(**options: Any) -> None:
        out, pdf, code = options["out"], options["pdf"], options["code"]
        source = _source_code(
            *(
                options[name]
                for name in ("seed", "size", "recordings", "archive", "live", "exchange")
            )
        )
        is_live = options["live"] or options["exchange"]
        if live_needs and is_live and not options[next(iter(own))]:
            fail(f"--live and --exchange need {live_needs}", code=2)
        notebook, parameters = command(**{name: options[name] for name in own})
        if len(parameters) > 1:
            _write_reports(notebook, parameters, source, out, pdf, code)
        else:
            _write_report(notebook, parameters[0], source, out, pdf, code)

    all_options = [*own.values(), *_COMMON.values()]
    set_options(call, [option.replace(kind=option.KEYWORD_ONLY) for option in all_options])
    return call


@report_app.command()
@partial(_report_command, live_needs="an account: --user 0x...")
def wallet(
    user: Annotated[
        list[str] | None,
        typer.Option(
            help="Address of the account; offline, the default is an example account. Several "
            "accounts: one report each, and --out is their folder.",
            callback=_check_addresses,
        ),
    ] = None,
    start: StartOption = "",
    end: EndOption = None,
) -> ReportRequest:
    """Report the profits, costs and trades of one account."""
    options = {"start": start or 0, "end": end}
    return "wallet", [{"user": address, **options} for address in _unique_subjects(user)]


@report_app.command()
@partial(_report_command, live_needs="accounts: --user 0x... --user 0x...")
def comparison(
    user: Annotated[
        list[str] | None,
        typer.Option(
            help="Address of an account; at least two. Offline, the default is five accounts.",
            callback=_check_addresses,
        ),
    ] = None,
    start: StartOption = "",
    end: EndOption = None,
) -> ReportRequest:
    """Compare the profits, returns and skill of several accounts."""
    return "comparison", [{"users": user or None, "start": start or 0, "end": end}]


@report_app.command()
@_report_command
def market(
    coin: Annotated[
        list[str] | None,
        typer.Option(
            help="The perp; by default BTC. Several: one report each, and --out is their folder."
        ),
    ] = None,
    start: StartOption = "30d",
    end: EndOption = None,
    user: Annotated[
        list[str] | None,
        typer.Option(
            help="An account whose positions count; the option can be repeated. By default the "
            "1,000 accounts with the largest positions.",
            callback=_check_addresses,
        ),
    ] = None,
) -> ReportRequest:
    """Report the trading costs of a perp, its book, liquidations and positioning."""
    coins, options = _unique_subjects(coin, "BTC"), {"start": start, "end": end, "accounts": user}
    return "market", [{"coin": name, **options} for name in coins]


@report_app.command()
@partial(_report_command, live_needs="a builder: --address 0x...")
def builder(
    address: Annotated[
        list[str] | None,
        typer.Option(
            help="Address of the builder; offline, the default is an example. Several: one report "
            "each, and --out is their folder.",
            callback=_check_addresses,
        ),
    ] = None,
    start: StartOption = "",
    end: EndOption = None,
) -> ReportRequest:
    """Report the revenue of a builder, its users, and their trades through other builders."""
    options = {"start": start or 0, "end": end}
    return "builder", [{"address": name, **options} for name in _unique_subjects(address)]


@report_app.command("market-quality")
@_report_command
def market_quality(
    dex: Annotated[str, typer.Option(help="Dex of the perps; by default the native one.")] = "",
    coin: Annotated[
        list[str] | None, typer.Option(help="The perps; by default the 12 with the largest volume.")
    ] = None,
    start: StartOption = "7d",
    end: EndOption = None,
) -> ReportRequest:
    """Compare perps: the cost of a size, the largest size, and the state of the books."""
    return "market_quality", [{"dex": dex, "start": start, "end": end, "coins": coin}]


@report_app.command("run")
@_report_command
def run_notebook(
    notebook: Annotated[Path, typer.Argument(help="Notebook: .py, .md or .ipynb.")],
    parameter: Annotated[
        list[str] | None, typer.Option("-p", help="name=value; a value that is not JSON is text.")
    ] = None,
) -> ReportRequest:
    """Run your own notebook as a report; it needs cells with the tags source and parameters."""
    return notebook, [dict(map(_parse_parameter, parameter or []))]


def _unique_subjects(subjects: list[str] | None, default: str | None = None) -> list[str | None]:
    """Return each subject once; without subjects, the default."""
    return [*dict.fromkeys(subjects)] if subjects else [default]


def _source_code(
    seed: int,
    size: SizeChoice,
    recordings: Path | None,
    archive: str | None,
    live: bool,
    exchange: str | None,
) -> str:
    """Return the code of the notebook cell that connects to the source."""
    from toolkit.reports import source_expressions

    if live or exchange:
        if exchange and find_address(exchange) is None:
            fail(f"--exchange: {exchange!r} is none of {', '.join(NAMES)}", code=2)
        return source_expressions.live_source(exchange)
    if archive is not None:
        return source_expressions.archive_source(archive)
    if recordings is not None:
        if not recordings.is_dir():
            fail(f"there is no folder {recordings}: check --recordings", code=2)
        return source_expressions.recording_source(recordings)
    return source_expressions.simulated_source(seed, size.value)


def _write_report(
    notebook: str | Path,
    parameters: Mapping[str, Any],
    source: str,
    out: Path | None,
    pdf: bool,
    code: bool,
) -> None:
    """Build a report, write it, and print its headlines."""
    from toolkit.errors import ReportFailed
    from toolkit.reports.build import build, page_digest, write_page
    from toolkit.reports.pdf import print_pdf

    out = out or Path("build/report") / f"{Path(notebook).stem.replace('_', '-')}.html"
    try:
        with _cell_progress(Path(notebook).stem) as on_cell:
            page = build(notebook, source, parameters, code=code, on_cell=on_cell)
        path = write_page(page.html, out)
        printed = print_pdf(path) if pdf else None
    except ReportFailed as error:
        fail(str(error))
    except OSError as error:
        fail(f"cannot write {out}: {error.strerror or error}")
    typer.echo(f"{page.title} ({page.facts['source']})")
    headlines = page.facts.get("headlines", ())
    longest = max((len(f"{label}{value}") for label, value, _ in headlines), default=0)
    for label, value, note in headlines:
        gap = max(48, longest + 2) - len(label)
        typer.echo(f"  {label}{value:>{gap}}  {note}")
    typer.echo(f"report: {path}")
    typer.echo(f"digest: {page_digest(page.html)}")
    if printed is not None:
        typer.echo(f"pdf: {printed}")


@contextmanager
def _cell_progress(name: str) -> Iterator[Callable[[int, int], None] | None]:
    """Yield a function that shows the current cell; yield None if stderr is not a terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console

    with Console(stderr=True).status(f"{name}: starting a kernel") as status:
        yield lambda cell, cells: status.update(f"{name}: cell {cell} of {cells}")


def _write_reports(
    notebook: str | Path,
    parameters: list[dict[str, Any]],
    source: str,
    out: Path | None,
    pdf: bool,
    code: bool,
) -> None:
    """Build several reports, and print the path or the error of each."""
    from toolkit.reports.build import write_reports

    failed = 0
    folder = out or Path("build/report")
    for report in write_reports(notebook, parameters, source, folder, pdf=pdf, code=code):
        failed += report.error is not None
        parts = [str(part) for part in (report.path, report.pdf, report.error) if part is not None]
        typer.echo(f"{report.name}: {', '.join(parts)}")
    if failed:
        fail(f"{failed} of {len(parameters)} reports failed")


def _parse_parameter(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not equals:
        fail(f"a parameter must be name=value, not {text!r}", code=2)
    try:
        return name.strip(), json.loads(value)
    except ValueError:
        return name.strip(), value
