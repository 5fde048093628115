"""The note beside the notebooks: what is running, what kernels have, how to go live and to stop."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from toolkit.times import to_iso

__all__ = ["note"]

_NOTE: Final = """\
# About this laboratory

**{label}** answers at `{address}` for as long as this JupyterLab runs.{invented}
Its history ends on {end}: that is its present, from which `"7d"` counts back.

## In every kernel

```python
import toolkit as tk
session = tk.connect()
```

`tk.connect()` needs nothing more, for the kernels have

- `TOOLKIT_BASE_URL`: the address above;
- `TOOLKIT_API_KEY`: a key made for this session, and shown nowhere.

`tk.local()`, with which the notebooks begin, is the same service inside the kernel, without a port.

## The notebooks, in their order

{notebooks}

Each gets its kernel when you first turn to it.

## Against the live service

```python
from getpass import getpass
session = tk.connect("https://address-of-the-service", getpass("key: "))
```

in place of the first lines of a notebook: what is typed there is in no cell and in no output. Or
start JupyterLab yourself, with the live service's `TOOLKIT_BASE_URL` and `TOOLKIT_API_KEY` in its
environment, and ask `tk.connect()`.

## To stop

Ctrl-C in the terminal, or *File → Shut Down*: either ends JupyterLab, the service and every kernel.
Your notebooks stay; these tabs are laid out anew next time, and your own workspaces and settings
are as they were.
"""


def note(about: Mapping[str, Any], address: str, notebooks: Sequence[Path]) -> str:
    """Write the note, in Markdown.

    Parameters
    ----------
    about : mapping
        What the store says of itself: ``label``, ``now_ms``, ``simulated``.
    address : str
        Where the service answers.
    notebooks : sequence of Path
        The notebooks that are open, in their order.

    Examples
    --------
    >>> about = {"label": "simulated, seed 7, size tiny", "now_ms": 0, "simulated": True}
    >>> print(note(about, "http://127.0.0.1:8000", []).splitlines()[2])
    **simulated, seed 7, size tiny** answers at `http://127.0.0.1:8000` for as long as this
    JupyterLab runs. Nothing in it is real.
    """
    listed = "\n".join(f"1. [{_title(path)}]({quote(path.name)})" for path in notebooks)
    return _NOTE.format(
        label=about["label"],
        address=address,
        end=to_iso(about["now_ms"])[:10],
        invented=" Nothing in it is real." if about["simulated"] else "",
        notebooks=listed or "There is none in this folder yet.",
    )


def _title(path: Path) -> str:
    """Give a notebook's heading; where it has none, its name."""
    try:
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        text = "\n".join("".join(cell["source"]) for cell in cells[:1])
    except (ValueError, KeyError, TypeError):  # no notebook: JupyterLab will say so
        return path.stem
    heading = text.partition("\n")[0]
    return heading.removeprefix("# ") if heading.startswith("# ") else path.stem
