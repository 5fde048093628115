"""Lots: by hand for each method, and the theorem that binds them."""

from fractions import Fraction

import hypothesis.strategies as st
import pandas as pd
import pytest
from hypothesis import given

from toolkit.errors import UnnamedAccount
from toolkit.pnl import lots
from toolkit.pnl._lots import GUARD_BITS, METHODS, LotBook

from .examples import HOUR, ME, MONDAY, OTHER, times
from .test_round_trips import NO, listed_rows, mixed_fills


def chain(rows, start=0.0, step=HOUR, **more):
    """Return fills of one position from (side, sz, px)."""
    frame = pd.DataFrame(rows, columns=["side", "sz", "px"]).astype({"sz": float, "px": float})
    signed = frame["sz"].where(frame["side"] == "B", -frame["sz"])
    frame["start_position"] = (start + signed.cumsum().shift(fill_value=0.0)).round(9)
    frame["time"] = times(MONDAY + n * step for n in range(len(rows)))
    return frame.assign(**{"coin": "BTC", "closed_pnl": 0.0, **more})


TRADES = [("B", 2, 100.0), ("B", 2, 110.0), ("A", 3, 120.0), ("A", 3, 90.0)]
#            size entry  exit   realised: 2 * 20, 1 * 10, 1 * -20, and a short of 2 from 90 to 80
BY_HAND = {
    "fifo": [(2, 100, 120, 40), (1, 110, 120, 10), (1, 110, 90, -20)],
    "lifo": [(2, 110, 120, 20), (1, 100, 120, 20), (1, 100, 90, -10)],
    "average": [(3, 105, 120, 45), (1, 105, 90, -15)],
}


def test_lots_by_hand():
    for method, wanted in BY_HAND.items():
        result = lots(chain(TRADES), method, marks={"BTC": 80.0})
        closed = result[result["closed"].notna()]
        assert listed_rows(closed[["size", "entry_px", "exit_px", "realised"]]) == wanted
        short = result[result["closed"].isna()]
        assert listed_rows(short[["side", "size", "unrealised"]]) == [("short", 2, 20)]
        assert result["realised"].sum() == 30
    with pytest.raises(ValueError, match="fifo, lifo, average"):
        lots(chain(TRADES), "hifo")


def test_lots_before_first_fill_or_gap_have_no_cost():
    names = ["size", "opened", "entry_px", "realised"]
    late = lots(chain([("A", 1, 100.0), ("B", 2, 90.0), ("A", 6, 95.0)], start=5.0))[names]
    assert listed_rows(late) == [(1, NO, NO, NO), (4, NO, NO, NO), (2, 1, 90, 10)]
    broken = lots(chain(TRADES).drop(index=1))[["size", "entry_px"]]
    assert listed_rows(broken) == [(3, NO), (1, NO), (2, 90)]


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
            realised[name] += sum(match[4] for match in book.apply_fill(change, px, number))
            held = sum(lot.sign * lot.size for lot in book.lots)
            assert held == position
            unrealised = sum(
                lot.sign * (((lot.size * mark) << GUARD_BITS) - lot.cost) for lot in book.lots
            )
            assert realised[name] + unrealised == (cash + position * mark) << GUARD_BITS


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


def _whole(matches):
    """Return key, size, cost and gain of each match, without the guard bits."""
    unit = 1 << GUARD_BITS
    return [
        (key, size, *(None if value is None else value / unit for value in amounts))
        for key, _, size, *amounts in matches
    ]


def _bought_tokens(method):
    """Return a book with 3 tokens for 30 and 5 tokens for 75."""
    book = LotBook(method)
    book.add_tokens(3, 30 << GUARD_BITS, 1)
    book.add_tokens(5, 75 << GUARD_BITS, 2)
    return book


def test_first_tokens_are_sold_first():
    book = _bought_tokens("fifo")
    assert _whole(book.sell_tokens(4, 20)) == [(1, 3, 30.0, 30.0), (2, 1, 15.0, 5.0)]
    assert _whole(book.remove_tokens(1)) == [(2, 1, 15.0, None)]
    book.add_tokens(2)
    book.add_tokens(1, 9 << GUARD_BITS, 7)
    # 3 are left at 15, 2 of unknown cost, 1 at 9, and 4 are sold that nobody saw come.
    sold = book.sell_tokens(10, 20)
    assert {sign for _, sign, *_ in sold} == {1}
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


