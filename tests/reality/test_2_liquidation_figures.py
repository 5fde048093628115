"""Liquidations by market order in helpers: docs/live_service.md, section 2."""

import pandas as pd
import pytest

import toolkit as tk
from toolkit.errors import MissingColumns
from toolkit.pnl import round_trips

LIQUIDATED, OTHER = "0x" + "A" * 40, "0x" + "b" * 40


@pytest.fixture
def rows(examples):
    """Return the opening of a long, its liquidation, and the other side of it."""
    frame = tk.frame("userFills", examples["2_liquidation_fills"])
    return frame.assign(user=[LIQUIDATED, LIQUIDATED, OTHER])


@pytest.fixture
def unnamed(rows):
    return rows.drop(columns="user")


@pytest.fixture(scope="module")
def simulated():
    with tk.local(seed=7, size="tiny", default=False) as session:
        return tk.many(tk.user_fills_by_time, session.world["users"], 0, session=session)


def test_liquidated_and_counterparty_are_distinguished(rows):
    found = tk.liquidations.fills(rows)
    assert found["liquidation_side"].tolist() == ["liquidated", "counterparty"]
    assert found["user"].tolist() == [LIQUIDATED.lower(), OTHER]
    assert tk.liquidations.fills(rows, "counterparty")["start_position"].tolist() == [-2.0]
    assert list(found.columns)[:-1] == list(rows.columns)


def test_frame_names_its_account(unnamed):
    mine = unnamed.tail(1)
    for account, side in ((OTHER, "counterparty"), (LIQUIDATED, "liquidated")):
        found = tk.liquidations.fills(mine, account=account)
        assert found["liquidation_side"].item() == side
    with pytest.raises(ValueError, match="'maker'"):
        tk.liquidations.fills(mine, "maker")
    with pytest.raises(MissingColumns, match="liquidated_user"):
        tk.liquidations.fills(pd.DataFrame({"px": [1.0]}))


def test_deleveraged_fills_are_returned_on_request(rows):
    odd = rows.assign(
        dir=["Auto-Deleveraging", "Liquidated Cross Long", "Buy"],
        liquidated_user=None,
        liquidation_method=None,
        liquidation_mark_px=None,
    )
    every = tk.liquidations.fills(odd, ["liquidated", "counterparty", "deleveraged"])
    assert every["liquidation_side"].tolist() == ["deleveraged", "liquidated"]
    assert len(tk.liquidations.fills(odd)) == 1


def test_routing_excludes_forced_closes(rows):
    """A liquidation cannot be routed through a builder; its other side can."""
    result = tk.builders.routing(rows, "0xb")
    assert result[["fills", "direct", "unroutable"]].iloc[0].tolist() == [3, 2, 1]
    assert result["unroutable_usd"].item() == pytest.approx(21.2 * 6.2)
    assert result["direct_usd"].item() == pytest.approx((30.0 + 21.2) * 6.2)


def test_market_liquidation_marks_trip_as_forced(unnamed):
    """Without an account, the taker counts as liquidated and the maker does not."""
    own, other = unnamed.head(2), unnamed.tail(1)
    for account in (LIQUIDATED, None):
        row = round_trips(own, account=account).iloc[0]
        assert (row["status"], row["forced"], row["gross"]) == ("liquidated", True, -54.56)
        assert row["net"] == pytest.approx(-54.56 - 0.0837 - 0.059148)
        assert row["return_"] == pytest.approx((-54.56 - 0.142848) / 186)
    for account in (OTHER, None):
        trips = round_trips(other, account=account)
        assert trips["status"].tolist() == ["late", "open"]
        assert trips["forced"].tolist() == [False, False]


def test_liquidation_without_its_fields_is_ordinary_close(unnamed):
    """Older rows have no liquidation object, and deleveraging has none either."""
    bare = unnamed.head(2).drop(columns=[name for name in unnamed if "liquidat" in name])
    row = round_trips(bare, account=LIQUIDATED).iloc[0]
    assert (row["status"], row["forced"]) == ("closed", False)
    deleveraged = bare.assign(dir=["Open Long", "Auto-Deleveraging"])
    row = round_trips(deleveraged, account=LIQUIDATED).iloc[0]
    assert (row["status"], row["forced"]) == ("closed", True)


def test_simulated_liquidations_mark_closed_trips(simulated):
    """Exactly the positions that a liquidation fill closes are forced."""
    trips = round_trips(simulated)
    named = simulated["liquidated_user"].str.lower() == simulated["user"].str.lower()
    forced = simulated[named.fillna(False) | simulated["dir"].str.startswith("Liquidated")]
    end = forced["start_position"] + forced["sz"].where(forced["side"] == "B", -forced["sz"])
    ended = forced[end.abs() < 1e-9]
    closing = set(zip(ended["user"], ended["coin"], ended["time"], strict=True))
    found = trips[trips["status"] == "liquidated"]
    assert len(found)
    assert set(zip(found["user"], found["coin"], found["closed"], strict=True)) <= closing
    assert found["forced"].all()
    assert set(trips[trips["forced"]]["status"]) <= {"closed", "liquidated", "late"}
