"""Answers with damaged bytes: only errors of this package leave a fetch function."""

import random
import warnings
from collections.abc import Callable
from typing import Any

import httpx
import pytest

import toolkit as tk
from toolkit.client import connect
from toolkit.contract.field_deviations import forget_deviations
from toolkit.contract.operations import OPERATIONS

TRIES = 25
AMOUNT = 1_000


def damage(content: bytes, draw: random.Random) -> bytes:
    """Return a body with a damaged byte, a cut, or a part that came twice."""
    at = draw.randrange(len(content))
    match draw.randrange(5):
        case 0:
            return content[:at] + b"\xff" + content[at + 1 :]
        case 1:
            return content[:at] + bytes([draw.randrange(256)]) + content[at:]
        case 2:
            return content[:at] + draw.choice([b"null", b"-1e999", b'"\xc3"', b"[[[", b"9" * 5_000])
        case 3:
            end = draw.randrange(at, len(content))
            return content[:at] + content[end:]
        case _:
            return content[:at] + content[max(0, at - 40) :]


class Damaging:
    """A service that answers with damaged bytes of the simulated exchange."""

    def __init__(self, exchange: tk.Session, draw: random.Random) -> None:
        self.exchange, self.draw = exchange, draw
        self.good: dict[bytes, bytes] = {}  # request -> answer

    def __call__(self, request: httpx.Request) -> httpx.Response:
        if request.content not in self.good:
            json = {"Content-Type": "application/json"}
            answer = self.exchange.client.post("/info", content=request.content, headers=json)
            self.good[request.content] = answer.content
        return httpx.Response(200, content=damage(self.good[request.content], self.draw))


@pytest.mark.parametrize("type", OPERATIONS)
def test_only_toolkit_errors_escape(type: str, session: tk.Session) -> None:
    operation, world = OPERATIONS[type], session.world
    subjects: dict[str, Any] = {
        "user": world["users"][0],
        "users": world["users"][:3],
        "builder": world["builders"][0],
        "coin": "BTC",
        "dex": "",
        "validator": world["validators"][0],
        "amount": AMOUNT,
        "collateral_tokens": "ALL",
        "market_names": "ALL:ALL_DEXES",
        "start": world["start_ms"],
    }
    arguments = {
        part.python: subjects[part.python] for part in operation.parameters if part.required
    }
    fetch: Callable[..., Any] = getattr(tk, operation.function)
    wrong = Damaging(session, random.Random(type))
    with (
        connect(
            "http://service.test",
            transport=httpx.MockTransport(wrong),
            attempts=1,
            now_ms=session.now_ms,
            default=False,
        ) as damaged,
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore")
        for _ in range(TRIES):
            forget_deviations()
            try:
                fetch(**arguments, session=damaged, **EXTRA.get(type, {}))
            except tk.ToolkitError:
                continue
    forget_deviations()


EXTRA: dict[str, dict[str, Any]] = {
    type: {"extra": "keep"} for type in ("delegations", "historicalOrders")
}
