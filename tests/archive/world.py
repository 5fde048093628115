"""A small exchange of our own rows behind the real service, to archive from."""

import random
from collections.abc import Callable, Sequence
from typing import Any

import httpx

from toolkit.client import Session, connect
from toolkit.contract.records import Fill
from toolkit.contract.sources import Sources
from toolkit.local import InProcess, site_of
from toolkit.service import Access, Key, build

USER = "0x" + "a" * 40
START = 1_756_684_800_000
CANARY = "canary-d41d8cd98f00b204"


def fills_of(rows: int, seed: int = 5) -> list[Fill]:
    """Fills with ties: many in a millisecond, and many in a transaction."""
    draw = random.Random(seed)
    fills: list[Fill] = []
    time, tx = START, 0
    while len(fills) < rows:
        if draw.random() < 0.4:
            tx += 1
        else:
            time, tx = time + draw.randint(1, 4_000), 0
        size = draw.choice([1, 1, 1, 1, 2, 2, 3, 5, 9])
        fills += [_fill(len(fills) + i, time, tx) for i in range(min(size, rows - len(fills)))]
    return fills


def _fill(number: int, time: int, tx: int) -> Fill:
    return Fill(
        coin="BTC",
        px="64000.10",
        sz="1.0",
        side="B",
        time=time,
        start_position=f"{number}.0",
        dir="Open Long",
        closed_pnl="0.0",
        hash=f"0x{tx:064x}",
        oid=number // 3,
        crossed=True,
        fee="0.123456789012345678",
        tid=number,
        fee_token="USDC",
        twap_id=None,
        tx_index=tx,
    )


def session_of(
    fills: Sequence[Fill],
    *,
    inclusive: bool = False,
    through: Callable[[httpx.BaseTransport], httpx.BaseTransport] | None = None,
    key: str = CANARY,
    users: Sequence[str] = (USER,),
) -> Session:
    """Connect to a service that has these fills, of each of the users."""
    sources = Sources(
        start_ms=START,
        now_ms=fills[-1].time + 1_000,
        label="test",
        simulated=True,
        fills=[(user, fill) for user in users for fill in fills],
    )
    store = build(sources)
    site = site_of(store, Access([Key("k", key)]), inclusive=inclusive)
    transport: httpx.BaseTransport = InProcess(site)
    return connect(
        "http://local",
        key,
        transport=through(transport) if through else transport,
        label="test",
        simulated=True,
        attempts=1,
        now_ms=site.now_ms,
        default=False,
    )


class Changed(httpx.BaseTransport):
    """Passes requests on, and changes the bytes of the answers."""

    def __init__(self, inner: httpx.BaseTransport, change: Callable[[bytes], bytes]) -> None:
        self._inner = inner
        self._change = change

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        answer = self._inner.handle_request(request)
        content = self._change(answer.read())
        return httpx.Response(answer.status_code, content=content, request=request)


class Stops(httpx.BaseTransport):
    """Passes some requests on, and fails all others."""

    def __init__(self, inner: httpx.BaseTransport, after: int) -> None:
        self._inner = inner
        self.left = after

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        self.left -= 1
        if self.left < 0:
            return httpx.Response(500, json={"error": "An internal error occurred"})
        return self._inner.handle_request(request)


def rows_of(archive: Any) -> list[tuple[str, str]]:
    """Give every archived fill as it came, sorted: the same whatever way it was archived."""
    table = archive.scan("fills", columns=["_subject", "_json"], engine="pandas")
    return sorted(table.itertuples(index=False, name=None))
