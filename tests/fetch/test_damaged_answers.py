"""Answers with damaged bytes: only errors of this package leave a fetch function."""

import contextlib
import json
import random
import warnings

import httpx
import pytest

import toolkit as tk
from tests.fetch.wire import fill, rows_of_request
from toolkit.client import open_session
from toolkit.contract.field_deviations import forget_deviations
from toolkit.contract.operations import OPERATIONS
from toolkit.errors import MissingField, UnknownField

TRIES = 25
AMOUNT = 1_000


def damage(content, draw):
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

    def __init__(self, exchange, draw):
        self.exchange, self.draw = exchange, draw
        self.good = {}  # request -> answer

    def __call__(self, request):
        if request.content not in self.good:
            headers = {"Content-Type": "application/json"}
            answer = self.exchange.client.post("/info", content=request.content, headers=headers)
            self.good[request.content] = answer.content
        return httpx.Response(200, content=damage(self.good[request.content], self.draw))


def test_only_toolkit_errors_escape(session):
    world = session.world
    subjects = {
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
    for type_, operation in OPERATIONS.items():
        arguments = {
            part.python: subjects[part.python] for part in operation.parameters if part.required
        }
        if type_ in ("delegations", "historicalOrders"):
            arguments["extra"] = "keep"
        service = httpx.MockTransport(Damaging(session, random.Random(type_)))
        options = {"attempts": 1, "now_ms": session.now_ms, "default": False}
        with (
            open_session("http://service.test", transport=service, **options) as damaged,
            warnings.catch_warnings(action="ignore"),
        ):
            for _ in range(TRIES):
                forget_deviations()
                with contextlib.suppress(tk.ToolkitError):
                    getattr(tk, operation.function)(**arguments, session=damaged)
    forget_deviations()


NOW = 1_757_000_000_000


def connect_to(rows):
    """Return a session whose service has these fills."""

    def respond(request):
        asked = json.loads(request.content)
        return httpx.Response(200, json=rows_of_request(rows, asked)[: asked.get("limit", 2_000)])

    transport = httpx.MockTransport(respond)
    return open_session("http://service.test", transport=transport)


def test_every_frame_names_missing_fields():
    """The warning comes once; the provenance of each frame has the columns."""
    rows = [fill(NOW + n, 0, n) for n in range(5)]
    for row in rows:
        row["closedPnl"] = None
    del rows[0]["fee"]
    session, user = connect_to(rows), "0x" + "a" * 40
    forget_deviations()
    with pytest.warns(MissingField) as warned:
        tk.user_fills_by_time(user, 0, session=session)
    assert len(warned) == 2
    frame = tk.user_fills_by_time(user, 0, session=session)
    assert tk.provenance(frame)["missing_fields"] == {"closed_pnl": 5, "fee": 1}
    assert "'missing_fields': {'closed_pnl': 5, 'fee': 1}" in repr(tk.provenance(frame))
    users = [user, "0x" + "b" * 40]
    both = tk.many(tk.user_fills_by_time, users, 0, session=session)
    assert tk.provenance(both)["missing_fields"] == {"closed_pnl": 10, "fee": 2}
    parts = [
        tk.user_fills_by_time(user, *times, session=session)
        for times in ((NOW, NOW + 2), (NOW + 3,))
    ]
    assert "missing_fields" in tk.provenance(tk.concat(parts))
    whole = [fill(NOW + n, 0, n) for n in range(5)]
    frame = tk.user_fills_by_time(user, 0, session=connect_to(whole))
    assert "missing_fields" not in tk.provenance(frame)


def test_unreadable_number_as_text_loses_no_row():
    """With numbers='text' the frame has the text as it came."""
    rows = [fill(NOW + n, 0, n) | {"coin": "@1"} for n in range(60)]
    rows[50]["fee"] = ""
    session, user = connect_to(rows), "0x" + "a" * 40
    frame = tk.user_fills_by_time(user, 0, page_size=20, numbers="text", session=session)
    assert len(frame) == 60
    assert frame["fee"].tolist()[49:52] == ["0.0", "", "0.0"]


def test_unexpected_error_has_rows():
    """A warning that a filter turns into an error, for example."""
    rows = [fill(NOW + n, 0, n) for n in range(60)]
    rows[50]["new"] = 1
    session, user = connect_to(rows), "0x" + "a" * 40
    forget_deviations()
    with pytest.raises(UnknownField) as caught:
        tk.user_fills_by_time(user, 0, page_size=20, session=session)
    so_far = caught.value.rows
    assert so_far["tid"].tolist() == list(range(37))
    assert tk.provenance(so_far)["why"].startswith("UnknownField: ")
    assert "error.rows has the 37 rows" in caught.value.__notes__[0]
