"""Content encodings: which one a client wants, by the weights of its Accept-Encoding header.

RFC 9110, section 12.5.3. Between equal weights gzip wins: several clients claim to read zstd and
cannot (docs/live_service.md, section 9).
"""

import gzip
import math
from collections.abc import Callable
from typing import Final

import zstandard

from toolkit.service.asked import Answer

__all__ = ["choose_encoding", "encode_answer"]

_SMALLEST: Final = 1_024
"""Bytes from which an answer is worth compressing."""


def encode_answer(plain: Answer, accepted: str) -> Answer:
    """Return an answer in the encoding that a client prefers.

    Parameters
    ----------
    plain : Answer
        The answer. Only JSON is compressed, and only where it is worth it, or where the client
        refuses what is not compressed.
    accepted : str
        The client's Accept-Encoding header; empty where it has none.
    """
    if "content-encoding" in plain.headers:
        return plain
    if plain.headers.get("content-type") != "application/json":
        return plain
    name = choose_encoding(accepted)
    is_small = len(plain.content) < _SMALLEST and _weights(accepted)("identity") > 0
    if name == "identity" or is_small:
        return plain
    headers = {**plain.headers, "content-encoding": name, "vary": "accept-encoding"}
    return Answer(plain.status, headers, _COMPRESS[name](plain.content))


def choose_encoding(accepted: str) -> str:
    """Return the encoding that a client prefers of those that we write.

    Parameters
    ----------
    accepted : str
        Its Accept-Encoding header.

    Returns
    -------
    str
        ``gzip``, ``zstd`` or ``identity``; the last also where the client accepts none of them,
        since an answer that it may be able to read is better than none.

    Examples
    --------
    >>> choose_encoding("gzip, deflate, br, zstd"), choose_encoding("zstd, gzip;q=0.9")
    ('gzip', 'zstd')
    >>> choose_encoding("identity, gzip;q=0.5"), choose_encoding("*;q=0.1"), choose_encoding("")
    ('identity', 'gzip', 'identity')
    """
    weight = _weights(accepted)
    # `max` keeps the first of equals.
    best = max(_COMPRESS, key=weight)
    if weight(best) <= 0:
        return "identity"
    is_named = "identity" in _parse(accepted)
    return "identity" if is_named and weight("identity") > weight(best) else best


def _weights(accepted: str) -> Callable[[str], float]:
    """Return the weight that a header gives to an encoding, whether or not it names it."""
    named = _parse(accepted)
    rest = named.get("*")

    def weight(name: str) -> float:
        # What is not encoded is acceptable, unless it is refused by its name or by `*`.
        unnamed = (1.0 if rest is None else rest) if name == "identity" else (rest or 0.0)
        return named.get(name, unnamed)

    return weight


def _parse(accepted: str) -> dict[str, float]:
    """Return the encodings that a header names, with their weights."""
    weights = {}
    for part in accepted.lower().split(","):
        name, *parameters = (piece.strip() for piece in part.split(";"))
        if name:
            weights[name] = _quality(parameters)
    return weights


def _quality(parameters: list[str]) -> float:
    """Return the weight among the parameters of an encoding; 0 where it cannot be read."""
    for parameter in parameters:
        name, _, value = (piece.strip() for piece in parameter.partition("="))
        if name == "q":
            try:
                weight = float(value)
            except ValueError:
                return 0.0
            return min(max(weight, 0.0), 1.0) if math.isfinite(weight) else 0.0
        return 0.0
    return 1.0


def _gzip(content: bytes) -> bytes:
    return gzip.compress(content, compresslevel=1, mtime=0)


def _zstd(content: bytes) -> bytes:
    return zstandard.ZstdCompressor(level=1).compress(content)


_COMPRESS: Final[dict[str, Callable[[bytes], bytes]]] = {"gzip": _gzip, "zstd": _zstd}
"""Encodings that we write, the one to prefer first."""
