"""What a service can serve: the tables between what fills them and what answers from them.

The simulated exchange, an archive and recorded answers all give a `Sources`; the service
builds its store from one. Every record is complete: it holds each field that any operation
shows, and the service leaves out what an operation does not show (`builder` in
userFillsByTime, `venue` everywhere else, `user` outside the builder operations).
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from toolkit.contract.records import (
    Fill,
    FundingRow,
    LedgerUpdate,
    Meta,
    OrderStatus,
    SlippageSample,
)

__all__ = ["Approval", "Sources"]


@dataclass(frozen=True, slots=True)
class Approval:
    """A builder's approval by a user, or its revocation; it applies from its block.

    Parameters
    ----------
    user, builder : str
        Addresses.
    time : int
        Time of the block, in milliseconds.
    tx_index : int
        Index of the transaction in its block.
    approved : bool
        True for an approval, False for a revocation.
    """

    user: str
    builder: str
    time: int
    tx_index: int
    approved: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """The tables of one exchange, real or simulated.

    Rows ascend in time; the order of rows with equal times is the order of execution, and
    a service must keep it. A table that there is nothing of stays empty.

    Parameters
    ----------
    start_ms, now_ms : int
        First moment of the history, and the present: nothing is later than `now_ms`.
    label : str
        What this is, in words that may stand below a figure.
    simulated : bool
        Whether the data is invented.
    fills : iterable of (user, Fill)
        In execution order; ``user`` is unset in the records.
    funding : iterable of FundingRow
        By time, user, coin.
    ledger : iterable of (user, LedgerUpdate)
        An update between two users stands here once for each.
    orders : iterable of (user, OrderStatus)
        Status events; ``user`` is unset in the records, ``builder`` is set where there is one.
    approvals : iterable of Approval
        Approvals and revocations of builders.
    slippage : iterable of SlippageSample
        By coin, amount and time; ``coin`` is the name used in requests.
    metas : mapping of str to Meta
        Dex (native: ``""``) -> its perps.
    """

    start_ms: int
    now_ms: int
    label: str
    simulated: bool
    fills: Iterable[tuple[str, Fill]] = ()
    funding: Iterable[FundingRow] = ()
    ledger: Iterable[tuple[str, LedgerUpdate]] = ()
    orders: Iterable[tuple[str, OrderStatus]] = ()
    approvals: Iterable[Approval] = ()
    slippage: Iterable[SlippageSample] = ()
    metas: Mapping[str, Meta] = field(default_factory=dict)
