"""Round trips of one frame with spot gaps, swaps, collateral, forced closes and funding."""

import pandas as pd
import pytest

from toolkit.errors import MissingTokens
from toolkit.pnl import round_trips

from .examples import HOUR, ME, MONDAY, OTHER, times

#  coin        side  sz    px     start closed  fee    token   dir                       hour
FILLS = [
    # Bought tokens pay the fee; 4 leave, 5.5 are sold, and of nothing 3 come, which are sold.
    ("@107", "B", 10.0, 2.0, 0.0, 0.0, 0.5, "HYPE", "Buy", 1),
    ("@107", "A", 5.5, 3.0, 5.5, 5.0, 0.25, "USDC", "Sell", 2),
    ("@107", "A", 3.0, 4.0, 3.0, 1.0, 0.125, "USDC", "Sell", 3),
    # A sell of another token is at par.
    ("@9", "B", 2.0, 5.0, 0.0, 0.0, 0.25, "USDC", "Buy", 1),
    ("@9", "A", 2.0, 7.0, 2.0, 3.5, 0.75, "USDT0", "Sell", 4),
    # Outcome tokens swapped in, and others swapped away.
    ("#20", "B", 8.0, 0.25, 0.0, 0.0, 0.0, "USDC", "Negate Outcome", 2),
    ("#20", "A", 8.0, 0.5, 8.0, 2.0, 0.0, "USDH", "Sell", 5),
    ("#30", "B", 4.0, 0.25, 0.0, 0.0, 0.0, "USDC", "Buy", 2),
    ("#30", "A", 4.0, 0.5, 4.0, 1.5, 0.0, "USDC", "Negate Outcome", 6),
    # Late, and all of the rest leaves; then another trip.
    ("PURR/USDC", "A", 2.0, 3.0, 5.0, 0.5, 0.25, "USDC", "Sell", 2),
    ("PURR/USDC", "B", 1.0, 4.0, 0.0, 0.0, 0.5, "USDC", "Buy", 3),
    # Collateral with a price, also of a fill that flips; a native perp whose fee has a price.
    ("flx:TSLA", "A", 2.0, 200.0, 0.0, -0.5, 0.4, "USDH", "Open Short", 1),
    ("flx:TSLA", "B", 5.0, 190.0, -2.0, 20.0, 1.0, "USDH", "Short > Long", 3),
    ("ETH", "B", 1.0, 30.0, 0.0, -0.25, 0.5, "HYPE", "Open Long", 2),
    ("ETH", "B", 3.0, 34.0, 1.0, -0.5, 0.25, "HYPE", "Open Long", 3),
    ("ETH", "A", 4.0, 31.0, 4.0, -8.0, 0.0, "USDC", "Close Long", 4),
    # Late, then opened, then broken: fills are missing; the rest is liquidated.
    ("BTC", "A", 1.0, 100.0, 1.0, 6.0, 0.125, "USDC", "Liquidated Cross Long", 1),
    ("BTC", "B", 3.0, 100.0, 0.0, 0.0, 0.25, "USDC", "Open Long", 2),
    ("BTC", "A", 2.0, 90.0, 7.0, -8.0, 0.5, "USDC", "Close Long", 4),
    ("BTC", "A", 5.0, 80.0, 5.0, -9.0, 0.75, "USDC", "Auto-Deleveraging", 6),
]
NAMES = ["coin", "side", "sz", "px", "start_position", "closed_pnl", "fee", "fee_token", "dir"]
#         coin     side    from to hours status n size entry exit  gross  fees  funding net return_
NO = None
PRICES = {"USDH": 0.75}
EXPECTED = [
    ("#20", "long", 2, 5, 3, "closed", 1, 8, NO, 0.5, 1.5, 0, 0, 1.5, NO),
    ("#30", "long", 2, 6, 4, "closed", 1, 4, 0.25, NO, 1.5, 0, 0, 1.5, NO),
    ("@107", "long", 1, 2, 1, "moved", 2, 9.5, 20 / 9.5, NO, 5, -0.25, 0, 4.75, NO),
    ("@107", "long", NO, 3, NO, "moved", 1, 3, NO, 4, 1, -0.125, 0, 0.875, NO),
    ("@9", "long", 1, 4, 3, "closed", 2, 2, 5, 7, 3.5, -1, 0, 2.5, 0.25),
    ("BTC", "long", NO, 1, NO, "late", 1, 1, NO, 100, 6, -0.125, 0.5, 6.375, NO),
    ("BTC", "long", 2, NO, NO, "broken", 1, 3, NO, NO, 0, -0.25, -1.25, -1.5, NO),
    ("BTC", "long", NO, 6, NO, "broken", 2, 7, NO, 580 / 7, -17, -1.25, -3, -21.25, NO),
    ("ETH", "long", 2, 4, 2, "closed", 3, 4, 33, 31, -8.75, -22.5, 0.125, -31.125, -31.125 / 132),
    ("PURR/USDC", "long", NO, NO, NO, "late", 1, 5, NO, NO, 0.5, -0.25, 0, 0.25, NO),
    ("PURR/USDC", "long", 3, NO, NO, "open", 1, 1, 4, NO, 0, -0.5, 0, -0.5, -0.125),
    ("flx:TSLA", "short", 1, 3, 2, "closed", 2, 2, 200, 190, 14.625, -0.6, -7.5, 6.525, 0.02175),
    ("flx:TSLA", "long", 3, NO, NO, "open", 1, 3, 190, NO, 0, -0.45, 12, 11.55, 11.55 / 427.5),
]  # fmt: skip


