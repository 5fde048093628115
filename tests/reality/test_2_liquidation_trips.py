"""Section 2: a market liquidation forces the trip of the account that it names."""

from decimal import Decimal

import pytest

from tests.analysis.simulated import everybody
from tests.reality.rows import fills_of
from tests.worlds import world_of
from toolkit.pnl import attribution, audit, round_trips

OWN, OTHER = "0x" + "A" * 40, "0x" + "b" * 40


def test_market_liquidation_marks_trip_as_forced(examples, engine):
    fills = fills_of(examples["2_liquidation_fills"][:2])
    row = engine.take(round_trips(engine.give(fills), account=OWN))[0]
    assert (row["status"], row["forced"]) == ("liquidated", True)
    assert row["gross"] == -54.56
    assert row["net"] == pytest.approx(-54.56 - 0.0837 - 0.059148)
    assert row["return_"] == pytest.approx((-54.56 - 0.142848) / 186)


def test_close_without_liquidation_fields_is_ordinary(examples, engine):
    """Without the liquidation object, as in older rows, the fill is an ordinary close."""
    fills = fills_of(examples["2_liquidation_fills"][:2])
    bare = fills.drop(columns=[name for name in fills if "liquidat" in name])
    row = engine.take(round_trips(engine.give(bare), account=OWN))[0]
    assert (row["status"], row["forced"]) == ("closed", False)


def test_counterparty_is_not_forced(examples, engine):
    fills = fills_of(examples["2_liquidation_fills"][2:])
    rows = engine.take(round_trips(engine.give(fills), account=OTHER))
    assert [(row["status"], row["forced"]) for row in rows] == [("late", False), ("open", False)]


def test_taker_of_unknown_account_is_forced(examples):
    """Without an account column, the taker counts as liquidated and the maker does not."""
    own = fills_of(examples["2_liquidation_fills"][:2])
    assert round_trips(own)["forced"].tolist() == [True]
    assert not round_trips(fills_of(examples["2_liquidation_fills"][2:]))["forced"].any()


def test_deleveraging_is_no_liquidation(examples, engine):
    rows = [dict(row) for row in examples["2_liquidation_fills"][:2]]
    rows[1]["dir"] = "Auto-Deleveraging"
    del rows[1]["liquidation"]
    row = engine.take(round_trips(engine.give(fills_of(rows)), account=OWN))[0]
    assert (row["status"], row["forced"]) == ("closed", True)


def test_late_trip_has_no_return(examples, engine):
    row = engine.take(round_trips(engine.give(fills_of(examples["2_liquidation_fills"][1:2]))))[0]
    assert row["status"] == "late"
    assert row["gross"] == -54.56
    for name in ("opened", "entry_px", "return_"):
        assert row[name] is None or row[name] != row[name], name


def test_net_of_liquidation_includes_fees(examples):
    fills = fills_of(examples["2_liquidation_fills"][:2], "exact")
    row = attribution(fills).iloc[0]
    assert row["closed_pnl"] == Decimal("-54.56")
    assert row["net"] == Decimal("-54.56") - Decimal("0.0837") - Decimal("0.059148")
    assert (audit(fills, {"HYPE": 2})["difference"] == 0).all()


@pytest.fixture(scope="module")
def tables():
    return everybody(world_of("tiny"))


def test_simulated_liquidations_mark_closed_trips(tables):
    """Exactly the positions that a liquidation fill closes are forced."""
    fills = tables.fills
    trips = round_trips(fills)
    named = fills["liquidated_user"].astype("str").str.lower() == fills["user"].str.lower()
    forced = fills[named | fills["dir"].str.startswith("Liquidated")]
    end = forced["start_position"] + forced["sz"].where(forced["side"] == "B", -forced["sz"])
    closing = set(zip(*(forced[end == 0][name] for name in ("user", "coin", "time")), strict=True))
    found = trips[trips["status"] == "liquidated"]
    assert closing
    assert set(zip(found["user"], found["coin"], found["closed"], strict=True)) <= closing
    assert found["forced"].all()
    assert set(trips[trips["forced"]]["status"]) <= {"closed", "liquidated", "late"}
