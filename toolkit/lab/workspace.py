"""The tabs that JupyterLab begins with: a workspace of the session's own, the user's untouched."""

import json
from pathlib import Path
from typing import Any, Final

__all__ = ["keep_workspace", "workspace"]

_NAME: Final = "default"  # the one that `/lab` opens, in a folder that holds no other
# JupyterLab restores a kernel with every tab, and twelve take some 900 MB. So none has one; the
# extension beside this file starts a tab's kernel when the tab first comes to the front.
_NO_KERNEL: Final = {"kernelPreference": {"shouldStart": False, "autoStartDefault": True}}


def keep_workspace(folder: Path, notebooks: list[str], note: str) -> None:
    """Write the workspace where JupyterLab, told of the folder, looks for it.

    Parameters
    ----------
    folder : Path
        The folder of workspaces, the session's own.
    notebooks : list of str
        Paths of the notebooks to open, below the folder that JupyterLab shows.
    note : str
        Path of the note, likewise.
    """
    from jupyterlab_server.workspaces_handler import WorkspacesManager

    content = {"data": workspace(notebooks, note), "metadata": {"id": _NAME}}
    WorkspacesManager(str(folder)).save(_NAME, json.dumps(content))


def workspace(notebooks: list[str], note: str) -> dict[str, Any]:
    """Give the layout: the notebooks as tabs, the first in front, and the note beside them.

    Examples
    --------
    >>> layout = workspace(["01.ipynb", "02.ipynb"], "note.md")
    >>> layout["layout-restorer:data"]["main"]["current"]
    'notebook:01.ipynb'
    >>> layout["markdownviewer-widget:note.md"]["data"]
    {'path': 'note.md', 'factory': 'Markdown Preview'}
    """
    tabs = [f"notebook:{path}" for path in notebooks]
    beside = f"markdownviewer-widget:{note}"
    areas = [_tabs(tabs), _tabs([beside])] if tabs else [_tabs([beside])]
    sizes = [0.7, 0.3] if tabs else [1.0]
    dock = {"type": "split-area", "orientation": "horizontal", "sizes": sizes, "children": areas}
    layout: dict[str, Any] = {
        "main": {"dock": dock, "current": [*tabs, beside][0]},
        "left": {"collapsed": True, "widgets": []},
        "right": {"collapsed": True, "widgets": []},
    }
    opened = {
        tab: {"data": {"path": path, "factory": "Notebook", **_NO_KERNEL}}
        for tab, path in zip(tabs, notebooks, strict=True)
    }
    shown = {beside: {"data": {"path": note, "factory": "Markdown Preview"}}}
    return {"layout-restorer:data": layout, **opened, **shown}


def _tabs(widgets: list[str]) -> dict[str, Any]:
    return {"type": "tab-area", "currentIndex": 0, "widgets": widgets}
