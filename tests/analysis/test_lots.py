"""Lots: by hand for each method, and the theorem that binds them."""

from decimal import Decimal
from fractions import Fraction

import hypothesis.strategies as st
import numpy as np
import pandas as pd
import pytest
from hypothesis import given

from toolkit.analysis.pnl.lot_book import GUARD_BITS, METHODS, LotBook
from toolkit.pnl import lots

from .examples import EXACT, HOUR, ME, MONDAY, OTHER, as_numbers, times

KINDS = ("float", "exact")


def chain(rows, start=0.0, **more):
    frame = pd.DataFrame(rows, columns=["side", "sz", "px"]).astype({"sz": float, "px": float})
    signed = frame["sz"].where(frame["side"] == "B", -frame["sz"])
    frame["start_position"] = (start + signed.cumsum().shift(fill_value=0.0)).round(9)
    frame["time"] = times(MONDAY + n * HOUR for n in range(len(rows)))
    return frame.assign(coin="BTC", **more)


TRADES = [("B", 2, 100.0), ("B", 2, 110.0), ("A", 3, 120.0), ("A", 3, 90.0)]
#            size entry  exit   realised: 2 * 20, 1 * 10, 1 * -20, and a short of 2 from 90 to 80
BY_HAND = {
    "fifo": [(2, 100, 120, 40), (1, 110, 120, 10), (1, 110, 90, -20)],
    "lifo": [(2, 110, 120, 20), (1, 100, 120, 20), (1, 100, 90, -10)],
    "average": [(3, 105, 120, 45), (1, 105, 90, -15)],
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("method", METHODS)
def test_lots_by_hand(kind, method):
    result = lots(as_numbers(chain(TRADES), kind), method, marks={"BTC": 80.0})
    closed = result[result["closed"].notna()]
    found = closed[["size", "entry_px", "exit_px", "realised"]].astype(float)
    assert [tuple(row) for row in found.itertuples(index=False)] == BY_HAND[method]
    short = result[result["closed"].isna()].iloc[0]
    assert (short["side"], float(short["size"]), float(short["unrealised"])) == ("short", 2, 20)
    assert float(result["realised"].sum()) == 30
    dtype = EXACT if kind == "exact" else "float64"
    assert str(result["realised"].dtype) == str(dtype)


def test_lot_before_first_fill_has_no_cost():
    result = lots(chain([("A", 1, 100.0), ("B", 2, 90.0), ("A", 6, 95.0)], start=5.0))
    assert result["opened"].isna().tolist() == [True, True, False]
    assert result["entry_px"].isna().tolist() == [True, True, False]
    assert result["realised"].tolist()[2] == 10
    assert result["realised"].isna().tolist() == [True, True, False]
    assert result["size"].tolist() == [1, 4, 2]


def test_lots_after_gap_have_no_cost():
    result = lots(chain(TRADES).drop(index=1))
    assert result["size"].tolist() == [3, 1, 2]
    assert result["entry_px"].notna().tolist() == [False, False, True]


def test_accounts_and_coins_separate():
    both = pd.concat([chain(TRADES, user=ME), chain(TRADES, user=OTHER).assign(coin="ETH")])
    result = lots(both.sample(frac=1, random_state=1))
    for user in (ME, OTHER):
        mine = result[result["user"] == user.lower()]  # addresses are written in one case
        assert mine["realised"].sum() == 30


def test_spot_fee_in_bought_token():
    """All of the 20 USD was paid for the 9.9 that came."""
    fills = chain([("B", 10, 2.0), ("A", 9.9, 3.0)]).assign(coin="PURR/USDC")
    fills["fee"], fills["fee_token"] = [0.1, 0.0], ["PURR", "USDC"]
    fills["start_position"] = [0.0, 9.9]
    result = lots(fills)
    assert result["size"].tolist() == [9.9]
    assert result["realised"].item() == pytest.approx(9.9 * 3 - 20)


def test_unknown_method_is_refused():
    with pytest.raises(ValueError, match="fifo, lifo, average"):
        lots(chain(TRADES), "hifo")


trades = st.lists(
    st.tuples(st.integers(-20, 20).filter(bool), st.integers(1, 1000)), min_size=1, max_size=40
)


@given(trades, st.integers(1, 1000))
def test_methods_have_equal_totals(rows, mark):
    """Realised + unrealised is the cash so far plus what is held at its price: at every instant."""
    books = {name: LotBook(name) for name in METHODS}
    realised = dict.fromkeys(METHODS, 0)
    cash = position = 0
    for number, (change, px) in enumerate(rows):
        cash -= change * px
        position += change
        for name, book in books.items():
            realised[name] += sum(match.gain for match in book.apply_fill(change, px, number))
            held = sum(lot.sign * lot.size for lot in book.lots)
            assert held == position
            unrealised = sum(
                lot.sign * (((lot.size * mark) << GUARD_BITS) - lot.cost) for lot in book.lots
            )
            assert realised[name] + unrealised == (cash + position * mark) << GUARD_BITS


@given(trades, st.integers(1, 1000))
def test_methods_agree_on_frames(rows, mark):
    signed = [("B" if change > 0 else "A", abs(change), px) for change, px in rows]
    fills = chain(signed)
    cash = -sum(change * px for change, px in rows)
    wanted = cash + mark * sum(change for change, _ in rows)
    for method in METHODS:
        result = lots(fills, method, marks={"BTC": float(mark)})
        total = np.nansum(result["realised"]) + np.nansum(result["unrealised"])
        assert total == pytest.approx(wanted, abs=1e-6)


@given(trades)
def test_average_cost_equals_fractions(rows):
    """Against fractions: the average of what is open, to far below any digit shown."""
    book, size, cost = LotBook("average"), 0, Fraction(0)
    for number, (change, px) in enumerate(rows):
        book.apply_fill(change, px, number)
        if size == 0 or (size > 0) == (change > 0):
            cost += abs(change) * px
        elif abs(change) < abs(size):
            cost -= cost * abs(change) / abs(size)
        else:
            cost = Fraction((abs(change) - abs(size)) * px)
        size += change
    held = sum((Fraction(lot.cost, 1 << GUARD_BITS) for lot in book.lots), Fraction(0))
    assert abs(held - cost) < Fraction(1, 10**60)


def test_exact_gain_of_thirds_is_rounded():
    """3 at an average of 100 1/3: one sold at 101 gains two thirds."""
    fills = as_numbers(chain([("B", 2, 100.0), ("B", 1, 101.0), ("A", 1, 101.0)]), "exact")
    result = lots(fills, "average")
    assert result["realised"].iloc[0] == Decimal("0.666666666666666667")
    assert result["entry_px"].iloc[0] == Decimal("100.333333333333333333")


def _whole(matches):
    """Return key, size, cost and gain of each match, without the guard bits."""
    unit = 1 << GUARD_BITS
    return [
        (m.lot.key, m.size, *(None if v is None else v / unit for v in (m.cost, m.gain)))
        for m in matches
    ]


def _bought_tokens(method):
    """Return a book with 3 tokens for 30 and 5 tokens for 75."""
    book = LotBook(method)
    book.buy_tokens(3, 30, 1)
    book.buy_tokens(5, 75, 2)
    return book


def test_first_tokens_are_sold_first():
    book = _bought_tokens("fifo")
    assert _whole(book.sell_tokens(4, 20)) == [(1, 3, 30.0, 30.0), (2, 1, 15.0, 5.0)]
    assert _whole(book.remove_tokens(1)) == [(2, 1, 15.0, None)]
    book.add_tokens(2)
    book.add_tokens(1, 9 << GUARD_BITS, 7)
    # 3 are left at 15, 2 of unknown cost, 1 at 9, and 4 are sold that nobody saw come.
    sold = book.sell_tokens(10, 20)
    assert {match.lot.sign for match in sold} == {1}
    assert _whole(sold) == [
        (2, 3, 45.0, 15.0),
        (-1, 2, None, None),
        (7, 1, 9.0, 11.0),
        (-1, 4, None, None),
    ]
    assert not book.lots
    assert book.remove_tokens(2) == []


def test_last_tokens_are_sold_first():
    book = _bought_tokens("lifo")
    assert _whole(book.sell_tokens(6, 20)) == [(2, 5, 75.0, 25.0), (1, 1, 10.0, 10.0)]
    (lot,) = book.lots
    assert (lot.sign, lot.key, lot.size, lot.cost) == (1, 1, 2, 20 << GUARD_BITS)


def test_average_of_known_and_unknown_tokens():
    """8 tokens cost 105, 2 more 21; 6 of unknown cost come. Of 16, half of each lot are sold."""
    book = _bought_tokens("average")
    book.add_tokens(4)
    book.add_tokens(2, 21 << GUARD_BITS, 7)
    book.add_tokens(2, key=8)
    known, unknown = book.lots
    assert (known.key, known.size, known.cost) == (1, 10, 126 << GUARD_BITS)
    assert (unknown.key, unknown.size, unknown.cost) == (-1, 6, None)
    assert _whole(book.sell_tokens(8, 20)) == [(1, 5, 63.0, 37.0), (-1, 3, None, None)]
    # A single token comes from the first lot, because neither share reaches a whole one.
    ((_, size, cost, gain),) = _whole(book.sell_tokens(1, 20))
    assert (size, cost, gain) == (1, pytest.approx(12.6), pytest.approx(7.4))
    assert [lot.size for lot in book.lots] == [4, 3]
    book.buy_tokens(6, 7, 9)
    assert [(lot.size, lot.cost is None) for lot in book.lots] == [(10, False), (3, True)]


def test_tokens_of_unknown_cost_have_no_gain():
    book = LotBook("average")
    assert _whole(book.sell_tokens(2, 20)) == [(-1, 2, None, None)]
    book.add_tokens(3)
    book.buy_tokens(2, 8, 5)
    assert [(lot.sign, lot.key, lot.size, lot.cost) for lot in book.lots] == [
        (1, -1, 3, None),
        (1, 5, 2, 8 << GUARD_BITS),
    ]


def test_rounding_is_corrected_in_largest_lot():
    book = _bought_tokens("fifo")
    book.correct_size(-2)
    assert [(lot.size, lot.cost >> GUARD_BITS) for lot in book.lots] == [(3, 30), (3, 75)]
    book.correct_size(4)
    assert [lot.size for lot in book.lots] == [7, 3]
    book.correct_size(-7)
    assert [lot.size for lot in book.lots] == [3]
    book.correct_size(-2)
    assert [lot.size for lot in book.lots] == [1]
    book.correct_size(-4)
    book.correct_size(1)
    assert not book.lots


@pytest.mark.parametrize("method", METHODS)
def test_position_of_unknown_cost_has_no_gain(method):
    """A short of 5 is bought back: nothing is known of the gain. 2 more are a new long lot."""
    book = _bought_tokens(method)
    book.set_position(-5, 9)
    assert [(lot.sign, lot.size, lot.cost) for lot in book.lots] == [(-1, 5, None)]
    assert _whole(book.apply_fill(7, 20, 10)) == [(9, 5, None, None)]
    assert [(lot.sign, lot.size, lot.cost) for lot in book.lots] == [(1, 2, 40 << GUARD_BITS)]
    book.set_position(1, 11)
    assert [(lot.sign, lot.key) for lot in book.lots] == [(1, 11)]
    book.set_position(0, 12)
    assert not book.lots


def test_average_with_unknown_cost_is_unknown():
    book = LotBook("average")
    book.set_position(4, 9)
    book.apply_fill(2, 20, 10)
    assert [(lot.key, lot.size, lot.cost) for lot in book.lots] == [(9, 6, None)]
