"""Options that several commands share, and the store or session that they select."""

import inspect
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, TypeVar

import typer

from toolkit.cli.console import fail

if TYPE_CHECKING:
    from toolkit.client import Session
    from toolkit.service import Store


Command = TypeVar("Command", bound=Callable[..., None])
Size = Literal["tiny", "demo", "large"]
"""The sizes of simulated exchanges."""

SeedOption = Annotated[int, typer.Option(help="Seed of the simulated exchange.")]
SizeOption = Annotated[Size, typer.Option(help="Size of the simulated exchange.")]
PortOption = Annotated[int, typer.Option(min=0, max=65_535, help="Port; 0 selects a free port.")]
RecordingsOption = Annotated[
    Path | None, typer.Option(help="Folder of recorded answers to use instead.")
]
ArchiveOption = Annotated[
    str | None,
    typer.Option(help="Folder of an archive to use instead; folder@<id> selects a freeze."),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def keyword_option(
    name: str, kind: Any, help: str, default: Any = None, *flags: str
) -> inspect.Parameter:
    """Return a parameter for a command that is made at run time.

    Parameters
    ----------
    name : str
        Name of the parameter.
    kind : type
        Type of its value.
    help : str
        Its help text.
    default : object
        Its default.
    *flags : str
        The options on the command line; by default ``--`` and the name.
    """
    option = typer.Option(*(flags or (f"--{name.replace('_', '-')}",)), help=help)
    return inspect.Parameter(
        name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[kind, option]
    )


def flag_option(name: str, help: str, flag: str = "") -> inspect.Parameter:
    """Return the parameter of a flag that is off by default."""
    return keyword_option(name, bool, help, False, flag or f"--{name}")


JSON_OPTION: Final = flag_option("as_json", "Print JSON.", "--json")


def with_options(*options: inspect.Parameter) -> Callable[[Command], Command]:
    """Add options to a command, which has ``**values`` for them.

    Typer reads the options from its signature and annotations.
    """

    def add(command: Command) -> Command:
        own = inspect.signature(command).parameters.values()
        every = [
            option.replace(kind=inspect.Parameter.KEYWORD_ONLY)
            for option in (*own, *options)
            if option.kind is not inspect.Parameter.VAR_KEYWORD
        ]
        vars(command)["__signature__"] = inspect.Signature(every)
        command.__annotations__ = {option.name: option.annotation for option in every}
        return command

    return add


SOURCE_OPTIONS: Final = (
    keyword_option(
        "base_url",
        str | None,
        "Address of the service, or hydromancer or hyperliquid; by default TOOLKIT_BASE_URL.",
    ),
    keyword_option(
        "exchange",
        str | None,
        "Use the own API of this exchange, which needs no key: hyperliquid. With --base-url, what "
        "answers there in its place.",
    ),
    keyword_option(
        "points_per_minute",
        int | None,
        "Quota of the key: requests wait when it is used up, and do not fail.",
    ),
    keyword_option("most_points", int | None, "Spend no more points than this."),
    keyword_option("seed", int | None, "Use a simulated exchange with this seed instead."),
    keyword_option("size", Size | None, "Use a simulated exchange of this size instead."),
    keyword_option("recordings", Path | None, "Use a folder of recorded answers instead."),
    keyword_option(
        "archive", str | None, "Use an archive instead: its folder; folder@<id> selects a freeze."
    ),
)
"""The options that select a service or a local source. Only TOOLKIT_API_KEY contains the key."""


def open_chosen_store(
    seed: SeedOption = 7,
    size: SizeOption = "demo",
    recordings: RecordingsOption = None,
    archive: ArchiveOption = None,
    *,
    strict: bool = False,
) -> "Store":
    """Return the store that the options select; a wrong option ends the command."""
    from toolkit.errors import ArchiveError
    from toolkit.local_service import recorded_store, simulated_store

    if archive is None and recordings is not None and not recordings.is_dir():
        fail(f"there is no folder {recordings}: check --recordings", code=2)
    try:
        if archive is not None:
            from toolkit.archive.serve import archived_store

            return archived_store(archive, strict=strict)
        if recordings is not None:
            return recorded_store(recordings, strict=strict)
        return simulated_store(seed, size, strict=strict)
    except (ArchiveError, ValueError, OSError) as error:
        fail(str(error))


LOCAL_OPTIONS: Final = tuple(inspect.signature(open_chosen_store).parameters.values())[:4]
"""The options that select a local source."""

_TWO_SOURCES: Final = "and a local source are two sources: use only one of them"
_NO_QUOTA: Final = "works only with a service, not with a local source"


def open_session(options: Mapping[str, Any], progress: Any = False) -> "Session":
    """Connect to the service or the local source that the options select."""
    names = ("seed", "size", "recordings", "archive")
    local = {name: options[name] for name in names if options.get(name) is not None}
    if local:
        for name in ("base_url", "exchange", "points_per_minute", "most_points"):
            if options.get(name) not in (None, ""):
                words = _NO_QUOTA if "points" in name else _TWO_SOURCES
                fail(f"--{name.replace('_', '-')} {words}", code=2)
        from toolkit.local_service import local as connect_locally

        session = connect_locally(**local, default=False)
        session.progress = progress
        return session
    from toolkit.client import connect

    return connect(
        options["base_url"],
        exchange=options.get("exchange"),
        points_per_minute=options["points_per_minute"],
        most_points=options["most_points"],
        progress=progress,
        default=False,
    )
