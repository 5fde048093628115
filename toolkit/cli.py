"""The command line: ``toolkit serve``, ``world``, ``lab`` and ``report``."""

import json
import os
import secrets
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

if TYPE_CHECKING:
    from toolkit.service import Key, Store, Upstream

app = typer.Typer(
    help="Ask, simulate and report: a research toolkit for an exchange's data query service.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


class Size(StrEnum):
    """The sizes of simulated worlds."""

    tiny = "tiny"
    demo = "demo"


Seed = Annotated[int, typer.Option(help="What the simulated exchange is drawn from.")]
SizeOption = Annotated[Size, typer.Option(help="How large the simulated exchange is.")]
Port = Annotated[int, typer.Option(min=0, max=65_535, help="Port; 0 takes any that is free.")]


@app.command()
def serve(
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Port = 8787,
    seed: Seed = 7,
    size: SizeOption = Size.demo,
    recordings: Annotated[
        Path | None, typer.Option(help="Folder of recorded answers to serve instead.")
    ] = None,
    keys: Annotated[
        Path | None, typer.Option(help="TOML file of API keys; else TOOLKIT_API_KEY, or a new key.")
    ] = None,
    upstream: Annotated[
        str | None,
        typer.Option(
            help="Address of a server that answers what mirrors the exchange's info API; "
            "its key is TOOLKIT_UPSTREAM_KEY."
        ),
    ] = None,
) -> None:
    """Run the query service on a port."""
    from toolkit.local import site_of
    from toolkit.service import Access
    from toolkit.service.http import bind, server

    accepted = _keys(keys)
    mirrored = _upstream(upstream)
    try:
        taken = bind(host, port)
    except OSError as error:
        _fail(f"{host}:{port} cannot be had: {error.strerror or error}")
    with taken:
        store = _store(seed, size, recordings)
        taken.listen()
        name = f"[{host}]" if ":" in host else host
        typer.echo(f"{store.about['label']}: http://{name}:{taken.getsockname()[1]}")
        server(site_of(store, Access(accepted), upstream=mirrored)).run(sockets=[taken])


@app.command()
def world(
    seed: Seed = 7,
    size: SizeOption = Size.demo,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Say what is in a simulated exchange."""
    store = _store(seed, size, None)
    found = {name: value for name, value in store.about["world"].items() if name != "examples"}
    store.close()
    if as_json:
        typer.echo(json.dumps(found))
        return
    for name, value in found.items():
        if isinstance(value, list):
            more = ", ..." if len(value) > 4 else ""
            value = f"{len(value):>5}  {', '.join(map(str, value[:4]))}{more}"
        typer.echo(f"{name:18}{value}")


@app.command()
def lab(
    port: Port = 0,
    browser: Annotated[bool, typer.Option(help="Open a browser.")] = True,
    seed: Seed = 7,
    size: SizeOption = Size.demo,
    folder: Annotated[Path, typer.Option(help="Folder of notebooks.")] = Path("notebooks"),
) -> None:
    """Open the notebooks in JupyterLab, with the query service running beside it."""
    from toolkit.lab import LabMissing, run

    if not folder.is_dir():
        _fail(f"there is no folder {folder}: say where the notebooks are with --folder", code=2)
    try:
        code = run(_store(seed, size, None), folder, port=port, browser=browser)
    except LabMissing as error:
        _fail(str(error))
    raise typer.Exit(code)


# Handed on whole, so that plotting and frames are imported for a report only.
@app.command(
    add_help_option=False,
    context_settings={"allow_extra_args": True, "ignore_unknown_options": True},
)
def report(context: typer.Context) -> None:
    """Write reports: one self-contained HTML file each."""
    from toolkit.reports.cli import report_app

    report_app(context.args, prog_name="toolkit report")


def _store(seed: int, size: Size, recordings: Path | None) -> "Store":
    from toolkit.local import recorded_store, simulated_store

    if recordings is None:
        return simulated_store(seed, size.value)
    if not recordings.is_dir():
        _fail(f"there is no folder {recordings}", code=2)
    try:
        return recorded_store(recordings)
    except ValueError as error:
        _fail(str(error))


def _keys(path: Path | None) -> "list[Key]":
    from toolkit.service import Key, KeysUnreadable, read_keys

    if path is not None:
        try:
            return read_keys(path)
        except KeysUnreadable as error:
            _fail(str(error), code=2)
    secret = os.environ.get("TOOLKIT_API_KEY")
    if not secret:
        secret = secrets.token_urlsafe(24)
        typer.echo(f"TOOLKIT_API_KEY={secret}")
    return [Key("TOOLKIT_API_KEY", secret)]


def _upstream(address: str | None) -> "Upstream | None":
    from toolkit.service import Upstream

    if address is None:
        return None
    try:
        return Upstream(address, os.environ.get("TOOLKIT_UPSTREAM_KEY"))
    except ValueError as error:
        _fail(str(error), code=2)


def _fail(message: str, *, code: int = 1) -> NoReturn:
    typer.echo(f"toolkit: {message}", err=True)
    raise typer.Exit(code)
