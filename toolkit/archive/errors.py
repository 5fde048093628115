"""Errors of deltalake, pyarrow and object stores become `ArchiveError` and its subclasses."""

import functools
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import ModuleType
from typing import Final

import pyarrow as pa

from toolkit.errors import ArchiveError, CommitConflict, StoreUnreachable, ToolkitError
from toolkit.installation import install_command

_NO_SPACE: Final = (
    *("No space left", "os error 28", "File too large", "Disk quota exceeded"),
    *("QuotaExceeded", "StorageFull", "Insufficient Storage"),  # words of object stores
)
_NO_PERMISSION: Final = re.compile(r"(os error|errno) (13|30)|code: (13|30),")
_NO_CREDENTIALS: Final = ("loading credentials", "IMDS", "169.254.169.254", "CredentialsNotLoaded")
_WRITE_FAILED: Final = ("performing PUT", "performing POST")
_REQUEST_FAILED: Final = ("rror performing", "rror sending request", "NoSuchBucket")
_DECORATION: Final = re.compile(r"\x1b\[[0-9;]*m|↳")  # colours and arrows in messages
_BACKTRACE: Final = re.compile(r"\s+0: .*\s1: .*")
_STORE_VARIABLES: Final = ("AWS_", "AZURE_", "GOOGLE_")
_SECRET_NAME: Final = re.compile(r"secret|token|password|key", re.IGNORECASE)
_SHORTEST_SECRET: Final = 6  # characters
_ADVICE: Final = "; toolkit archive verify shows what is damaged"


@contextmanager
def explain_missing_library() -> Iterator[None]:
    """Re-raise a missing library of the extra `scale` as ArchiveError, which names the extra."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise ArchiveError(
            f"the archive needs {error.name}, which is part of the extra scale. "
            f"Run: {install_command('scale')}"
        ) from None


@functools.cache
def load_deltalake() -> ModuleType:
    """Return the library deltalake; its import takes long, so that it is not done before.

    Its log on stderr is turned off, unless the user has set RUST_LOG: it raises the same errors.
    """
    is_set = "RUST_LOG" in os.environ
    os.environ.setdefault("RUST_LOG", "off")
    try:
        with explain_missing_library():
            import deltalake
    finally:
        if not is_set:
            del os.environ["RUST_LOG"]
    return deltalake


@contextmanager
def translate_errors(location: str, options: Mapping[str, str]) -> Iterator[None]:
    """Re-raise errors of deltalake and pyarrow as ArchiveError without secrets of `options`."""
    exceptions = load_deltalake().exceptions
    try:
        yield
    # The original error is not chained, because a store may have written credentials into it.
    except exceptions.CommitFailedError as error:
        raise CommitConflict(_clean_text(error, options)) from None
    except (exceptions.DeltaError, pa.ArrowException, OSError) as error:
        raise _make_error(location, _clean_text(error, options)) from None


def error_text(error: Exception) -> str:
    """Return what went wrong while damaged data was read, without advice."""
    if isinstance(error, ToolkitError):
        return str(error).removesuffix(_ADVICE)
    return f"{type(error).__name__}: {error}"


def permission_error(location: str) -> ArchiveError:
    """Return the error that a folder cannot be read or written."""
    return ArchiveError(
        f"{location}: this user may not read or write there, or the disk is read-only. Change "
        "the permissions of the folder, or copy the archive to a folder of your own"
    )


def _make_error(location: str, text: str) -> ArchiveError:
    location = location.removeprefix("file://").rstrip("/")
    if any(phrase in text for phrase in _NO_SPACE):
        return ArchiveError(
            f"{location}: there is no space left to write ({text}). Free some space and refresh "
            "again: no archived row is lost"
        )
    if _NO_PERMISSION.search(text):
        return permission_error(location)
    if "://" not in location:
        return ArchiveError(f"{location}: {text}{_ADVICE}")
    if any(phrase in text for phrase in _NO_CREDENTIALS):
        return StoreUnreachable(
            f"{location}: there are no credentials for the store. Set AWS_ACCESS_KEY_ID, "
            "AWS_SECRET_ACCESS_KEY and AWS_REGION, and AWS_ENDPOINT_URL for a store that is not "
            f"Amazon's; or pass them as storage_options ({text})"
        )
    if any(phrase in text for phrase in _WRITE_FAILED):
        return ArchiveError(
            f"{location}: the store refused a write ({text}). Check that the credentials allow "
            "writing and that the store works, and refresh again: no archived row is lost"
        )
    # A store that answers "not found" was reached: the object is missing.
    object_missing = "not found" in text.lower() and "NoSuchBucket" not in text
    unreachable = not object_missing and any(phrase in text for phrase in _REQUEST_FAILED)
    message = f"{location}: {text}; check the address, the network and the store's credentials"
    return StoreUnreachable(message) if unreachable else ArchiveError(message)


def _clean_text(error: Exception, options: Mapping[str, str]) -> str:
    """Return the text of an error without colours, native backtraces and secrets."""
    text = _BACKTRACE.sub("", " ".join(_DECORATION.sub(" ", str(error)).split()))
    inherited = {
        name: value for name, value in os.environ.items() if name.startswith(_STORE_VARIABLES)
    }
    for name, value in {**inherited, **options}.items():
        if _SECRET_NAME.search(name) and len(value) >= _SHORTEST_SECRET:
            text = text.replace(value, "***")
    return text
