"""Options and words that commands share."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

if TYPE_CHECKING:
    from toolkit.service import Store

__all__ = ["Archived", "Port", "Recordings", "Seed", "Size", "SizeOption", "fail", "store_of"]


class Size(StrEnum):
    """The sizes of simulated exchanges."""

    tiny = "tiny"
    demo = "demo"
    large = "large"


Seed = Annotated[int, typer.Option(help="What the simulated exchange is drawn from.")]
SizeOption = Annotated[Size, typer.Option(help="How large the simulated exchange is.")]
Port = Annotated[int, typer.Option(min=0, max=65_535, help="Port; 0 takes any that is free.")]
Recordings = Annotated[Path | None, typer.Option(help="Folder of recorded answers to use instead.")]
Archived = Annotated[
    str | None,
    typer.Option(help="Archive to use instead: its folder, @<id> behind it for a freeze."),
]


def store_of(
    seed: int,
    size: Size,
    recordings: Path | None = None,
    archive: str | None = None,
    *,
    strict: bool = False,
) -> "Store":
    """Give the store that a command's options name; a mistake ends the command in words."""
    from toolkit.errors import ArchiveError
    from toolkit.local_service import archived_store, recorded_store, simulated_store

    if archive is not None:
        try:
            return archived_store(archive, strict=strict)
        except ArchiveError as error:
            fail(str(error))
    if recordings is None:
        try:
            return simulated_store(seed, size.value, strict=strict)
        except (ValueError, OSError) as error:
            fail(str(error))
    if not recordings.is_dir():
        fail(f"there is no folder {recordings}", code=2)
    try:
        return recorded_store(recordings, strict=strict)
    except ValueError as error:
        fail(str(error))


def fail(message: str, *, code: int = 1) -> NoReturn:
    """End the command with one line; code 2 where the command line itself is wrong."""
    typer.echo(f"toolkit: {message}", err=True)
    raise typer.Exit(code)
