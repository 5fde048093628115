"""``toolkit report``: each report is one self-contained HTML file."""

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Final, NamedTuple

import typer

from toolkit.cli.console import fail
from toolkit.cli.options import LOCAL_OPTIONS, keyword_option, with_options
from toolkit.contract.apis import NAMES, find_address
from toolkit.contract.requests import is_address
from toolkit.times import to_ms

report_app = typer.Typer(
    help="Write reports; each is one self-contained HTML file.", no_args_is_help=True
)


_COMMON: Final = (
    keyword_option("out", Path | None, "Where to write.", None, "--out", "-o"),
    *LOCAL_OPTIONS,
    keyword_option(
        "live",
        bool,
        "Use the service at TOOLKIT_BASE_URL with TOOLKIT_API_KEY instead.",
        False,
        "--live/--no-live",
    ),
    keyword_option(
        "exchange",
        str | None,
        "Use the own API of this exchange instead, without a key: hyperliquid.",
    ),
    keyword_option(
        "pdf", bool, "Write a PDF, too; this needs Chromium or Chrome.", False, "--pdf/--no-pdf"
    ),
    keyword_option(
        "code", bool, "Show the code, too, in folded sections.", False, "--code/--no-code"
    ),
)
"""The options of every report."""


class _Report(NamedTuple):
    """A report of this package.

    - ``help``: what it reports
    - ``options``: option -> its help text; the first is the subject
    - ``names``: option -> parameter of the notebook, if they have different names
    - ``start``: the first time by default
    - ``live_needs``: the option that a live service needs, with its meaning
    - ``is_of_one``: whether each subject gets a report of its own
    - ``subject``: the subject by default
    """

    help: str
    options: Mapping[str, str]
    names: Mapping[str, str] = {}
    start: str = ""
    live_needs: str = ""
    is_of_one: bool = False
    subject: str | None = None


_REPORTS: Final = {
    "wallet": _Report(
        "Report the profits, costs and trades of one account.",
        {
            "user": "Address of the account; offline, the default is an example account. Several "
            "accounts: one report each, and --out is their folder."
        },
        live_needs="an account: --user 0x...",
        is_of_one=True,
    ),
    "comparison": _Report(
        "Compare the profits, returns and skill of several accounts.",
        {"user": "Address of an account; at least two. Offline, the default is five accounts."},
        {"user": "users"},
        live_needs="accounts: --user 0x... --user 0x...",
    ),
    "market": _Report(
        "Report the trading costs of a perp, its book, liquidations and positioning.",
        {
            "coin": "The perp; by default BTC. Several: one report each, and --out is their "
            "folder.",
            "user": "An account whose positions count; the option can be repeated. By default the "
            "1,000 accounts with the largest positions.",
        },
        {"user": "accounts"},
        start="30d",
        is_of_one=True,
        subject="BTC",
    ),
    "builder": _Report(
        "Report the revenue of a builder, its users, and their trades through other builders.",
        {
            "address": "Address of the builder; offline, the default is an example. Several: one "
            "report each, and --out is their folder."
        },
        live_needs="a builder: --address 0x...",
        is_of_one=True,
    ),
    "market-quality": _Report(
        "Compare perps: the cost of a size, the largest size, and the state of the books.",
        {
            "dex": "Dex of the perps; by default the native one.",
            "coin": "The perps; by default the 12 with the largest volume.",
        },
        {"coin": "coins"},
        start="7d",
    ),
}


def _add_report(name: str, report: _Report) -> None:
    first = next(iter(report.options))
    options = [
        keyword_option(option, str if option == "dex" else list[str] | None, help)
        for option, help in report.options.items()
    ]
    help = 'First time, for example 2025-09-01 or "7d".'
    options.append(keyword_option("start", str, help, report.start))
    options.append(keyword_option("end", str | None, "Last time; by default the present."))

    @report_app.command(name, help=report.help)
    @with_options(*options, *_COMMON)
    def command(**values: Any) -> None:
        _check_values(values)
        if report.live_needs and (values["live"] or values["exchange"]) and not values[first]:
            fail(f"--live and --exchange need {report.live_needs}", code=2)
        shared = {report.names.get(each, each): values[each] or None for each in report.options}
        shared |= {"start": values["start"] or 0, "end": values["end"] or None}
        parameters = [shared]
        if report.is_of_one:  # each subject once
            subjects = dict.fromkeys(values[first] or [report.subject])
            parameters = [{**shared, first: subject} for subject in subjects]
        _write_reports(name.replace("-", "_"), parameters, values)


