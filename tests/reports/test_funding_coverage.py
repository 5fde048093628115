"""The coverage of funding by hand, and the example account by its definition."""

from decimal import Decimal

import pandas as pd

from toolkit.fetch.fills import user_fills, user_fills_by_time
from toolkit.fetch.funding import builder_approved_funding_by_time
from toolkit.reports import example
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
    """No account with more funding is complete, if every account is compared in full."""
    builders = session.world["builders"]
    payments = {
        builder: builder_approved_funding_by_time(builder, 0, numbers="exact", session=session)
        for builder in builders
    }
    parts = [frame.assign(builder=name) for name, frame in payments.items()]
    rows = pd.concat(parts, ignore_index=True)
    for account in example._rank_by_funding(rows):
        fills = user_fills_by_time(account, 0, numbers="exact", session=session)
        routed = user_fills(account, session=session)["builder"].dropna()
        is_own = (rows["user"] == account) & (rows["builder"].isin(routed) | routed.empty)
        own = rows[is_own].drop_duplicates(["time", "coin"])
        found = compare_funding(fills, own, session.now_ms())
        share = found.covered / max(found.held + found.beyond, 1)
        if share == 1 and len(fills) >= 50 and example._has_closed(fills, account):
            break
    assert account == user
