"""``toolkit info``: any request of the service, its answer as it comes."""

import inspect
import json
import sys
from typing import Annotated, Any

import typer

from toolkit.cli.asking import SOURCE, asking, session_of
from toolkit.cli.options import fail

__all__ = ["info"]

_REQUEST = inspect.Parameter(
    "request",
    inspect.Parameter.POSITIONAL_OR_KEYWORD,
    annotation=Annotated[
        str, typer.Argument(help='The request as JSON, such as \'{"type": "allMids"}\'.')
    ],
)


def info(**given: Any) -> None:
    """Send a request as it is, and print the answer as JSON.

    Any operation of the service can be asked, also one that has no function here.
    """
    try:
        request = json.loads(given["request"])
    except ValueError as error:
        fail(f"the request is not JSON: {error}", code=2)
    with asking():
        import toolkit as tk

        with session_of(given) as session:
            answer = tk.info(request, session=session)
    if isinstance(answer, bytes):
        sys.stdout.buffer.write(answer)
    else:
        typer.echo(json.dumps(answer, ensure_ascii=False))


info.__signature__ = inspect.Signature([_REQUEST, *SOURCE])  # type: ignore[attr-defined]
info.__annotations__ = {one.name: one.annotation for one in (_REQUEST, *SOURCE)}
