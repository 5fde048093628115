"""Bytes of answers: they are read and decompressed as they come, up to a limit."""

import time
from collections.abc import Mapping
from typing import Final

import httpx

from toolkit.contract.compression import decompress
from toolkit.contract.operations import Operation
from toolkit.errors import AnswerDamaged, AnswerInvalid

__all__ = ["LARGEST_JSON", "LARGEST_SNAPSHOTS", "PATIENCE", "is_binary", "read_body"]

LARGEST_JSON: Final = 2**28
"""Bytes of the largest JSON answer that is read, after decompression."""

LARGEST_SNAPSHOTS: Final = 2**30
"""Bytes of the largest binary answer that is read; its decompressed size has another limit."""

PATIENCE: Final = 600.0
"""Seconds after which a body that comes too slowly is given up."""

_ENDS: Final = {b"[": b"]", b"{": b"}"}
_BINARY: Final = ("application/octet-stream", "application/msgpack", "application/x-msgpack")


def read_body(operation: Operation, response: httpx.Response) -> bytes:
    """Return the body of an answer, decompressed unless the operation is binary.

    Raises
    ------
    AnswerInvalid
        If the body is longer than the limit.
    AnswerDamaged
        If the body of a good answer ends too early, or its compression is broken.
    httpx.HTTPError
        If the body does not come.
    """
    limit = LARGEST_SNAPSHOTS if operation.binary else LARGEST_JSON
    parts, size, begun = [], 0, time.monotonic()
    # With a transport of its own, httpx may have read and decoded the body already.
    is_decoded = response.is_stream_consumed
    for part in [response.content] if is_decoded else response.iter_raw():
        size += len(part)
        parts.append(part)
        if size > limit:
            raise AnswerInvalid(
                f"the answer is longer than {limit:,} bytes", operation=operation.type
            )
        if time.monotonic() - begun > PATIENCE:
            raise httpx.ReadTimeout(f"the answer did not end within {PATIENCE:.0f} s")
    announced = response.headers.get("content-length", "")
    if not is_decoded and announced.isascii() and announced.isdigit() and size < int(announced):
        raise httpx.RemoteProtocolError(f"the answer broke off after {size} of {announced} bytes")
    content = b"".join(parts)
    if operation.binary:
        return content
    content = bytes(decompress(content, limit))
    if response.status_code == 200 and not is_binary(operation, response.headers):
        _check_json_end(operation, content)
    return content


def is_binary(operation: Operation, headers: Mapping[str, str]) -> bool:
    """Return whether an answer is binary, by the contract or, if it does not know, by headers."""
    if operation.tables:
        return operation.binary
    return headers.get("content-type", "").partition(";")[0].strip().lower() in _BINARY


def _check_json_end(operation: Operation, content: bytes) -> None:
    """Raise an error if JSON was cut off; `decode` refuses what is not JSON at all."""
    bare = content.strip()
    if not bare or bare[-1:] != _ENDS.get(bare[:1], bare[-1:]):
        raise AnswerDamaged(
            "the answer cannot be read: it ends too early",
            operation=operation.type,
            value=content[:80],
        )
