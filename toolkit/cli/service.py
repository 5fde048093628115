"""``toolkit serve``, ``toolkit lab`` and ``toolkit world``: the query service and its data."""

import json
import os
import secrets
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from toolkit.cli.console import fail, print_warnings, warn
from toolkit.cli.options import (
    ArchiveOption,
    JsonOption,
    PortOption,
    RecordingsOption,
    SeedOption,
    SizeOption,
    open_chosen_store,
)
from toolkit.display import count_text

if TYPE_CHECKING:
    from toolkit.service import AcceptedKey


def serve(
    host: Annotated[
        str,
        typer.Option(
            help="Address to listen on. Other machines can reach the service unless this is "
            "127.0.0.1, ::1 or localhost."
        ),
    ] = "127.0.0.1",
    port: PortOption = 8787,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(
            help="A further name by which clients on this machine reach the service, such as that "
            "of a proxy. Can be repeated."
        ),
    ] = None,
    seed: SeedOption = 7,
    size: SizeOption = "demo",
    recordings: RecordingsOption = None,
    archive: ArchiveOption = None,
    clock: Annotated[
        Literal["fixed", "live"],
        typer.Option(
            help="Whether the present stays at the end of the history, or goes on from there."
        ),
    ] = "fixed",
    strict: Annotated[
        bool,
        typer.Option(
            "--strict",
            help="Answer exactly the specification and its 22 operations, without the additions of "
            "the live service.",
        ),
    ] = False,
    like: Annotated[
        Literal["service", "exchange"],
        typer.Option(
            "--as",
            help="The API that it plays: the query service, or the exchange's own API, which has "
            "no keys, other pages and other costs.",
        ),
    ] = "service",
    keys: Annotated[
        Path | None,
        typer.Option(
            help="TOML file of API keys; by default TOOLKIT_API_KEY, or a new key if only this "
            "machine can reach the service."
        ),
    ] = None,
    upstream: Annotated[
        str | None,
        typer.Option(
            help="Address of a server that answers the operations of the exchange's info API, and "
            "all unknown types; its key is TOOLKIT_UPSTREAM_KEY."
        ),
    ] = None,
) -> None:
    """Run the query service on a port."""
    from toolkit.contract.apis import EXCHANGE, SERVICE
    from toolkit.errors import MissingExtra
    from toolkit.installation import explain_missing
    from toolkit.local_service import application_of
    from toolkit.service import KeyQuotas, Upstream

    try:
        with explain_missing("serve"):
            from toolkit.service.http import HttpServer, bind_socket
    except MissingExtra as error:
        fail(str(error))
    api = EXCHANGE if like == "exchange" else SERVICE
    if not api.has_keys and (keys or upstream or archive):
        fail("--as exchange works without --keys, --upstream and --archive: leave them out", code=2)
    accepted, new_secret = _accepted_keys(keys) if api.has_keys else ([], "")
    try:
        upstream_key = os.environ.get("TOOLKIT_UPSTREAM_KEY")
        server = None if upstream is None else Upstream(upstream, upstream_key)
    except ValueError as error:
        fail(str(error), code=2)
    try:
        bound = bind_socket(host, port)
    except OSError as error:
        reason = error.strerror or error
        fail(f"cannot listen on {host}:{port}: {reason}; --port 0 selects a free port")
    with bound:
        _check_exposure(host, bound.getsockname()[0], has_new_secret=bool(new_secret))
        store = open_chosen_store(seed, size, recordings, archive, strict=strict)
        try:
            application = application_of(
                store,
                KeyQuotas(accepted),
                clock=clock,
                upstream=server,
                api=api,
                points_per_machine=api.points_per_minute,
            )
        except ValueError as error:
            fail(str(error), code=2)
        bound.listen()
        if new_secret:
            typer.echo(
                f"export TOOLKIT_API_KEY={new_secret}   # only for this run; set it in clients"
            )
        name = f"[{host}]" if ":" in host else host
        typer.echo(f"{store.about['label']}: http://{name}:{bound.getsockname()[1]}")
        HttpServer(application, bound, allowed_hosts=allow_host or ()).run()


