"""The command line: ``toolkit serve``, ``world``, ``lab`` and ``report``.

One module a topic; what takes long to import is imported when a command runs.
"""

import typer

from toolkit.cli.lab import lab
from toolkit.cli.report import report_app
from toolkit.cli.service import serve, world

__all__ = ["app"]

app = typer.Typer(
    help="Ask, simulate and report: a research toolkit for an exchange's data query service.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.command()(serve)
app.command()(world)
app.command()(lab)
app.add_typer(report_app, name="report")
