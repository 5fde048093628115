"""The command line: ``toolkit serve``, ``world``, ``lab``, ``fetch``, ``plan``, ``report`` ...

There is one module per topic. A command imports slow modules only when it runs.
"""

import sys
from typing import Annotated, Any, Final

import typer
from typer.core import TyperGroup

from toolkit.cli.archive import archive_app
from toolkit.cli.console import disk_message
from toolkit.cli.doctor import doctor
from toolkit.cli.fetch import fetch_app, info, plan_app
from toolkit.cli.report import report_app
from toolkit.cli.service import lab, notebooks, serve, world

__all__ = ["app"]

FIRST_STEPS: Final = """\
Complete, typed data of the Hyperliquid data service, offline or live.

Without a key, on a simulated exchange:
  toolkit world --size tiny                         accounts and coins to choose from
  toolkit report wallet --size tiny                 a report of an example account
  toolkit fetch userFills --size tiny --user 0x...  fills as a table, or a file with -o fills.csv
  toolkit lab                                       the notebooks in JupyterLab
  toolkit serve --size tiny                         the service on a port, for other programs

Against the live service:
  export TOOLKIT_API_KEY=... TOOLKIT_BASE_URL=https://...
  toolkit plan userFillsByTime --user 0x... --start 7d   what it costs, before you fetch

toolkit doctor checks this machine. toolkit --help lists all commands.
toolkit --install-completion completes commands with the Tab key."""


class AllCommands(TyperGroup):
    """All commands: a failure to write, as on a full disk, ends each with one line."""

    def main(self, *arguments: Any, **named: Any) -> Any:
        """Run the command of the command line."""
        try:
            return super().main(*arguments, **named)
        except OSError as error:
            typer.echo(f"toolkit: {disk_message(error)}", err=True)
            sys.exit(1)


app = typer.Typer(
    cls=AllCommands,
    help="Fetch, simulate and report: a research toolkit for an exchange's data query service.",
    pretty_exceptions_enable=False,
)


@app.callback(invoke_without_command=True)
def main(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    """Fetch, simulate and report: a research toolkit for an exchange's data query service."""
    if version:
        from importlib.metadata import version as version_of

        typer.echo(version_of("exchange-toolkit"))
        raise typer.Exit
    if context.invoked_subcommand is None:
        typer.echo(FIRST_STEPS)


for command in (serve, world, lab, notebooks, doctor, info):
    app.command()(command)
app.add_typer(fetch_app, name="fetch")
app.add_typer(plan_app, name="plan")
app.add_typer(report_app, name="report")
app.add_typer(archive_app, name="archive")
