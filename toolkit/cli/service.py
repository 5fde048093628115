"""``toolkit serve`` and ``toolkit world``: the query service, and what is in it."""

import json
import os
import secrets
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from toolkit.cli.options import Archived, Port, Recordings, Seed, Size, SizeOption, fail, store_of

if TYPE_CHECKING:
    from toolkit.service import Key, Upstream

__all__ = ["serve", "world"]


def serve(
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Port = 8787,
    seed: Seed = 7,
    size: SizeOption = Size.demo,
    recordings: Recordings = None,
    archive: Archived = None,
    clock: Annotated[
        Literal["fixed", "live"],
        typer.Option(help="Whether the simulated exchange stands at its end, or runs on."),
    ] = "fixed",
    strict: Annotated[
        bool,
        typer.Option(
            "--strict",
            help="Answer exactly the specification and its 22 operations, without what the live "
            "service adds.",
        ),
    ] = False,
    keys: Annotated[
        Path | None, typer.Option(help="TOML file of API keys; else TOOLKIT_API_KEY, or a new key.")
    ] = None,
    upstream: Annotated[
        str | None,
        typer.Option(
            help="Address of a server that answers what mirrors the exchange's info API, and every "
            "type that is not known here; its key is TOOLKIT_UPSTREAM_KEY."
        ),
    ] = None,
) -> None:
    """Run the query service on a port."""
    from toolkit.local_service import site_of
    from toolkit.service import Access
    from toolkit.service.http import bind_socket, make_server

    accepted, made = _keys(keys)
    mirrored = _upstream(upstream)
    try:
        taken = bind_socket(host, port)
    except OSError as error:
        why = error.strerror or error
        fail(f"{host}:{port} cannot be had: {why}; --port 0 takes any port that is free")
    with taken:
        store = store_of(seed, size, recordings, archive, strict=strict)
        try:
            site = site_of(store, Access(accepted), clock=clock, upstream=mirrored)
        except ValueError as error:
            fail(str(error), code=2)
        taken.listen()
        if made:
            typer.echo(f"export TOOLKIT_API_KEY={made}   # made for this run; paste where you ask")
        name = f"[{host}]" if ":" in host else host
        typer.echo(f"{store.about['label']}: http://{name}:{taken.getsockname()[1]}")
        make_server(site).run(sockets=[taken])


def world(
    seed: Seed = 7,
    size: SizeOption = Size.demo,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Say what is in a simulated exchange."""
    store = store_of(seed, size)
    hidden = {"examples", "stories"}
    found = {name: value for name, value in store.about["world"].items() if name not in hidden}
    store.close()
    if as_json:
        typer.echo(json.dumps(found))
        return
    for name, value in found.items():
        if isinstance(value, list):
            more = ", ..." if len(value) > 4 else ""
            value = (
                f"{len(value):>5}  {', '.join(str(one) or '(native)' for one in value[:4])}{more}"
            )
        typer.echo(f"{name:18}{value}")


def _keys(path: Path | None) -> "tuple[list[Key], str]":
    """Give the keys to accept, and the one that was made because there was none."""
    from toolkit.service import Key, KeysUnreadable, read_keys

    if path is not None:
        try:
            return read_keys(path), ""
        except KeysUnreadable as error:
            fail(str(error), code=2)
    given = os.environ.get("TOOLKIT_API_KEY")
    secret = given or secrets.token_urlsafe(24)
    return [Key("TOOLKIT_API_KEY", secret)], "" if given else secret


def _upstream(address: str | None) -> "Upstream | None":
    from toolkit.service import Upstream

    if address is None:
        return None
    try:
        return Upstream(address, os.environ.get("TOOLKIT_UPSTREAM_KEY"))
    except ValueError as error:
        fail(str(error), code=2)
