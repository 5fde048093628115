"""The command line: ``toolkit serve``, ``world``, ``lab``, ``fetch``, ``plan``, ``report`` ...

There is one module per topic. A command imports slow modules only when it runs.
"""

from typing import Annotated

import typer

from toolkit.cli.archive import archive_app
from toolkit.cli.fetch import fetch_app, info, plan_app
from toolkit.cli.report import report_app
from toolkit.cli.service import lab, serve, world

__all__ = ["app"]

app = typer.Typer(
    help="Fetch, simulate and report: a research toolkit for an exchange's data query service.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


@app.callback(invoke_without_command=True)
def main(
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    """Fetch, simulate and report: a research toolkit for an exchange's data query service."""
    if version:
        from importlib.metadata import version as version_of

        typer.echo(version_of("exchange-toolkit"))
        raise typer.Exit


app.command()(serve)
app.command()(world)
app.command()(lab)
app.command()(info)
app.add_typer(fetch_app, name="fetch")
app.add_typer(plan_app, name="plan")
app.add_typer(report_app, name="report")
app.add_typer(archive_app, name="archive")
