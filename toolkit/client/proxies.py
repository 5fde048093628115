"""Proxies: which machines between the client and the service can read the key."""

from ipaddress import ip_address
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from toolkit.contract.apis import NAMES
from toolkit.errors import KeyExposed, warn_caller


def address_problem(base_url: str) -> str:
    """Return what is wrong with an address, without its text, which may be a key."""
    try:
        parts = urlsplit(base_url)
        has_port = parts.port != 0
    except ValueError:  # of a port, or of the brackets of an IPv6 address
        has_port = False
    if not has_port:
        return (
            "The address is not valid: its host or its port cannot be used. A port is a number "
            "from 1 to 65535"
        )
    if "@" in base_url or parts.query or parts.fragment:
        return "The address contains a key or a query. Pass the key as api_key"
    if " " in base_url or not base_url.isprintable():
        return "The address contains a space or a control character. Remove it"
    if parts.scheme not in ("http", "https") or not parts.hostname:
        return (
            "The text passed as the address is not an address: it does not begin with http:// or "
            "https://. Use one such as https://host or http://127.0.0.1:8787, or one of the names "
            f"{', '.join(NAMES)}. If the text is the key, pass it as api_key"
        )
    return ""


def is_this_machine(base_url: str) -> bool:
    """Return whether an address is this machine's own."""
    host = (urlsplit(base_url).hostname or "").removesuffix(".")  # an absolute name ends with it
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def warn_of_exposure(base_url: str) -> None:
    """Warn if the key is sent without encryption, or through a proxy.

    Requests to this machine are never sent through a proxy.
    """
    parts = urlsplit(base_url)
    host = parts.hostname or ""
    if is_this_machine(base_url):
        return
    if parts.scheme == "http":
        warn_caller(
            f"The key is sent to {host} without encryption: every machine on the way can read it. "
            "Use https://",
            KeyExposed,
        )
    proxies = getproxies()
    proxy = proxies.get(parts.scheme) or proxies.get("all")
    if proxy and not proxy_bypass(host):
        name = urlsplit(proxy if "//" in proxy else f"//{proxy}").hostname
        decrypts = "" if parts.scheme == "http" else " if it decrypts HTTPS"
        warn_caller(
            f"Requests to {host} go through the proxy {name} (an environment variable sets it). "
            f"The proxy can read the key{decrypts}. If {name} is not your proxy, add {host} to "
            "NO_PROXY",
            KeyExposed,
        )