def _check_values(values: Mapping[str, Any]) -> None:
    """End the command if an address or a time is wrong, before a kernel starts, which is slow."""
    for option in ("user", "address"):
        for address in values.get(option) or ():
            if not is_address(address):
                advice = "An address is 0x and 40 hex digits"
                fail(f"--{option}: {address!r} is not an address. {advice}", code=2)
    for option in ("start", "end"):
        try:
            to_ms(values[option] or 0, now_ms=0)
        except ValueError as error:
            fail(f"--{option}: {error}", code=2)


for _name, _report in _REPORTS.items():
    _add_report(_name, _report)


@report_app.command("run")
@with_options(*_COMMON)
def run_notebook(
    notebook: Annotated[Path, typer.Argument(help="Notebook: .py, .md or .ipynb.")],
    parameter: Annotated[
        list[str] | None, typer.Option("-p", help="name=value; a value that is not JSON is text.")
    ] = None,
    **values: Any,
) -> None:
    """Run your own notebook as a report; it needs cells with the tags source and parameters."""
    parameters = {}
    for text in parameter or ():
        name, equals, value = text.partition("=")
        if not equals:
            fail(f"a parameter must be name=value, not {text!r}", code=2)
        try:
            parameters[name.strip()] = json.loads(value)
        except ValueError:
            parameters[name.strip()] = value
    _write_reports(notebook, [parameters], values)


def _source_code(values: Mapping[str, Any]) -> str:
    """Return the code of the notebook cell that connects to the source."""
    from toolkit.reports.build import source_expression

    exchange, folder = values["exchange"], values["recordings"]
    if values["live"] or exchange:
        if exchange and find_address(exchange) is None:
            fail(f"--exchange: {exchange!r} is none of {', '.join(NAMES)}", code=2)
        return source_expression("connect", exchange=exchange or None)
    if values["archive"] is not None:
        return source_expression(archive=values["archive"])
    if folder is not None:
        if not folder.is_dir():
            fail(f"there is no folder {folder}: check --recordings", code=2)
        return source_expression(recordings=folder)
    return source_expression(seed=values["seed"], size=values["size"])


def _write_reports(
    notebook: str | Path, parameters: list[dict[str, Any]], values: Mapping[str, Any]
) -> None:
    """Build reports from the values of the common options.

    Print the headlines of a single report, or the path or the error of each of several.
    """
    from rich.console import Console

    from toolkit.errors import ReportFailed
    from toolkit.reports import build

    source, out, pdf, code = _source_code(values), values["out"], values["pdf"], values["code"]
    if len(parameters) > 1:
        failed, folder = 0, out or Path("build/report")
        for report in build.write_reports(notebook, parameters, source, folder, pdf=pdf, code=code):
            failed += report.error is not None
            parts = (report.path, report.pdf, report.error)
            found = ", ".join(str(part) for part in parts if part is not None)
            typer.echo(f"{report.name}: {found}")
        if failed:
            fail(f"{failed} of {len(parameters)} reports failed")
        return
    name = Path(notebook).stem
    out = out or Path("build/report") / f"{name.replace('_', '-')}.html"
    try:
        # A pipe or a file gets nothing of it, also with FORCE_COLOR.
        console = Console(stderr=True, force_terminal=sys.stderr.isatty() and None)
        with console.status(f"{name}: starting a kernel") as status:

            def show_cell(cell: int, cells: int) -> None:
                status.update(f"{name}: cell {cell} of {cells}")

            page = build.build(notebook, source, parameters[0], code=code, on_cell=show_cell)
        path = build.write_page(page.html, out)
        printed = build.print_pdf(path) if pdf else None
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
    typer.echo(f"digest: {build.page_digest(page.html)}")
    if printed is not None:
        typer.echo(f"pdf: {printed}")
