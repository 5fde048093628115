"""The envelope of snapshots: compression, and several snapshots in one body.

The MessagePack of each snapshot is compressed with zstd. An answer with several snapshots has their
number and, before each one, its length. All work happens in bounded memory.
"""

import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec
import zstandard

from toolkit.contract.compression import bounded_decompressor, decompress, is_zstd
from toolkit.display import count_text
from toolkit.errors import AnswerInvalid

_WORD: Final = struct.Struct("<I")

# ASSUMED: Snapshots contain numbers as MessagePack numbers, not as decimal text. The readers of
# this package accept both.
_encoder = msgspec.msgpack.Encoder(decimal_format="number")


def open_envelope(headers: Mapping[str, str], content: bytes, limit: int) -> Iterator[memoryview]:
    """Yield the MessagePack of each snapshot of an answer.

    - ``headers``: HTTP headers, names in any case
    - ``content``: the body. Some HTTP libraries have already decompressed ``Content-Encoding:
      zstd``, and others have not; the first bytes show it.
    - ``limit``: the most bytes of all snapshots together, decompressed

    Yields: MessagePack of one snapshot, not checked.

    Raise AnswerInvalid if the body is damaged, or the snapshots are longer than `limit`.
    """
    decompressor = bounded_decompressor()
    is_multi = _has_several_snapshots(headers, content)
    for blob in _split_blobs(content) if is_multi else [memoryview(content)]:
        payload = decompress(blob, limit, decompressor)
        limit -= len(payload)
        yield payload


def _has_several_snapshots(headers: Mapping[str, str], content: bytes) -> bool:
    form = next((text for name, text in headers.items() if name.lower() == "x-payload-format"), "")
    if form.lower() in ("multi-zstd", "msgpack"):
        return form.lower() == "multi-zstd"
    # Without the header: a count and a length precede the first blob. The MessagePack of a snapshot
    # cannot have these four bytes there, because they are not UTF-8.
    return not is_zstd(content) and is_zstd(content[8:12])


def _split_blobs(content: bytes) -> Iterator[memoryview]:
    view, at = memoryview(content), 4
    if len(content) < 4:
        raise AnswerInvalid(f"{len(content)} bytes are too few for the number of snapshots")
    (count,) = _WORD.unpack_from(content)
    for index in range(count):
        if at + 4 > len(content):
            raise AnswerInvalid(
                f"the body should have {count} snapshots, but it ends after {index}. Request it "
                "again"
            )
        (length,) = _WORD.unpack_from(content, at)
        at += 4
        if at + length > len(content):
            raise AnswerInvalid(
                f"snapshot {index + 1} of {count} should have {length} bytes, but "
                f"only {len(content) - at} are left. Request it again"
            )
        yield view[at : at + length]
        at += length
    if at != len(content):
        rest = count_text(len(content) - at, "byte follows", "bytes follow")
        raise AnswerInvalid(
            f"unexpected: {rest} the last of {count_text(count, 'snapshot')}. Request it again"
        )


def pack_snapshot(
    snapshot: tuple[Any, ...],
    entries: Iterable[tuple[Any, ...]],
    lengths: tuple[int, ...],
    level: int,
) -> bytes:
    """Return one compressed snapshot.

    - ``snapshot``: its values
    - ``entries``: its entries
    - ``lengths``: the lengths that an entry may have
    - ``level``: the level of the compression

    Raise ValueError if an entry has another length.
    """
    for entry in entries:
        if len(entry) not in lengths:
            allowed = " or ".join(map(str, lengths))
            raise ValueError(f"an entry must have {allowed} values, not {len(entry)}: {entry!r}")
    return zstandard.ZstdCompressor(level=level).compress(_encoder.encode(tuple(snapshot)))


def assemble_answer(blobs: Sequence[bytes]) -> tuple[dict[str, str], bytes]:
    """Return the headers and the body of an answer with compressed snapshots."""
    if not blobs:
        raise ValueError(
            "an answer needs at least one snapshot; without one the service answers 404"
        )
    # ASSUMED: Binary snapshots have the content type `application/octet-stream`. The specification
    # names none, and the readers of this package ignore it.
    headers = {"Content-Type": "application/octet-stream"}
    if len(blobs) == 1:
        headers |= {"x-payload-format": "msgpack", "Content-Encoding": "zstd"}
        return headers, blobs[0]
    headers |= {"x-payload-format": "multi-zstd", "x-compression": "inner-zstd"}
    parts = [_WORD.pack(len(blobs))]
    for blob in blobs:
        parts += [_WORD.pack(len(blob)), blob]
    return headers, b"".join(parts)
