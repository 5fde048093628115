"""What goes wrong below the archive, in our words: where, why, and what to do."""

import importlib
import os
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from typing import Any, Final

import pyarrow as pa

from toolkit.errors import ArchiveError, ToolkitError

__all__ = ["Beaten", "Unreached", "need", "speaking", "told"]

_NO_ROOM: Final = (
    *("No space left", "os error 28", "File too large", "Disk quota exceeded"),
    *("QuotaExceeded", "StorageFull", "Insufficient Storage"),  # as object stores say it
)
_NO_CREDENTIALS: Final = ("loading credentials", "IMDS", "169.254.169.254", "CredentialsNotLoaded")
_NOT_WRITTEN: Final = ("performing PUT", "performing POST")
_NOT_REACHED: Final = ("rror performing", "rror sending request", "NoSuchBucket")
_DRAWN: Final = re.compile(r"\x1b\[[0-9;]*m|↳")  # colours and arrows in messages
_TRACE: Final = re.compile(r"\s+0: .*\s1: .*")  # a native backtrace
_STORES: Final = ("AWS_", "AZURE_", "GOOGLE_")
_SECRET: Final = re.compile(r"secret|token|password|key", re.IGNORECASE)
_ADVICE: Final = "; toolkit archive verify says what is damaged"


class Beaten(ArchiveError):
    """Another writer committed the same run first."""


class Unreached(ArchiveError):
    """The store did not answer, or let nobody in: nothing is known of what it holds."""


@contextmanager
def speaking(where: str, options: Mapping[str, str]) -> Iterator[None]:
    """Turn the errors of the libraries below into ours, with the place and what to do."""
    exceptions = need("deltalake.exceptions")
    try:
        yield
    # The library's own error is not chained: a store may have written credentials into it.
    except exceptions.CommitFailedError as error:
        raise Beaten(_plain(error, options)) from None
    except (exceptions.DeltaError, pa.ArrowException, OSError) as error:
        raise _said(where, _plain(error, options)) from None


def told(error: Exception) -> str:
    """Say what reading damaged data stumbled over."""
    if isinstance(error, ToolkitError):
        return str(error).removesuffix(_ADVICE)
    return f"{type(error).__name__}: {error}"


def _said(where: str, words: str) -> ArchiveError:
    if any(one in words for one in _NO_ROOM):
        return ArchiveError(
            f"{where}: there is no room to write ({words}); free some, and refresh again: "
            "nothing is lost"
        )
    if "://" not in where or where.startswith("file:"):
        return ArchiveError(f"{where}: {words}{_ADVICE}")
    if any(one in words for one in _NO_CREDENTIALS):
        return Unreached(
            f"{where}: there are no credentials for the store: set AWS_ACCESS_KEY_ID and "
            "AWS_SECRET_ACCESS_KEY, AWS_REGION, and for other stores than Amazon's "
            f"AWS_ENDPOINT_URL; or give them as storage_options ({words})"
        )
    if any(one in words for one in _NOT_WRITTEN):
        return ArchiveError(
            f"{where}: the store did not take what was written ({words}); see that the credentials "
            "may write there and that the store is well, and refresh again: nothing is lost"
        )
    # What is not in its place was looked for by a store that answers.
    answered = "not found" in words.lower() and "NoSuchBucket" not in words
    failed = not answered and any(one in words for one in _NOT_REACHED)
    said = f"{where}: {words}; check the address, the network and the store's credentials"
    return Unreached(said) if failed else ArchiveError(said)


def _plain(error: Exception, options: Mapping[str, str]) -> str:
    """Give an error's words, without colours, native backtraces and secrets."""
    words = _TRACE.sub("", " ".join(_DRAWN.sub(" ", str(error)).split()))
    for secret in _secrets(options):
        words = words.replace(secret, "***")
    return words


def _secrets(options: Mapping[str, str]) -> list[str]:
    """Give what opens the store, from the options and the environment."""
    inherited = {name: text for name, text in os.environ.items() if name.startswith(_STORES)}
    held = {**inherited, **options}
    return [text for name, text in held.items() if _SECRET.search(name) and len(text) >= 6]


def need(name: str) -> Any:
    """Import a library of the extra `scale`.

    Raises
    ------
    ArchiveError
        If it is not installed; the message names the extra.
    """
    try:
        with nullcontext() if name in sys.modules else _without_native_log():
            return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name.partition(".")[0]:
            raise
        raise ArchiveError(
            f"the archive needs {name}, of the extra scale: in the clone, pip install '.[scale]'"
        ) from None


@contextmanager
def _without_native_log() -> Iterator[None]:
    """Keep deltalake from writing to stderr what it raises as well; RUST_LOG brings it back."""
    if "RUST_LOG" in os.environ:
        yield
        return
    os.environ["RUST_LOG"] = "off"
    try:
        yield
    finally:
        os.environ.pop("RUST_LOG", None)
