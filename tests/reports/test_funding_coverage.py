"""The coverage of funding by hand, and the example account by its definition."""

from decimal import Decimal

import pandas as pd

from toolkit.fetch.fills import user_fills_by_time
from toolkit.reports.funding_coverage import FundingCoverage, compare_funding

HOUR = 3_600_000


def fills_of(*rows):
    """Return fills from coin, side, hour, sz and start position."""
    coin, side, hour, sz, start = zip(*rows, strict=True)
    times = pd.to_datetime([round(value * HOUR) for value in hour], unit="ms", utc=True)
    columns = {"coin": coin, "side": side, "time": times.as_unit("ms")}
    columns |= {"sz": map(Decimal, sz), "start_position": map(Decimal, start)}
    return pd.DataFrame({name: list(values) for name, values in columns.items()})


def payments_of(*rows):
    """Return funding rows from coin, hour, szi and the number of payments."""
    coin, hour, szi, count = zip(*rows, strict=True)
    times = pd.to_datetime([value * HOUR for value in hour], unit="ms", utc=True).as_unit("ms")
    sizes = [Decimal(value) for value in szi]
    counts = pd.array(count, dtype="Int64")
    return pd.DataFrame({"coin": coin, "time": times, "szi": sizes, "n_samples": counts})


def test_coverage_by_hand():
    """BTC is open at hours 1 and 2, ETH at hours 4 to 6; the spot pair has no funding."""
    fills = fills_of(
        ("BTC", "B", 0.5, "2", "0"),
        ("@1", "B", 0.6, "7", "0"),
        ("BTC", "A", 2.0, "0.5", "2"),
        ("BTC", "A", 2.5, "1.5", "1.5"),
        ("ETH", "A", 3.5, "1", "-3"),
    )
    paid = payments_of(
        ("BTC", 1, "2.0", None),  # agrees
        ("BTC", 2, "1.5", 1),  # another size: the sale of this millisecond is after the payment
        ("BTC", 3, "2", 1),  # no position
        ("ETH", 5, "-4", 3),  # of hours 3, 4 and 5; hour 3 is before the first fill
    )
    found = compare_funding(fills, paid, 6 * HOUR + 1)
    assert found == FundingCoverage(held=5, covered=4, agreeing=3, beyond=1, carried=1)
    assert not found.is_complete


def test_coverage_without_rows():
    fills = fills_of(("@1", "B", 0.5, "2", "0"))
    paid = payments_of(("BTC", 1, "2", 1))
    assert compare_funding(fills, paid[:0], HOUR) == FundingCoverage(0, 0, 0, 0, 0)
    assert compare_funding(fills, paid, HOUR) == FundingCoverage(0, 0, 0, 1, 0)


def test_example_account_fits_its_definition(session, user):
    """No account before it has as many fills and coins, and paid a builder."""
    fitting = []
    for account in session.world["users"]:
        fills = user_fills_by_time(account, 0, session=session)
        is_large = len(fills) >= 50 and fills["coin"].nunique() >= 7
        fitting += [account] if is_large and fills["builder_fee"].max() > 0 else []
    assert fitting[0] == user
