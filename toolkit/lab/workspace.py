"""What JupyterLab opens: the notebooks as tabs, and a note beside them.

The session has a workspace of its own, so the user's workspaces do not change.
"""

import contextlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from toolkit.times import to_iso

_NAME: Final = "default"  # `/lab` opens this one, and the folder contains no other
# JupyterLab restores a kernel with every tab, and twelve kernels take some 900 MB. So no tab has a
# kernel; the extension beside this file starts one when the tab first comes to the front.
_NO_KERNEL: Final = {"kernelPreference": {"shouldStart": False, "autoStartDefault": True}}

_NOTE: Final = """\
# About this laboratory

**{label}** runs at `{address}` until this JupyterLab ends.{simulated}
Its history ends on {end}. This is its present: `"7d"` means the seven days before it.

## In every kernel

```python
import toolkit as tk
session = tk.connect()
```

`tk.connect()` needs no arguments, because every kernel has two environment variables:

- `TOOLKIT_BASE_URL`: the address above;
- `TOOLKIT_API_KEY`: a key for this session only, which is shown nowhere.

The notebooks begin with `tk.local()`: the same service inside the kernel, without a port.

## The notebooks, in their order

{notebooks}

The kernel of a notebook starts when you first open its tab.

## Against the live service

```python
from getpass import getpass
session = tk.connect("https://address-of-the-service", getpass("key: "))
```

Use these lines instead of the first lines of a notebook: the key that you type is in no cell and in
no output. Or start JupyterLab yourself, with the live service's `TOOLKIT_BASE_URL` and
`TOOLKIT_API_KEY` in its environment, and call `tk.connect()`.

## To stop

Press Ctrl-C in the terminal, or choose *File → Shut Down*: either ends JupyterLab, the service and
every kernel. Your notebooks stay. The next session opens the same tabs again. Your own workspaces
and settings do not change.
"""


def make_note(about: Mapping[str, Any], address: str, notebooks: Sequence[Path]) -> str:
    """Return the note, in Markdown.

    - ``about``: facts about the store: ``label``, ``now_ms``, ``simulated``
    - ``address``: address of the service
    - ``notebooks``: the notebooks that are open, in their order

    >>> about = {"label": "simulated, seed 7, size tiny", "now_ms": 0, "simulated": True}
    >>> print(make_note(about, "http://127.0.0.1:8000", []).splitlines()[2])
    **simulated, seed 7, size tiny** runs at `http://127.0.0.1:8000` until this JupyterLab ends.
    Nothing in it is real.
    """
    lines = []
    for path in notebooks:
        title = path.stem
        # Without a heading. JupyterLab reports what is not a notebook.
        with contextlib.suppress(ValueError, KeyError, TypeError):
            cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
            heading = "".join(cells[0]["source"]).partition("\n")[0] if cells else ""
            title = heading[2:] if heading.startswith("# ") else title
        lines.append(f"1. [{title}]({quote(path.name)})")
    return _NOTE.format(
        label=about["label"],
        address=address,
        end=to_iso(about["now_ms"])[:10],
        simulated=" Nothing in it is real." if about["simulated"] else "",
        notebooks="\n".join(lines) or "There is none in this folder yet.",
    )


def save_workspace(folder: Path, notebooks: list[str], note: str) -> None:
    """Write the workspace into a folder, in JupyterLab's format.

    - ``folder``: the folder for the workspaces of this session
    - ``notebooks``: paths of the notebooks to open, relative to the folder that JupyterLab shows
    - ``note``: path of the note, relative to the same folder
    """
    from jupyterlab_server.workspaces_handler import WorkspacesManager

    content = {"data": make_layout(notebooks, note), "metadata": {"id": _NAME}}
    WorkspacesManager(str(folder)).save(_NAME, json.dumps(content))


def make_layout(notebooks: list[str], note: str) -> dict[str, Any]:
    """Return the layout: the notebooks as tabs, the first in front, and the note beside them.

    >>> layout = make_layout(["01.ipynb", "02.ipynb"], "note.md")
    >>> layout["layout-restorer:data"]["main"]["current"]
    'notebook:01.ipynb'
    >>> layout["markdownviewer-widget:note.md"]["data"]
    {'path': 'note.md', 'factory': 'Markdown Preview'}
    """
    tabs = [f"notebook:{path}" for path in notebooks]
    beside = f"markdownviewer-widget:{note}"
    areas = [
        {"type": "tab-area", "currentIndex": 0, "widgets": widgets}
        for widgets in (tabs, [beside])
        if widgets
    ]
    sizes = [0.7, 0.3] if tabs else [1.0]
    dock = {"type": "split-area", "orientation": "horizontal", "sizes": sizes, "children": areas}
    hidden = {"collapsed": True, "widgets": []}
    main = {"dock": dock, "current": [*tabs, beside][0]}
    opened: dict[str, Any] = {
        tab: {"data": {"path": path, "factory": "Notebook", **_NO_KERNEL}}
        for tab, path in zip(tabs, notebooks, strict=True)
    }
    opened[beside] = {"data": {"path": note, "factory": "Markdown Preview"}}
    return {"layout-restorer:data": {"main": main, "left": hidden, "right": hidden}, **opened}
