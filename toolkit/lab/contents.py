"""The files that JupyterLab shows: those of a folder, and a note that is in no folder."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from jupyter_server.services.contents.largefilemanager import AsyncLargeFileManager
from tornado.web import HTTPError
from traitlets import Unicode

NOTE: Final = "About this laboratory.md"
"""Path of the note in JupyterLab."""


class FolderAndNote(AsyncLargeFileManager):
    """Serves a folder, and the note of the session as a read-only file in it.

    So the session writes nothing into the folder: neither the note nor a checkpoint of it.
    """

    # The methods of the base class have no annotations.
    note = Unicode(help="The file that contains the note.").tag(config=True)

    async def file_exists(self, path: str) -> bool:
        """Return whether a file exists; the note exists in the root of the folder."""
        return _is_note(path) or bool(await super().file_exists(path))

    async def get(self, path: str, content: bool = True, *args: Any, **options: Any) -> Any:
        """Return the model of a file or the note, in the format of Jupyter's contents API."""
        if not _is_note(path):
            return await super().get(path, content, *args, **options)  # type: ignore[no-untyped-call]
        file = Path(self.note)
        modified = datetime.fromtimestamp(file.stat().st_mtime, UTC)
        model = {"name": NOTE, "path": NOTE, "type": "file", "writable": False}
        model |= {"created": modified, "last_modified": modified, "size": file.stat().st_size}
        model |= dict.fromkeys(("hash", "hash_algorithm", "content", "format", "mimetype"))
        if content:
            model |= {"content": file.read_text(encoding="utf-8")}
            model |= {"format": "text", "mimetype": "text/markdown"}
        return model

    async def save(self, model: dict[str, Any], path: str = "") -> Any:
        """Save a file; raise an error for the note."""
        if _is_note(path):
            raise HTTPError(
                403,
                f"{NOTE} is read-only, because it is written for this session. Save a copy with "
                "another name",
            )
        return await super().save(model, path)  # type: ignore[no-untyped-call]


def _is_note(path: str) -> bool:
    return path.strip("/") == NOTE
