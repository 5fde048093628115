"""The files that JupyterLab sees: those of a folder, and a note that stands in none."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from jupyter_server.services.contents.largefilemanager import AsyncLargeFileManager
from tornado.web import HTTPError
from traitlets import Unicode

__all__ = ["NOTE", "FolderAndNote"]

NOTE: Final = "About this laboratory.md"
"""Where JupyterLab finds the note."""


class FolderAndNote(AsyncLargeFileManager):
    """Serves a folder, and the note of the session as a file of it that cannot be written.

    So the note leaves nothing in the folder: no file, and no checkpoint of one.
    """

    note = Unicode(help="The file that holds the note.").tag(config=True)

    async def file_exists(self, path: str) -> bool:
        """Say whether there is such a file: the note is, in the folder's root."""
        return _is_note(path) or bool(await super().file_exists(path))

    async def get(self, path: str, content: bool = True, *args: Any, **options: Any) -> Any:
        """Give a file as Jupyter's contents API describes it, or the note."""
        if not _is_note(path):
            return await super().get(path, content, *args, **options)  # type: ignore[no-untyped-call]
        return self._note(content)

    async def save(self, model: dict[str, Any], path: str = "") -> Any:
        """Save a file; the note is not to be written."""
        if _is_note(path):
            raise HTTPError(403, f"{NOTE} is made for this session, and cannot be changed")
        return await super().save(model, path)  # type: ignore[no-untyped-call]

    def _note(self, content: bool) -> dict[str, Any]:
        file = Path(self.note)
        made = datetime.fromtimestamp(file.stat().st_mtime, UTC)
        model = {"name": NOTE, "path": NOTE, "type": "file", "writable": False}
        model |= {"created": made, "last_modified": made, "size": file.stat().st_size}
        model |= {"hash": None, "hash_algorithm": None}
        text = file.read_text(encoding="utf-8") if content else None
        return model | {
            "content": text,
            "format": "text" if content else None,
            "mimetype": "text/markdown" if content else None,
        }


def _is_note(path: str) -> bool:
    return path.strip("/") == NOTE
