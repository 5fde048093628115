"""``toolkit lab``: the notebooks in JupyterLab, with the service beside it."""

from pathlib import Path
from typing import Annotated

import typer

from toolkit.cli.options import Port, Seed, Size, SizeOption, fail, store_of

__all__ = ["lab"]


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
        fail(f"there is no folder {folder}: say where the notebooks are with --folder", code=2)
    try:
        code = run(store_of(seed, size), folder, port=port, browser=browser)
    except LabMissing as error:
        fail(str(error))
    raise typer.Exit(code)