def mixed_fills():
    frame = pd.DataFrame(FILLS, columns=[*NAMES, "time"])
    frame["time"] = times(MONDAY + hour * HOUR for hour in frame["time"])
    return frame


def payments():
    """At the opening (not counted), inside, at the very end (counted), and after it."""
    rows = [
        ("BTC", 1, 0.5), ("BTC", 2, 4.0), ("BTC", 3, -1.0), ("BTC", 4, -0.25), ("BTC", 6, -3.0),
        ("flx:TSLA", 1, 64.0), ("flx:TSLA", 2, -2.0), ("flx:TSLA", 3, -8.0), ("flx:TSLA", 5, 16.0),
        ("ETH", 2, 128.0), ("ETH", 4, 0.125), ("ETH", 5, 256.0), ("SOL", 3, 512.0),
    ]  # fmt: skip
    frame = pd.DataFrame(rows, columns=["coin", "time", "usdc"])
    return frame.assign(time=times(MONDAY + hour * HOUR for hour in frame["time"]))


def all_payments():
    """Those of every hour with a position."""
    rows = [("BTC", 5), ("ETH", 3), ("flx:TSLA", 4), ("flx:TSLA", 6)]
    frame = pd.DataFrame(rows, columns=["coin", "time"]).assign(usdc=0.0)
    frame["time"] = times(MONDAY + hour * HOUR for hour in frame["time"])
    return pd.concat([payments(), frame], ignore_index=True)


def cell(value):
    if isinstance(value, str | bool):
        return value
    if isinstance(value, pd.Timestamp):
        return (value - times([MONDAY])[0]) / pd.Timedelta(hours=1)
    return None if pd.isna(value) else round(float(value), 9)


def listed_rows(frame):
    return [tuple(cell(value) for value in row) for row in frame.to_numpy(dtype=object).tolist()]


def test_trips_of_mixed_coins_by_hand():
    """Each amount of another token has its price, and no price is taken from a swap or a gap."""
    result = round_trips(mixed_fills(), all_payments(), account=ME, prices=PRICES | {"hype": 30})
    forced, at_par = result.pop("forced"), result.pop("at_par")
    held, funded = result.pop("held_hours").tolist(), result.pop("funded_hours").tolist()
    assert held == funded == [0] * 6 + [2, 2, 2, 0, 0, 2, 3]
    assert listed_rows(result) == [
        tuple(round(v, 9) if isinstance(v, float) else v for v in row) for row in EXPECTED
    ]
    assert [row for row, value in enumerate(forced) if value] == [5, 7]
    assert [row for row, value in enumerate(at_par) if value] == [4]
    alone = round_trips(mixed_fills().iloc[:5])
    assert alone["at_par"].tolist() == [False, False, True]
    assert alone["funding"].isna().all()


def test_collateral_is_read_from_metadata():
    """Fills of before tokens were stated: the price applies to the dex, and to nothing else."""
    rows = mixed_fills().query("coin in ['BTC', 'flx:TSLA']").drop(columns="fee_token")
    meta = pd.DataFrame({"name": ["flx:TSLA", "BTC"], "collateral_token": [360, 0]})
    gross = round_trips(rows, prices=PRICES, meta=meta)["gross"]
    assert gross.tolist() == [6, 0, -17, 14.625, 0]
    lacking = rows.assign(fee_token=pd.array([None] * len(rows), dtype="str"))
    assert round_trips(lacking, prices=PRICES, meta=meta)["gross"].tolist() == gross.tolist()
    assert round_trips(rows, meta=meta)["at_par"].tolist() == [False] * 3 + [True] * 2


