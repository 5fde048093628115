"""Content encodings: compression of responses, by the weights of Accept-Encoding.

RFC 9110, section 12.5.3. For equal weights, gzip has priority: several clients claim to read zstd
and cannot (docs/live_service.md, section 9).
"""

import functools
import re
from typing import Final

import zstandard
from isal import igzip

from toolkit.service.handler_messages import Response

_SMALLEST: Final = 1_024
"""The smallest body that is compressed, in bytes."""

_CODING: Final = re.compile(r"([\w*-]+)(?:;q=(\d*\.?\d+))?")


@functools.lru_cache(maxsize=256)
def choose_encoding(accepted: str) -> str:
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
    codings = re.sub(r"\s", "", accepted.lower()).split(",")
    weights = {
        coding[1]: float(coding[2] or 1) for coding in map(_CODING.fullmatch, codings) if coding
    }
    gzip, zstd = (weights.get(name, weights.get("*", 0.0)) for name in ("gzip", "zstd"))
    if not max(gzip, zstd) or max(gzip, zstd) < weights.get("identity", 0.0):
        return "identity"
    return "zstd" if zstd > gzip else "gzip"


def compress_response(response: Response, encoding: str) -> Response:
    """Return a response in an encoding; only JSON that is not small is compressed."""
    if response.headers.get("content-type") != "application/json":
        return response
    content, headers = response.content, {**response.headers, "vary": "accept-encoding"}
    # A handler may have encoded its response itself.
    is_finished = "content-encoding" in headers or len(content) < _SMALLEST
    if not is_finished and encoding != "identity":
        headers["content-encoding"] = encoding
        if encoding == "gzip":  # four times as fast as zlib, and the result is smaller
            content = bytes(igzip.compress(content, compresslevel=1, mtime=0))
        else:
            content = zstandard.ZstdCompressor(level=1).compress(content)
    return Response(response.status, headers, content)
