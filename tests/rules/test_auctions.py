"""The price line of a deploy auction, by hand."""

from fractions import Fraction

from toolkit.rules.auctions import auction_price, elapsed_at, floor_price, price_at


def test_price_falls_then_stays():
    """From 600 to 300 in 100 seconds: 3 a second."""
    prices = [
        auction_price(Fraction(600), Fraction(300), elapsed, 100) for elapsed in (0, 30, 100, 250)
    ]
    assert prices == [60_000_000_000, 51_000_000_000, 30_000_000_000, 30_000_000_000]


def test_price_rounds_halves_to_even():
    """The price is 0.5, 1.5 and 2.5 units of the last digit: 0, 2 and 2."""
    digit = Fraction(1, 10**8)
    starts = [digit / 2, 3 * digit / 2, 5 * digit / 2]
    assert [auction_price(start, Fraction(0), 0, 7) for start in starts] == [0, 2, 2]


def test_price_floor_and_time_agree():
    """From 600 to 200 in 80 seconds: 500 after 20 seconds."""
    assert price_at(600.0, 200.0, 20, 80) == 500.0
    assert floor_price(600.0, 500.0, 20, 80) == 200.0
    assert elapsed_at(600.0, 200.0, 500.0, 80) == 20.0
