"""Snapshots. Specification, "Snapshot metadata", "Account value snapshot", "TWAP snapshot".

The records of the binary snapshots are the rows of frames. `toolkit.contract.snapshots` reads the
tuples on the wire.
"""

from typing import Annotated, Any

from toolkit.contract import value_kinds as k
from toolkit.contract.records.record import Record

_PM = "portfolio-margin users only"
_NEW = "older snapshots lack it"


class SnapshotMetadata(Record, kw_only=True, rename=None):
    """Which snapshot is the latest; its names are snake case on the wire."""

    snapshot_id: Annotated[str, k.TEXT("snapshot identifier", key=True)]
    timestamp: Annotated[int, k.SECONDS("snapshot time", key=True)]


class BranchMargin(Record, kw_only=True, rename=None):
    """The margin that a portfolio-margin account has available in one token."""

    token: Annotated[str, k.COIN("token name")]
    available: Annotated[float, k.USD("available margin")]


class AccountValueRow(Record, kw_only=True, rename=None):
    """One user's account value in one snapshot, as a row."""

    snapshot_id: Annotated[str, k.TEXT("snapshot identifier", key=True)]
    collateral_token: Annotated[
        str, k.COIN("collateral token; `<dex>:` in front if the snapshot has it", key=True)
    ]
    user: Annotated[str, k.ADDRESS("account", key=True)]
    account_value: Annotated[float, k.USD("total account value")]
    total_long_notional: Annotated[float, k.USD("sum of long notionals")]
    total_short_notional: Annotated[float, k.USD("sum of short notionals, absolute")]
    is_unified: Annotated[bool, k.FLAG("whether the account is unified")]
    account_mode: Annotated[
        int, k.COUNT("0 Standard, 1 DexAbstraction, 2 Unified, 3 PortfolioMargin")
    ]
    pm_ratio: Annotated[float | None, k.RATE(f"highest ratio over branches; {_PM}")]
    pm_avail_by_branch: Annotated[
        list[BranchMargin] | None, k.NESTED(f"pairs of token and available margin; {_PM}")
    ]
    pm_total_account_value: Annotated[float | None, k.USD(f"total over collateral tokens; {_PM}")]


class TwapRow(Record, kw_only=True, rename=None):
    """One TWAP order in one snapshot, as a row."""

    snapshot_id: Annotated[str, k.TEXT("snapshot identifier", key=True)]
    market: Annotated[
        str,
        k.COIN(
            "market name of the snapshot; `<dex>:` in front on a builder-deployed dex", key=True
        ),
    ]
    address: Annotated[str, k.ADDRESS("account", key=True)]
    twap_id: Annotated[int, k.ID("TWAP id, unique per user", key=True)]
    asset: Annotated[str, k.COIN("name of the market")]
    is_buy: Annotated[bool, k.FLAG("whether it buys")]
    total_sz: Annotated[Any, k.SIZE("total size to execute")]
    executed_sz: Annotated[Any, k.SIZE("size executed")]
    remaining_sz: Annotated[Any, k.SIZE("total less executed size")]
    executed_ntl: Annotated[Any, k.USD("executed notional")]
    progress_pct: Annotated[Any, k.RATE("progress, 0 to 100", unit="percent")]
    duration_secs: Annotated[int, k.COUNT("total duration", unit="seconds")]
    start_time_ms: Annotated[int, k.TIME("creation time")]
    reduce_only: Annotated[bool, k.FLAG("whether it may only reduce the position")]
    randomize: Annotated[bool, k.FLAG("whether slices are randomised")]
    next_slice_time: Annotated[str | None, k.ISO_TIME("time of the next slice")]
    slice_number: Annotated[int, k.COUNT("current slice")]
    market_name: Annotated[str | None, k.TEXT("always missing on perps")]
    market_readable: Annotated[str | None, k.TEXT("always missing on perps")]
    stop_px: Annotated[Any, k.PRICE(f"stop price; {_NEW}")] = None
    trigger_px: Annotated[Any, k.PRICE(f"trigger price of waiting TWAPs; {_NEW}")] = None
    trigger_above: Annotated[bool | None, k.FLAG(f"activates above the trigger price; {_NEW}")] = (
        None
    )
    waiting: Annotated[bool, k.FLAG(f"registered, not yet activated; {_NEW}")] = False
