"""Random requests to the service, and random answers to the client.

``python -m tests.faults.fuzz 100000 10000`` sends so many of both, and prints what came.
"""

import json
import random
import resource
import sys
import time
import warnings
from collections import Counter
from typing import Any

import toolkit as tk

VALUES: tuple[Any, ...] = (
    *(None, True, -1, 0, 1.5, 2**63, 10**400, "", "x", "0x", "0x" + "a" * 40, "\ud800", "ALL"),
    *([], ["x"] * 50, {}, {"type": "meta"}, "1756684800000_7", 1_756_684_800_000),
)


def sample_bodies(session: Any) -> list[dict[str, Any]]:
    """Return one good request for each kind of operation."""
    user, builder = session.world["users"][0], session.world["builders"][0]
    return [
        {"type": "userFills", "user": user},
        {"type": "userFillsByTime", "user": user, "startTime": 0, "limit": 7},
        {"type": "builderApprovedFillsByTime", "builder": builder, "startTime": 0, "limit": 7},
        {"type": "builderApprovedFundingByTime", "builder": builder, "startTime": 0, "limit": 7},
        {"type": "builderOrdersByTime", "builder": builder, "startTime": 0},
        {"type": "historicalOrders", "user": user},
        {"type": "slippageHistory", "coin": "BTC", "amount": 1000, "limit": 7},
        {"type": "userNonFundingLedgerUpdates", "user": user},
        {"type": "batchClearinghouseStates", "users": [user]},
        {"type": "metaAndAssetCtxs"},
        {"type": "currentDepth"},
    ]


def mutate_bytes(content: bytes, draw: random.Random) -> bytes:
    """Return bytes with a few changed, removed, repeated or swapped parts."""
    changed = bytearray(content)
    for _ in range(draw.randint(1, 4)):
        at, length = draw.randrange(len(changed) + 1), draw.choice((1, 1, 3, 40))
        part = changed[at : at + length]
        changed[at : at + length] = draw.choice((b"", part * 2, part[::-1], draw.randbytes(length)))
    return bytes(changed)


def fuzz_requests(session: Any, count: int, seed: int = 0) -> Counter[int]:
    """Send random requests to the service, and return the number of answers of each status."""
    draw, statuses = random.Random(seed), Counter[int]()
    bodies = sample_bodies(session)
    names = sorted({name for body in bodies for name in body} | {"endTime", "cursor", "dex"})
    for _ in range(count):
        body = dict(draw.choice(bodies))
        for _ in range(draw.randint(0, 3)):
            body[draw.choice(names)] = draw.choice(VALUES)
        content = json.dumps(body).encode()
        if draw.random() < 0.3:
            content = mutate_bytes(content, draw)
        answer = session.client.post("/info", content=content)
        statuses[answer.status_code] += 1
        if answer.status_code != 200:
            assert isinstance(answer.json()["error"], str), content
    return statuses


def fuzz_answers(session: Any, count: int, seed: int = 0) -> Counter[str]:
    """Let the client read random answers, and return the number of frames and of each error."""
    import httpx

    draw, outcomes = random.Random(seed), Counter[str]()
    user = session.world["users"][0]
    good = session.client.post("/info", json=sample_bodies(session)[0]).content[:20_000]
    good = good[: good.rindex(b"},{")] + b"}]"

    def answer(_: httpx.Request) -> httpx.Response:
        return httpx.Response(200, stream=httpx.ByteStream(mutate_bytes(good, draw)))

    transport = httpx.MockTransport(answer)
    with tk.connect("http://localhost", transport=transport, attempts=1, default=False) as reader:
        for _ in range(count):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                try:
                    tk.user_fills(user, session=reader)
                    outcomes["frame"] += 1
                except tk.ToolkitError as error:
                    outcomes[type(error).__name__] += 1
    return outcomes


if __name__ == "__main__":
    service = tk.local(seed=7, size="tiny", default=False)
    for run, total in ((fuzz_requests, int(sys.argv[1])), (fuzz_answers, int(sys.argv[2]))):
        run(service, min(total, 500), 1)
        before, begun = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.monotonic()
        found = dict(run(service, total))
        grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024
        print(f"{total:,} in {time.monotonic() - begun:.0f} s, {grown} MB more memory: {found}")
