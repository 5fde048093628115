"""Every fetch function: its request, and the frames of its answer.

The answers are those of data/samples, and travel as bytes through a transport in this process.
"""

import copy
import json
from pathlib import Path

import httpx
import numpy as np
import pandas as pd
import pytest

import toolkit as tk
from tests.fetch.wire import fill, rows_of_request, session_over
from toolkit.contract.fields import table_columns
from toolkit.contract.operations import OPERATIONS
from toolkit.errors import BadRequest, Incomplete, IncompleteWarning
from toolkit.frames import column_dtype, provenance

# Rows of these samples may be missing, which is a warning: tests/fetch/test_notices.py.
pytestmark = pytest.mark.filterwarnings("ignore::toolkit.errors.HistoryWarning")

NOW = 1_756_684_800_000
USER = "0x" + "a" * 40
SAMPLES = Path(__file__).parents[2] / "data" / "samples"
JSON = {name: row for name, row in OPERATIONS.items() if not row.binary}
PAGED = [row for row in JSON.values() if row.paging != "none"]
SAMPLED = {name: json.loads((SAMPLES / f"{name}.json").read_text()) for name in JSON}
ANSWERS = {  # the first row of a history, because the samples leave rows out
    name: sample["response"][:1] if "left_out" in sample else sample["response"]
    for name, sample in SAMPLED.items()
}
EMPTY = {name: [] for name, answer in ANSWERS.items() if isinstance(answer, list)} | {
    "currentDepth": {"timestampMs": NOW, "data": []},
    "meta": {"universe": []},
    "metaAndAssetCtxs": [{"universe": []}, []],
    "perpDexLimits": None,
    "batchClearinghouseStates": {
        "successful_states": [],
        "failed_wallets": SAMPLED["batchClearinghouseStates"]["request"]["users"],
    },
}


class Service:
    """A service that answers by type, page after page, and records its requests."""

    def __init__(self, answers=ANSWERS):
        self.answers = answers
        self.asked = []

    def __call__(self, request):
        body = json.loads(request.content)
        self.asked.append(body)
        answer = self.answers[body["type"]]
        if OPERATIONS[body["type"]].paging != "none":
            answer = rows_of_request(answer, body)
        return httpx.Response(200, content=json.dumps(answer))

    def session(self):
        return session_over(self, "a-key", now_ms=lambda: NOW + 90 * 86_400_000)


def call(row, answers=ANSWERS, **named):
    """Return a service, and what a function fetches from it with the request of the sample."""
    service, request = Service(answers), SAMPLED[row.type]["request"]
    given = {item.python: request[item.name] for item in row.parameters if item.required}
    return service, getattr(tk, row.function)(**given | named, session=service.session())


def frames_of(row, answer):
    assert isinstance(answer, pd.DataFrame) == (len(row.tables) == 1)
    return (answer,) if isinstance(answer, pd.DataFrame) else tuple(answer)


def error_of(row, **named):
    """Return the error of a call."""
    with pytest.raises((ValueError, TypeError)) as caught:
        call(row, **named)
    return caught.value


def test_function_sends_every_default():
    wrong = []
    for row in JSON.values():
        asked = call(row)[0].asked[0]
        defaults = {item.name: item.default for item in row.parameters if not item.required}
        given = {item.name for item in row.parameters if item.required}
        sent = {name: asked.get(name, default) for name, default in defaults.items()}
        absent = {name for name, default in defaults.items() if default is None}
        if (
            asked["type"] != row.type
            or not given <= asked.keys() <= {"type", *row.by_wire}
            or absent & asked.keys()
            or sent != defaults
        ):
            wrong.append((row.type, asked))
    assert wrong == []


@pytest.mark.parametrize("numbers", ["float", "exact", "text"])
def test_frames_have_fixed_dtypes_and_provenance(numbers):
    wrong = []
    for row in JSON.values():
        full = frames_of(row, call(row, numbers=numbers)[1])
        empty = full
        if row.type in EMPTY:
            # An empty answer about a coin makes the session ask for the list of coins.
            empty = frames_of(
                row, call(row, ANSWERS | {row.type: EMPTY[row.type]}, numbers=numbers)[1]
            )
            assert sum(map(len, empty[:2])) == 0  # the third has failed accounts
        for table, item, other in zip(row.tables, full, empty, strict=True):
            expected = {
                column.name: column_dtype(column, numbers) for column in table_columns(table)
            }
            said = provenance(item)
            complete = "latest" if row.latest else "yes"
            facts = (said["operation"], said["complete"], said["rows"], "a-key" in repr(said))
            if (
                [*item.dtypes.items()] != [*expected.items()]
                or [*other.dtypes.items()] != [*expected.items()]
                or facts != (row.type, complete, len(item), False)
            ):
                wrong.append((row.type, table.record.__name__, facts))
    assert wrong == []


