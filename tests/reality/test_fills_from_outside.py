"""Fills as users have them: rebates in base tokens, stages of liquidations, quote tokens."""

import pandas as pd
import pytest

from tests.analysis.examples import HOUR, ME, MONDAY, times
from toolkit import liquidations, pnl, prepare
from toolkit.errors import MissingDirections

VAULT, THIRD = "0x" + "c" * 40, "0x" + "d" * 40
_COLUMNS = ["coin", "side", "px", "sz", "start_position", "closed_pnl", "fee", "fee_token"]


def fills(*rows, **columns):
    made = pd.DataFrame(rows, columns=_COLUMNS).assign(tid=range(1, len(rows) + 1), **columns)
    return made.assign(time=times(MONDAY + n * HOUR for n in range(len(rows))))


def test_rebate_in_base_token_joins_balance_at_no_cost():
    """50 bought at 4, 0.5 of them paid; 20 sold with a rebate of 0.25, then all at 6."""
    cost = 50 * 4 / 49.5
    left = 49.5 - 20 + 0.25
    first = 20 * (5 - cost)
    rows = fills(
        ("@200", "B", 4.0, 50.0, 0.0, 0.0, 0.5, "ABC"),
        ("@200", "A", 5.0, 20.0, 49.5, round(first, 8), -0.25, "ABC"),
        ("@200", "A", 6.0, left, left, round(left * 6 - 29.5 * cost, 8), 0.75, "USDC"),
        dir="Sell",
    )
    audited = pnl.audit(rows, {})
    assert not audited["chain_break"].any()
    assert audited["difference"].abs().max() <= 1e-8
    cash = -200 + 100 + left * 6 - 0.75
    assert pnl.attribution(rows)["net"].item() == pytest.approx(cash, abs=1e-7)
    trip = pnl.round_trips(rows).iloc[0]
    assert (trip["status"], trip["net"]) == ("closed", pytest.approx(cash, abs=1e-7))
    lots = pnl.lots(rows)
    assert lots["realised"].sum() == pytest.approx(cash + 0.75, abs=1e-7)
    assert pnl.positions(rows, {})["position"].tolist() == [49.5, left, 0.0]


def test_price_of_rebate_token_is_not_price_of_quote_token():
    rows = fills(
        ("@201", "B", 900.0, 2.0, 0.0, 0.0, 0.0, "USDC"),
        ("@201", "A", 950.0, 2.0, 2.0, 100.0, -0.001, "UXYZ"),
        dir="Buy",
    )
    for made in (pnl.attribution(rows, prices={"UXYZ": 900}), pnl.attribution(rows)):
        assert made[["closed_pnl", "net"]].iloc[0].tolist() == [100.0, 100.0]
    assert pnl.round_trips(rows, prices={"UXYZ": 900})["net"].item() == 100.0


def test_rebate_of_buy_is_in_quote_token():
    rows = fills(
        ("@202", "B", 10.0, 3.0, 0.0, 0.0, -0.02, "USDH"),
        ("@202", "A", 12.0, 3.0, 3.0, 6.0, 0.1, "USDH"),
    )
    made = pnl.attribution(rows)[["rebate", "fees_in_cost", "net"]].iloc[0].tolist()
    assert made == pytest.approx([0.02, 0.0, 5.92])
    assert not pnl.audit(rows, {})["chain_break"].any()


def test_prices_convert_volume_and_fees_in_cost():
    """A token is bought at 0.5 and sold at 0.75 HYPE; a HYPE is worth 40 USD."""
    rows = fills(
        ("@203", "B", 0.5, 100.0, 0.0, 0.0, 2.0, "ABC"),
        ("@203", "A", 0.75, 98.0, 98.0, 23.5, 0.0, "HYPE"),
    )
    made = pnl.attribution(rows, prices={"HYPE": 40})
    found = made[["volume", "fees_in_cost", "closed_pnl"]].iloc[0].tolist()
    assert found == pytest.approx([40 * 123.5, -40.0, 940.0])


def liquidated(rows, side="liquidated"):
    return liquidations.fills(rows, side)["user"].tolist()


def stages():
    """A trader is liquidated; the backstop takes over, and is deleveraged against a third."""
    rows = fills(
        ("ABC", "A", 20.0, 7.0, 7.0, -14.0, 0.0, "USDC"),
        ("ABC", "B", 20.0, 7.0, 0.0, 0.0, 0.0, "USDC"),
        ("ABC", "A", 20.0, 7.0, 7.0, 0.0, 0.0, "USDC"),
        ("ABC", "B", 20.0, 7.0, -7.0, 3.0, 0.0, "USDC"),
        liquidation_method="backstop",
        crossed=True,
    )
    return rows.assign(
        dir=["Liquidated Cross Long"] * 3 + ["Auto-Deleveraging"],
        user=[ME, VAULT, VAULT, THIRD],
        liquidated_user=[ME, ME, VAULT, VAULT],
    )


def test_position_is_liquidated_once():
    rows = stages()
    assert liquidated(rows) == [ME]
    assert liquidated(rows, "counterparty") == [VAULT]
    assert liquidated(rows, "deleveraged") == [THIRD]
    assert pnl.round_trips(rows)["forced"].tolist() == [True, True, True]


def test_words_of_a_liquidation_need_their_side():
    """Without the object, a long is liquidated by a sell from above 0."""
    rows = stages()[["user", "dir", "coin", "side", "px", "sz", "start_position", "tid"]]
    assert liquidated(rows) == [ME, VAULT]
    assert liquidated(rows.assign(side="A", start_position=0.0)) == []


def test_price_of_an_older_liquidation_marks_its_taker():
    rows = fills(
        ("ETH", "B", 90.0, 2.0, 0.0, 0.0, 0.0, "USDC"),
        ("ETH", "A", 70.0, 2.0, 2.0, -40.0, 0.1, "USDC"),
        dir=["Open Long", "Close Long"],
        liquidation_mark_px=[None, 69.5],
        crossed=[True, True],
    )
    assert len(liquidations.fills(rows)) == 1
    assert pnl.round_trips(rows)[["status", "forced"]].iloc[0].tolist() == ["liquidated", True]


def test_settlement_of_delisted_coin_is_forced():
    rows = fills(
        ("OLD", "B", 2.0, 30.0, 0.0, 0.0, 0.0, "USDC"),
        ("OLD", "A", 1.5, 30.0, 30.0, -15.0, 0.0, "USDC"),
        dir=["Open Long", "Settlement"],
    )
    assert pnl.round_trips(rows)[["forced", "net"]].iloc[0].tolist() == [True, -15.0]


def test_unknown_directions_are_named():
    rows = fills(
        ("@204", "A", 8.0, 5.0, 5.0, -2.0, 0.0, "USDC"), dir="Partial Borrow Liquidation", user=ME
    )
    assert liquidated(rows) == [ME]
    assert pnl.round_trips(rows)["forced"].tolist() == [True]
    for helper in (liquidations.fills, pnl.round_trips):
        with pytest.warns(MissingDirections, match="'Odd Word'"):
            helper(rows.assign(dir="Odd Word"))


def test_prepared_fills_are_computed_once_and_refuse_other_prices():
    rows = stages()
    prepared = prepare.fills(rows.assign(fee_token="USDH"), prices={"USDH": 0.5})
    assert prepare.fills(prepared) is prepared
    pd.testing.assert_frame_equal(pnl.positions(prepared, {}), pnl.positions(rows, {}))
    with pytest.raises(ValueError, match=r"USDH.*0.5.*USDH.*0.75"):
        pnl.attribution(prepared, prices={"USDH": 0.75})