@pytest.mark.parametrize("method", METHODS)
def test_fee_takes_all_bought_tokens(method):
    book = LotBook(method)
    book.add_tokens(0, 30 << GUARD_BITS, 1)
    assert _whole(book.sell_tokens(2, 20)) == [(-1, 2, None, None)]


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
    book.add_tokens(6, 7 << GUARD_BITS, 9)
    assert [(lot.size, lot.cost is None) for lot in book.lots] == [(10, False), (3, True)]


def test_tokens_of_unknown_cost_have_no_gain():
    book = LotBook("average")
    assert _whole(book.sell_tokens(2, 20)) == [(-1, 2, None, None)]
    book.add_tokens(3)
    book.add_tokens(2, 8 << GUARD_BITS, 5)
    assert [(lot.sign, lot.key, lot.size, lot.cost) for lot in book.lots] == [
        (1, -1, 3, None),
        (1, 5, 2, 8 << GUARD_BITS),
    ]


def test_rounding_is_corrected_in_largest_lot():
    book = _bought_tokens("fifo")
    book.set_balance(6, 9)
    assert [(lot.size, lot.cost >> GUARD_BITS) for lot in book.lots] == [(3, 30), (3, 75)]
    book.set_balance(10, 9)
    assert [lot.size for lot in book.lots] == [7, 3]
    book.set_balance(3, 9)
    assert [lot.size for lot in book.lots] == [3]
    book.set_balance(1, 9)
    assert [lot.size for lot in book.lots] == [1]
    book.set_balance(-3, 9)
    book.set_balance(1, 9)
    assert not book.lots


@pytest.mark.parametrize("method", METHODS)
def test_position_of_unknown_cost_has_no_gain(method):
    """A short of 5 is bought back: nothing is known of the gain. 2 more are a new long lot."""
    book = LotBook(method, -5)
    assert [(lot.sign, lot.size, lot.cost) for lot in book.lots] == [(-1, 5, None)]
    assert _whole(book.apply_fill(7, 20, 10)) == [(-1, 5, None, None)]
    assert [(lot.sign, lot.size, lot.cost) for lot in book.lots] == [(1, 2, 40 << GUARD_BITS)]


def test_average_with_unknown_cost_is_unknown():
    book = LotBook("average", 4)
    book.apply_fill(2, 20, 10)
    assert [(lot.key, lot.size, lot.cost) for lot in book.lots] == [(-1, 6, None)]


THEIRS = ("ETH", "@9", "#30", "PURR/USDC")
SWAPS = [
    # 6 tokens that cost 3 become 4 that cost 2 and 2 that cost 1.
    ("#40", "B", 6.0, 0.5, 0.0, 0.0, 0.0, "USDC", "Buy", 1),
    ("#40", "A", 6.0, 0.5, 6.0, 0.0, 0.0, "USDC", "Negate Outcome", 4),
    ("#50", "B", 4.0, 0.25, 0.0, 0.0, 0.0, "USDC", "Negate Outcome", 4),
    ("#60", "B", 2.0, 0.25, 0.0, 0.0, 0.0, "USDC", "Negate Outcome", 4),
    ("#50", "A", 4.0, 0.75, 4.0, 1.0, 0.0, "USDC", "Sell", 5),
    # 2 tokens of unknown cost and 3 that cost 0.75 become 5 of unknown cost.
    ("#70", "B", 3.0, 0.25, 2.0, 0.0, 0.0, "USDC", "Buy", 2),
    ("#70", "A", 5.0, 0.5, 5.0, 0.0, 0.0, "USDC", "Negate Outcome", 3),
    ("#80", "B", 5.0, 0.5, 0.0, 0.0, 0.0, "USDC", "Negate Outcome", 3),
]
MARKS = {"flx:TSLA": 195.5, "#60": 0.8, "PURR/USDC": 4.5, "BTC": 7.0, "#80": 0.5}
#       coin       side    from to size entry exit realised unrealised
MINE = [
    ("#20", "long", 2, 5, 8, NO, 0.5, NO, NO),  # no leg shows what became these tokens
    ("#40", "long", 1, 4, 6, 0.5, NO, NO, NO),
    ("#50", "long", 4, 5, 4, 0.5, 0.75, 1, NO),
    ("#60", "long", 4, NO, 2, 0.5, NO, NO, 0.6),
    ("#70", "long", NO, 3, 2, NO, NO, NO, NO),
    ("#70", "long", 2, 3, 3, 0.25, NO, NO, NO),
    ("#80", "long", 3, NO, 5, NO, NO, NO, NO),
    ("@107", "long", 1, 2, 4, 20 / 9.5, NO, NO, NO),
    ("@107", "long", 1, 2, 5.5, 20 / 9.5, 3, 16.5 - 5.5 * 20 / 9.5, NO),
    ("@107", "long", NO, 3, 3, NO, 4, NO, NO),
    ("BTC", "long", NO, 1, 1, NO, 100, NO, NO),
    ("BTC", "long", NO, 4, 2, NO, 90, NO, NO),
    ("BTC", "long", NO, 6, 5, NO, 80, NO, NO),
    ("flx:TSLA", "short", 1, 3, 2, 200, 190, 20, NO),
    ("flx:TSLA", "long", 3, NO, 3, 190, NO, NO, 16.5),
]
OLDEST = [("ETH", "long", 2, 4, 1, 30, 31, 1, NO), ("ETH", "long", 3, 4, 3, 34, 31, -9, NO)]
ETH = {"fifo": OLDEST, "lifo": OLDEST[::-1], "average": [("ETH", "long", 2, 4, 4, 33, 31, -8, NO)]}
OTHERS = [
    ("PURR/USDC", "long", NO, 2, 2, NO, 3, NO, NO),
    ("PURR/USDC", "long", NO, 3, 3, NO, NO, NO, NO),
    ("PURR/USDC", "long", 3, NO, 1, 4, NO, NO, 0.5),
]
BEFORE = [("#30", "long", 2, 6, 4, 0.25, NO, NO, NO), ("@9", "long", 1, 4, 2, 5, 7, 4, NO)]


