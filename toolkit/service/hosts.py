"""The Host header of a request: which names of the service are accepted.

A web page of another site can let its own name point to 127.0.0.1 (DNS rebinding). The browser
then sends requests of this page to a service on this machine, with the page's name as Host.
"""

import ipaddress
import re
from collections.abc import Collection

from toolkit.errors import BadRequest, ServiceError

_HOST = re.compile(r"(\[[0-9a-fA-F:.]+\]|[^\s:/?#@\[\]]*)(?::\d*)?")


def is_loopback(address: str) -> bool:
    """Return whether an IP address or a name means this machine.

    Examples
    --------
    >>> [is_loopback(name) for name in ("127.0.0.1", "::1", "localhost", "0.0.0.0", "example.org")]
    [True, True, True, False, False]
    """
    name = address.lower().rstrip(".")
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return name == "localhost" or name.endswith(".localhost")


def check_host(host: str | None, allowed: Collection[str] | None) -> None:
    """Raise if a Host header is not valid, or does not name this machine.

    Parameters
    ----------
    host : str or None
        The header; None if the request has none, as HTTP/1.0 allows.
    allowed : collection of str or None
        Further names, in lower case, that mean this service; None: every name is accepted.

    Raises
    ------
    ServiceError
        With status 400 if the header is not valid, 421 if it is another name.
    """
    if host is None:
        return
    match = _HOST.fullmatch(host)
    if match is None:
        raise BadRequest("The Host header is not valid")
    name = match[1].strip("[]").lower()
    if allowed is not None and not is_loopback(name) and name not in allowed:
        raise ServiceError(
            f"This service is only for this machine, not for the host {name[:80]!r}. A proxy in "
            "front of it needs toolkit serve --allow-host",
            status=421,
        )
