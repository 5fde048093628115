"""From the body of an answer to the MessagePack of its snapshots, in bounded memory."""

import struct
from collections.abc import Iterator, Mapping
from typing import Final

from toolkit.contract.compression import ZSTD, inflate, reader
from toolkit.errors import AnswerInvalid

__all__ = ["payloads"]

_WORD: Final = struct.Struct("<I")


def payloads(headers: Mapping[str, str], content: bytes, limit: int) -> Iterator[memoryview]:
    """Give the MessagePack of each snapshot of an answer, one after the other.

    Parameters
    ----------
    headers : mapping
        HTTP headers, names in any case.
    content : bytes
        The body. Some HTTP libraries have already undone ``Content-Encoding: zstd``, others
        have not: its first bytes tell.
    limit : int
        Most bytes of all snapshots together, decompressed.

    Yields
    ------
    memoryview
        MessagePack of one snapshot, not checked.

    Raises
    ------
    AnswerInvalid
        If the body is damaged, or more than `limit` comes out of it.
    """
    decompressor = reader()
    for blob in _blobs(content) if _is_multi(headers, content) else [memoryview(content)]:
        payload = inflate(blob, limit, decompressor)
        limit -= len(payload)
        yield payload


def _is_multi(headers: Mapping[str, str], content: bytes) -> bool:
    form = next((text for name, text in headers.items() if name.lower() == "x-payload-format"), "")
    if form.lower() in ("multi-zstd", "msgpack"):
        return form.lower() == "multi-zstd"
    # Without the header: a count and a length stand before the first blob. No MessagePack of a
    # snapshot has these four bytes there, since they are no UTF-8.
    return content[:4] != ZSTD and content[8:12] == ZSTD


def _blobs(content: bytes) -> Iterator[memoryview]:
    view, at = memoryview(content), 4
    if len(content) < 4:
        raise AnswerInvalid(f"{len(content)} bytes are too few for the number of snapshots")
    (count,) = _WORD.unpack_from(content)
    for index in range(count):
        if at + 4 > len(content):
            raise AnswerInvalid(f"{count} snapshots are announced, but the body ends after {index}")
        (length,) = _WORD.unpack_from(content, at)
        at += 4
        if at + length > len(content):
            raise AnswerInvalid(
                f"snapshot {index + 1} of {count} should have {length} bytes, but "
                f"{len(content) - at} are left"
            )
        yield view[at : at + length]
        at += length
    if at != len(content):
        raise AnswerInvalid(f"{len(content) - at} bytes follow the last of {count} snapshots")
