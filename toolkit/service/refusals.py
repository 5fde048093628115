"""How fast refusals are answered, by address, so that a flood of them leaves time for the rest."""

import ipaddress
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

from toolkit.service.limits import ServiceLimits

__all__ = ["RefusalSchedule"]

_MOST_ADDRESSES: Final = 10_000
"""Addresses in memory. Beyond them, the one with the oldest refusal is forgotten."""


class RefusalSchedule:
    """The times at which refusals are sent; a few come at once, further ones at a constant rate.

    Requests with a valid key are never delayed, so it does no harm if a flood has the address of
    others, for example behind a proxy.

    Parameters
    ----------
    limits : ServiceLimits
        Rate, number at once and longest wait.
    now : callable
        Returns a time in seconds, such as `time.monotonic`.

    Examples
    --------
    >>> limits = ServiceLimits(refusals_at_once=2, refusals_per_second=1, refusal_wait_seconds=2)
    >>> schedule = RefusalSchedule(limits, now=lambda: 0.0)
    >>> [schedule.plan_refusal("192.0.2.1") for _ in range(5)]
    [0.0, 0.0, 1.0, 2.0, None]
    """

    def __init__(self, limits: ServiceLimits, now: Callable[[], float]) -> None:
        self._now = now
        self._interval = 1 / limits.refusals_per_second
        self._at_once = limits.refusals_at_once
        self._longest = limits.refusal_wait_seconds
        self._due: OrderedDict[str, float] = OrderedDict()

    def plan_refusal(self, address: str) -> float | None:
        """Return the seconds until the next refusal for an address, or None if they are too many.

        With None the refusal is not sent, and it delays no other.
        """
        group, now = _address_group(address), self._now()
        due = max(self._due.get(group, now), now)
        wait = max(0.0, due - now - (self._at_once - 1) * self._interval)
        if wait > self._longest:
            return None
        self._due[group] = due + self._interval
        self._due.move_to_end(group)
        if len(self._due) > _MOST_ADDRESSES:
            self._due.popitem(last=False)
        return wait


def _address_group(address: str) -> str:
    """Return what one client can change at will: of IPv6 the first 64 bits."""
    if ":" not in address:
        return address
    ip = ipaddress.IPv6Address(address.partition("%")[0])
    return str(ip.ipv4_mapped) if ip.ipv4_mapped else f"{int(ip) >> 64:x}"