def test_fill_values_have_documented_types():
    answer = [fill(NOW, 3, 2) | {"px": "3500.25", "startPosition": "-0.2", "venue": "AB"}]
    _, frame = call(OPERATIONS["userFillsByTime"], {"userFillsByTime": answer}, start=0)
    row = frame.iloc[0]
    assert (row["px"], row["sz"], row["start_position"]) == (3500.25, 0.0, -0.2)
    assert row["time"] == pd.Timestamp(NOW, unit="ms", tz="UTC")
    assert (row["venue"], row["oid"]) == ("AB", 2)
    assert frame["builder_fee"].isna().all()
    assert frame["twap_id"].isna().all()


def test_account_states_fill_three_frames():
    answer = ANSWERS["batchClearinghouseStates"]
    _, states = call(OPERATIONS["batchClearinghouseStates"])
    held = {user: state["assetPositions"] for user, state in answer["successful_states"]}
    assert states.accounts["user"].tolist() == list(held)
    assert states.positions["leverage_value"].tolist() == [
        item["position"]["leverage"]["value"] for positions in held.values() for item in positions
    ]
    assert states.failed["user"].tolist() == answer["failed_wallets"] != []


def test_native_dex_is_translated():
    names = {"userFills": "main_dex", "userFillsByTime": "main_dex", "perpDexLimits": ""}
    names |= dict.fromkeys(("meta", "metaAndAssetCtxs", "batchClearinghouseStates"), "")
    for alias in ("", "native", "main_dex", "main", "hyperliquid"):
        sent = {
            type_: call(OPERATIONS[type_], dex=alias)[0].asked[0].get("dex", "") for type_ in names
        }
        assert sent == names


def test_times_and_cursors_are_sent():
    service = Service()
    now = NOW + 90 * 86_400_000
    tk.user_fills_by_time(USER, "7d", "2025-09-01T12:00", session=service.session())
    assert service.asked[0]["startTime"] == now - 7 * 86_400_000
    assert service.asked[0]["endTime"] == NOW + 12 * 3_600_000
    service = Service()
    tk.user_fills_by_time(USER, NOW, cursor=f"{NOW - 1}_1", session=service.session())
    assert service.asked[0]["cursor"] == f"{NOW - 1}_1"
    assert "startTime" not in service.asked[0]


def make_row_after(row, wire):
    """Return a row that can follow another one: of another coin, or of the next time."""
    after = copy.deepcopy(wire)
    if row.grid is None:
        part = after.get("delta", after.get("order", after))
        part, name = (part, "coin") if "coin" in part else (after, "hash")
        part[name] = "XRP"
    else:
        (time,) = {"timestamp", "week"} & after.keys()
        after[time] += row.grid.step * (-1 if row.paging == "backward" else 1)
    return after


def test_max_rows_limits_total():
    for row in PAGED:
        first = ANSWERS[row.type][0]
        answers = {row.type: [first, make_row_after(row, first)]}
        for one in (1, 1.0, np.int64(1), np.float64(1)):
            _, frame = call(row, answers, max_rows=one)
            assert (len(frame), provenance(frame)["complete"]) == (1, "first 1 row")
        _, whole = call(row, answers)
        assert (len(whole), provenance(whole)["complete"]) == (2, "yes")
        for bad in (0, -1, 1.5, "10", True, float("nan"), float("inf")):
            assert "max_rows" in str(error_of(row, max_rows=bad))


def test_unknown_choices_are_refused():
    for row in JSON.values():
        assert str(error_of(row, numbers="decimal")).startswith("numbers ")
        if row.paging != "none":
            assert str(error_of(row, on_incomplete="ignore")).startswith("on_incomplete ")


def test_malformed_arguments_are_not_sent():
    for row in JSON.values():
        required = [item for item in row.parameters if item.required and not item.unless]
        if required:
            service, request = Service(), SAMPLED[row.type]["request"]
            given = {item.python: request[item.name] for item in row.parameters if item.required}
            given[required[0].python] = 5
            with pytest.raises((BadRequest, TypeError)):
                getattr(tk, row.function)(**given, session=service.session())
            assert service.asked == []
    with pytest.raises(BadRequest, match="startTime"):
        tk.user_fills_by_time(USER, session=Service().session())


def test_full_page_of_one_key_is_incomplete():
    service = Service({"userFillsByTime": [fill(NOW, 3, 2)] * 2000})
    with pytest.raises(Incomplete) as caught:
        tk.user_fills_by_time(USER, 0, session=service.session())
    assert isinstance(caught.value.rows, pd.DataFrame)
    session = Service(service.answers).session()
    with pytest.warns(IncompleteWarning, match="incomplete"):
        frame = tk.user_fills_by_time(USER, 0, on_incomplete="warn", session=session)
    assert provenance(frame)["complete"] == "no"