def lab(
    port: PortOption = 0,
    browser: Annotated[bool, typer.Option(help="Open a browser.")] = True,
    seed: SeedOption = 7,
    size: SizeOption = "demo",
    folder: Annotated[
        Path, typer.Option(help="Folder of notebooks. If ./notebooks does not exist, it is made.")
    ] = Path("notebooks"),
) -> None:
    """Open the notebooks in JupyterLab, with the query service running beside it."""
    from toolkit.errors import MissingExtra
    from toolkit.installation import find_shadow
    from toolkit.lab import run_lab

    if folder == Path("notebooks") and not folder.exists():
        notebooks(folder)
    if not folder.is_dir():
        fail(f"there is no folder {folder}: name the folder of notebooks with --folder", code=2)
    if (shadow := find_shadow(folder)) is not None:
        warn(f"notebooks in {folder} import {shadow} instead of this package: rename it")
    try:
        code = run_lab(open_chosen_store(seed, size), folder, port=port, browser=browser)
    except MissingExtra as error:
        fail(str(error))
    raise typer.Exit(code)


def notebooks(
    folder: Annotated[Path, typer.Argument(help="Where to copy them; made if it is missing.")],
) -> None:
    """Copy the notebooks of this package into a folder; files that exist there stay."""
    from toolkit.installation import notebook_folder

    sources = sorted(notebook_folder().glob("*.ipynb"))
    try:
        folder.mkdir(parents=True, exist_ok=True)
        new = [path for path in sources if not (folder / path.name).exists()]
        for path in new:
            shutil.copy(path, folder)
    except OSError as error:
        fail(f"cannot write into {folder}: {error.strerror or error}")
    there = f"; {len(sources) - len(new)} were there already" if len(new) < len(sources) else ""
    typer.echo(f"{count_text(len(new), 'notebook')} copied to {folder}{there}", err=True)


def world(seed: SeedOption = 7, size: SizeOption = "demo", as_json: JsonOption = False) -> None:
    """Print a summary of a simulated exchange."""
    with print_warnings():
        store = open_chosen_store(seed, size)
    hidden = {"examples", "stories"}
    summary = {name: value for name, value in store.about["world"].items() if name not in hidden}
    store.close()
    if as_json:
        typer.echo(json.dumps(summary))
        return
    for name, value in summary.items():
        if isinstance(value, list):
            more = ", ..." if len(value) > 4 else ""
            first = ", ".join(str(entry) or "(native)" for entry in value[:4])
            value = f"{len(value):>5}  {first}{more}"
        typer.echo(f"{name:18}{value}")
    typer.echo("toolkit world --json lists all of them", err=True)


def _accepted_keys(path: Path | None) -> "tuple[list[AcceptedKey], str]":
    """Return the keys to accept, and the new one if there was none, else an empty text."""
    from toolkit.service import AcceptedKey, KeysUnreadable, read_keys

    if path is not None:
        try:
            keys = read_keys(path)
        except KeysUnreadable as error:
            fail(str(error), code=2)
        if os.name == "posix" and path.stat().st_mode & 0o077:
            warn(f"other users of this machine can read {path}. Run: chmod 600 {path}")
        return keys, ""
    environment = os.environ.get("TOOLKIT_API_KEY")
    secret = environment or secrets.token_urlsafe(24)
    return [AcceptedKey("TOOLKIT_API_KEY", secret)], "" if environment else secret


def _check_exposure(host: str, address: str, *, has_new_secret: bool) -> None:
    """Print a warning if other machines can reach the service; fail if its key is a new one."""
    from toolkit.service.hosts import is_loopback

    if is_loopback(address):
        return
    if has_new_secret:
        fail(
            f"--host {host} lets other machines reach the service, so it needs a key of yours: set "
            "TOOLKIT_API_KEY, or name a file with --keys",
            code=2,
        )
    warn(
        f"OTHER MACHINES CAN REACH THIS SERVICE, because it listens on {host}. Keys and data "
        "travel without encryption. Put a proxy with TLS in front of it, or leave out --host"
    )