def two_accounts():
    """Perps without `dir` need no warning, because only outcome tokens are converted."""
    first = mixed_fills()
    more = pd.DataFrame(SWAPS, columns=first.columns)
    more["time"] = times(MONDAY + hour * HOUR for hour in more["time"])
    frame = pd.concat([first, more], ignore_index=True)
    frame["user"] = [OTHER if coin in THEIRS else ME.upper() for coin in frame["coin"]]
    frame["dir"] = frame["dir"].where(frame["coin"] != "ETH")
    return frame.drop(columns="closed_pnl")


@pytest.mark.parametrize("method", METHODS)
def test_lots_of_each_account_by_hand(method):
    """Two accounts with swaps, gaps, flips, collateral and late fills."""
    result = lots(two_accounts().sample(frac=1, random_state=1), method, marks=MARKS)
    mine = MINE.copy()
    if method == "lifo":
        mine[4:6] = mine[5], mine[4]
    wanted = [(ME, *row) for row in mine]
    wanted += [(OTHER.lower(), *row) for row in (*BEFORE, *ETH[method], *OTHERS)]
    assert listed_rows(result) == [
        tuple(round(v, 9) if isinstance(v, float) else v for v in w) for w in wanted
    ]
    numbers = ["size", "entry_px", "exit_px", "unrealised"]
    assert set(map(str, result[numbers].dtypes)) == {"float64"}
    facts = result.attrs["toolkit"]
    assert (facts["helper"], facts["method"], *facts["inputs"]) == ("pnl.lots", method, "fills")


def test_unseen_tokens_have_no_cost():
    """A leg that takes more tokens than the balance makes the cost of the others unknown."""
    fills = two_accounts().query("coin in ('#40', '#50', '#60')")
    fills["start_position"] = fills["start_position"].where(fills["dir"] != "Negate Outcome", 2.0)
    fills.loc[fills["side"] == "B", "start_position"] = 0.0
    result = lots(fills, marks=MARKS)
    assert listed_rows(result[["coin", "size", "entry_px", "realised"]]) == [
        ("#40", 4, 0.5, NO), ("#40", 2, 0.5, NO), ("#50", 4, NO, NO), ("#60", 2, NO, NO)
    ]  # fmt: skip


def test_tokens_convert_in_the_millisecond_of_their_buy():
    fills = two_accounts().query("coin in ('#40', '#50', '#60')")
    fills = fills.assign(coin=fills["coin"].replace("#40", "#90"), time=fills["time"].min())
    assert {*lots(fills)["coin"]} == {"#50", "#60", "#90"}


def test_only_unnamed_broken_fills_warn():
    """Fills are missing, so positions break: this warns only if nothing names the account."""
    fills = two_accounts().query("coin == 'BTC'").drop(columns="user")
    with pytest.warns(UnnamedAccount, match="1 fill does not start"):
        lots(fills)
    fills.attrs["toolkit"] = {"parameters": {"user": ME}}
    assert lots(fills)["size"].tolist() == [1, 2, 5]
