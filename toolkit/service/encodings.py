"""Content encodings: compression of responses, by the weights of Accept-Encoding.

RFC 9110, section 12.5.3. For equal weights, gzip has priority: several clients claim to read zstd
and cannot (docs/live_service.md, section 9).
"""

import functools
import math
from collections.abc import Callable
from typing import Final

import zstandard
from isal import igzip

from toolkit.service.handler_messages import Response
from toolkit.service.row_blocks import PageEncoding

__all__ = ["choose_encoding", "compress_response"]

_SMALLEST: Final = 1_024
"""The smallest body that is compressed, in bytes."""


def compress_response(response: Response, accepted: str) -> Response:
    """Return a response in the encoding that a client prefers.

    Parameters
    ----------
    response : Response
        The response. Only JSON is compressed. A small body is compressed only if the client
        refuses uncompressed bodies.
    accepted : str
        The client's Accept-Encoding header; empty if there is none.
    """
    is_json = response.headers.get("content-type") == "application/json"
    if not is_json:
        return response
    response = Response(
        response.status, {**response.headers, "vary": "accept-encoding"}, response.content
    )
    if "content-encoding" in response.headers:  # the handler had finished bytes
        return response
    name = choose_encoding(accepted)
    is_small = len(response.content) < _SMALLEST and _encoding_weights(accepted)("identity") > 0
    if name == "identity" or is_small:
        return response
    headers = {**response.headers, "content-encoding": name}
    return Response(response.status, headers, _COMPRESS[name](response.content))


@functools.lru_cache(maxsize=256)
def choose_encoding(accepted: str) -> PageEncoding:
    """Return the encoding that a client prefers, out of those that the service writes.

    Parameters
    ----------
    accepted : str
        The client's Accept-Encoding header.

    Returns
    -------
    str
        ``gzip``, ``zstd`` or ``identity``. It is ``identity`` also if the client accepts none of
        them, because a response that the client may be able to read is better than none.

    Examples
    --------
    >>> choose_encoding("gzip, deflate, br, zstd"), choose_encoding("zstd, gzip;q=0.9")
    ('gzip', 'zstd')
    >>> choose_encoding("identity, gzip;q=0.5"), choose_encoding("*;q=0.1"), choose_encoding("")
    ('identity', 'gzip', 'identity')
    """
    weight = _encoding_weights(accepted)
    # `max` returns the first of several equal weights.
    best = max(_COMPRESS, key=weight)
    if weight(best) <= 0:
        return "identity"
    is_named = "identity" in _parse_weights(accepted)
    return "identity" if is_named and weight("identity") > weight(best) else best


def _encoding_weights(accepted: str) -> Callable[[str], float]:
    """Return a function from an encoding to its weight, also for encodings without a name."""
    named = _parse_weights(accepted)
    rest = named.get("*")

    def weight(name: str) -> float:
        # `identity` is acceptable unless the header refuses it by name or by `*`.
        unnamed = (1.0 if rest is None else rest) if name == "identity" else (rest or 0.0)
        return named.get(name, unnamed)

    return weight


def _parse_weights(accepted: str) -> dict[str, float]:
    """Return the encodings in a header, with their weights."""
    weights = {}
    for part in accepted.lower().split(","):
        name, *parameters = (piece.strip() for piece in part.split(";"))
        if name:
            weights[name] = _quality_value(parameters)
    return weights


def _quality_value(parameters: list[str]) -> float:
    """Return the weight in the parameters of an encoding; 0 if it cannot be read."""
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
    # Four times as fast as zlib, and the result is smaller.
    return bytes(igzip.compress(content, compresslevel=1, mtime=0))


def _zstd(content: bytes) -> bytes:
    return zstandard.ZstdCompressor(level=1).compress(content)


_COMPRESS: Final[dict[PageEncoding, Callable[[bytes], bytes]]] = {"gzip": _gzip, "zstd": _zstd}
"""The encodings that the service writes, the preferred one first."""