def test_funding_of_others_is_excluded():
    """Neither do payments of other accounts count, nor is there a warning of them."""
    rows = mixed_fills().query("coin == 'BTC'").assign(user=ME)
    paid = all_payments().query("coin == 'BTC'").assign(user=ME)
    others = paid.head(2).assign(user=OTHER, time=times([MONDAY + 99 * HOUR] * 2))
    result = round_trips(rows, pd.concat([paid, others]))
    assert result["funding"].tolist() == [0.5, -1.25, -3]
    assert result.attrs["toolkit"]["funding_outside"] == 0


def test_trip_with_a_part_of_its_funding_has_none():
    """Of two hours one is paid; a trip without a full hour is complete, and a row of two hours."""
    rows = mixed_fills().query("coin in ['ETH', 'flx:TSLA']").assign(fee_token="USDC")
    paid = all_payments()[all_payments()["time"].dt.hour < 6]
    result = round_trips(rows, paid.query("coin != 'ETH' or time.dt.hour != 3"))
    assert result["funding"].isna().tolist() == [True, False, False]
    assert result["net"].isna().tolist() == [True, False, False]
    assert result[["held_hours", "funded_hours"]].to_numpy().tolist() == [[2, 1], [2, 2], [2, 2]]
    both = payments().query("coin == 'ETH' and time.dt.hour == 4").assign(n_samples=2.0)
    whole = round_trips(rows.query("coin == 'ETH'"), both)
    assert (whole["funding"].item(), whole["funded_hours"].item()) == (0.125, 2)
    nobody = round_trips(rows, payments()[:0])
    assert nobody["net"].notna().tolist() == nobody["funding"].isna().tolist() == [True] * 3


def test_trip_without_rows_has_no_funding():
    """Each trip by hand: with its hours, rows and funding."""
    hour, minute = HOUR, HOUR // 60
    trades = [
        ("BTC", "B", 2.0, 0.0, minute), ("BTC", "A", 2.0, 2.0, hour + minute),  # paid
        ("BTC", "A", 3.0, 0.0, 2 * hour), ("BTC", "B", 3.0, -3.0, 3 * hour - 1),  # no full hour
        ("BTC", "A", 1.0, 0.0, 3 * hour - 1), ("BTC", "B", 1.0, -1.0, 3 * hour),  # one, unpaid
        ("ETH", "B", 4.0, 0.0, 4 * hour + 1),  # no full hour until the last event
        ("SOL", "A", 5.0, 0.0, 3 * hour + 1),  # 4:00, unpaid
        ("SUI", "B", 1.0, 0.0, minute), ("SUI", "A", 1.0, 1.0, hour + minute),  # of no amount
        ("@107", "B", 6.0, 0.0, minute), ("@107", "A", 6.0, 6.0, 4 * hour),  # spot
    ]  # fmt: skip
    rows = pd.DataFrame(trades, columns=["coin", "side", "sz", "start_position", "time"])
    rows = rows.assign(px=10.0, closed_pnl=0.0, fee=0.25, dir="", time=times(MONDAY + rows["time"]))
    paid = pd.DataFrame({"coin": ["BTC", "SUI"], "usdc": [-0.5, float("nan")]})
    paid["time"] = times([MONDAY + hour] * 2)
    assert listed_rows(round_trips(rows, paid)[["coin", "funding"]]) == [
        ("@107", 0), ("BTC", -0.5), ("BTC", 0), ("BTC", None), ("ETH", 0), ("SOL", None),
        ("SUI", None),
    ]  # fmt: skip


def test_wrong_frames_are_named():
    rows = mixed_fills().iloc[:5]
    silent = rows.assign(fee_token=rows["fee_token"].where(rows["side"] == "A"))
    with pytest.warns(MissingTokens, match=r"^fills: 2 spot buys"):
        round_trips(silent)
    both = pd.concat([payments().assign(user=ME), payments().assign(user=OTHER)])
    for error, named, given in ((ValueError, "^funding: .* 2 accounts", (rows, both)),):
        with pytest.raises(error, match=named):
            round_trips(*given)
