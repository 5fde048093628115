"""``toolkit plan``: what a fetch will cost, before it is made."""

import inspect
import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from toolkit.cli.asking import (
    SOURCE,
    OperationGroup,
    add_operations,
    arguments_of,
    asking,
    is_many,
    session_of,
)
from toolkit.cli.options import fail

if TYPE_CHECKING:
    from toolkit.contract.operations import Operation

__all__ = ["plan_app"]

plan_app = typer.Typer(
    cls=OperationGroup,
    help="Say how many rows, requests, points and minutes a fetch takes, and how sure that is.",
    no_args_is_help=True,
)


@plan_app.callback()
def plan() -> None:
    """Say what a fetch will cost."""


_ANSWER: Final = tuple(
    inspect.Parameter(
        name,
        inspect.Parameter.KEYWORD_ONLY,
        default=False,
        annotation=Annotated[bool, typer.Option(option, help=words)],
    )
    for name, option, words in (
        ("probe", "--probe", "Ask for a page or two, which costs points, and reckon from them."),
        ("as_json", "--json", "Print JSON."),
    )
)


def _plan(operation: "Operation", options: dict[str, Any]) -> None:
    arguments = arguments_of(operation, options)
    if is_many(operation, arguments):
        fail("plan one subject at a time", code=2)
    with asking():
        import toolkit as tk
        from toolkit.fetch.registry import FUNCTIONS

        __import__("toolkit.fetch")  # fills FUNCTIONS
        with session_of(options) as session:
            made = tk.plan(
                FUNCTIONS[operation.type], probe=options["probe"], session=session, **arguments
            )
    typer.echo(json.dumps(asdict(made)) if options["as_json"] else str(made))


add_operations(plan_app, _plan, (*_ANSWER, *SOURCE))
