"""``toolkit report``: reports, one self-contained HTML file each."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from toolkit.cli.options import Recordings, Seed, Size, SizeOption, fail

if TYPE_CHECKING:
    from toolkit.client import Session

__all__ = ["report_app"]

report_app = typer.Typer(
    help="Write reports: one self-contained HTML file each.", no_args_is_help=True
)


@report_app.callback()
def report() -> None:
    """Write reports: one self-contained HTML file each."""


@report_app.command()
def wallet(
    user: Annotated[
        str | None, typer.Option(help="Address of the account; offline, else an example account.")
    ] = None,
    start: Annotated[str, typer.Option(help='First time, such as 2025-09-01 or "7d".')] = "",
    end: Annotated[str | None, typer.Option(help="Last time; else now.")] = None,
    builder: Annotated[
        list[str] | None,
        typer.Option(help="A builder that the account had approved; may be given more than once."),
    ] = None,
    out: Annotated[Path, typer.Option(help="Where to write.")] = Path("build/report/wallet.html"),
    seed: Seed = 7,
    size: SizeOption = Size.demo,
    recordings: Recordings = None,
    live: Annotated[
        bool, typer.Option("--live", help="Ask TOOLKIT_BASE_URL with TOOLKIT_API_KEY instead.")
    ] = False,
) -> None:
    """Report what one account earned, paid and traded."""
    from toolkit.errors import ToolkitError
    from toolkit.reports.wallet_report import build, write

    if live and user is None:
        fail("--live needs an account: --user 0x...", code=2)
    try:
        session = _session(live, seed, size, recordings)
        made = build(user, start or 0, end, builders=builder, session=session)
    except (ToolkitError, ValueError) as error:
        fail(str(error))
    try:
        path = write(made.html, out)
    except OSError as error:
        fail(f"{out} cannot be written: {error.strerror or error}")
    typer.echo(f"{made.user} ({session.label})")
    for line in made.headlines:
        typer.echo(f"  {line.label:26}{line.value:>22}  {line.note}")
    typer.echo(f"report: {path}")


def _session(live: bool, seed: int, size: Size, recordings: Path | None) -> "Session":
    if live:
        from toolkit.client import connect

        return connect()
    from toolkit.local import local

    return local(seed=seed, size=size.value, recordings=recordings)
