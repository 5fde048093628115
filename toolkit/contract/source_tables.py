"""The tables of an exchange, from which a service builds its store.

The simulated exchange, an archive and recorded answers all make a `Sources`. Every record is
complete: it has each field that any operation shows. The service leaves out the fields that an
operation does not show: `builder` in userFillsByTime and builderOrdersByTime, `venue` in userFills
and builderApprovedFillsByTime, and `user` outside the builder operations.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypedDict

from toolkit.contract import records as r


@dataclass(frozen=True, slots=True)
class Approval:
    """The approval of a builder by a user, or its revocation. It applies from its block.

    - ``user``, ``builder``: addresses
    - ``time``: time of the block, in milliseconds
    - ``tx_index``: index of the transaction in its block
    - ``approved``: true for an approval, False for a revocation
    """

    user: str
    builder: str
    time: int
    tx_index: int
    approved: bool


@dataclass(frozen=True, slots=True)
class Auction:
    """One deploy auction. Its price falls from start to end, or until somebody buys.

    - ``kind``: ``spot`` or ``perp``
    - ``start_seconds``, ``duration_seconds``: its start in Unix seconds, and its length
    - ``start_gas``, ``floor_gas``: prices at the start and at the end, decimal text
    - ``end_seconds``: the time of the purchase; None if nobody has bought
    - ``end_gas``: the price of the purchase; None if nobody has bought
    """

    kind: str
    start_seconds: int
    duration_seconds: int
    start_gas: str
    floor_gas: str
    end_seconds: int | None = None
    end_gas: str | None = None


@dataclass(frozen=True, slots=True)
class DailyReward:
    """The rewards of one validator's stake on one day, in the native token, decimal text.

    - ``validator``: address
    - ``time``: midnight UTC at the end of the day, in milliseconds
    - ``staked``: the stake
    - ``delegator_rewards``, ``commission``: the part for the delegators, and the part for the
      validator
    """

    validator: str
    time: int
    staked: str
    delegator_rewards: str
    commission: str


@dataclass(frozen=True, slots=True)
class AccountSnapshot:
    """The account values at one moment.

    - ``snapshot_id``: its identifier
    - ``time``: its time, in milliseconds
    - ``values``: (Dex, collateral token) -> one row for each account
    """

    snapshot_id: str
    time: int
    values: Mapping[tuple[str, str], Sequence[r.AccountValueRow]]


@dataclass(frozen=True, slots=True)
class TwapSnapshot:
    """The TWAP orders at one moment.

    - ``snapshot_id``: its identifier
    - ``time``: its time, in milliseconds
    - ``twaps``: market name (with ``<dex>:`` in front on builder-deployed dexes) -> its TWAPs
    """

    snapshot_id: str
    time: int
    twaps: Mapping[str, Sequence[r.TwapRow]]


@dataclass(frozen=True, slots=True)
class Valuation:
    """The value of an account at one moment, and its PnL until then.

    - ``time``: the moment, in milliseconds
    - ``account_value``, ``pnl``: value of perps and spot balances in USD, and PnL since the start
      of the history
    - ``perp_value``, ``perp_pnl``: the same for perps only
    """

    time: int
    account_value: str
    pnl: str
    perp_value: str
    perp_pnl: str


class WorldFacts(TypedDict, total=False):
    """The contents of a local service, so that users find accounts and markets in it."""

    seed: int
    size: str
    start_ms: int
    now_ms: int
    users: list[str]
    builders: list[str]
    validators: list[str]
    perp_coins: list[str]
    spot_coins: list[str]
    dexes: list[str]
    venues: list[str]
    collateral_tokens: list[str]
    digest: str
    examples: dict[str, str]
    stories: dict[str, str]
    not_served: list[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """The tables of one exchange, real or simulated.

    Rows ascend in time. Rows with equal times are in the order of execution, and a service must
    keep this order. A table without data stays empty.

    - ``start_ms``, ``now_ms``: the start of the history, and the present; no row is later than
      `now_ms`
    - ``label``: a short description, which can be a caption of a figure
    - ``simulated``: whether the data is invented
    - ``fills``: in execution order; ``user`` is unset in the records
    - ``funding``: by time, user, coin
    - ``ledger``: an update between two users is listed once for each of them
    - ``orders``: status events; ``user`` is unset in the records, ``builder`` is set if there is
      one
    - ``approvals``: approvals and revocations of builders
    - ``slippage``: by coin, amount and time; ``coin`` is the name in requests
    - ``metas``: dex (native: ``""``) -> its perps
    - ``contexts``: dex -> the market states at `now_ms`, in the order of its perps
    - ``depth``: the latest depth of all markets
    - ``states``: dex -> account -> its state at `now_ms`
    - ``unavailable``: accounts without an available state; batchClearinghouseStates lists them as
      failed
    - ``limits``: dex -> its limits, for dexes with configured limits
    - ``auctions``: by start; the service shows the latest one of a kind that has started
    - ``account_snapshots``, ``twap_snapshots``: by time; the service shows the latest one
    - ``borrow_lend``: account -> its state, for accounts that have ever borrowed or lent
    - ``lend_interest``: account -> the interest of its loans and deposits, by time and token
    - ``delegations``: account -> its delegations
    - ``rewards``: by time and validator, for the weekly APRs. They can begin before `start_ms`.
    - ``spot_meta``: the tokens and the spot pairs; None if they are unknown
    - ``spot_contexts``: the states of the spot pairs at `now_ms`, in the order of the pairs in
      `spot_meta`
    - ``spot_states``: account -> its balances of spot and outcome tokens at `now_ms`, each with its
      exact cost
    - ``outcome_meta``: the outcomes that are not settled at `now_ms`, and their questions
    - ``perp_dexes``: the builder-deployed dexes
    - ``funding_rates``: coin -> its funding rates, by time
    - ``books``: coin -> its book at `now_ms` with all levels, for coins with a book
    - ``stakes``: account -> its stake
    - ``stake_events``: account -> the changes of its stake, newest first
    - ``stake_rewards``: account -> its staking rewards, newest first
    - ``vault_equities``: account -> its equity in vaults
    - ``sub_accounts``: account -> its sub-accounts
    - ``roles``: every known address -> its role
    - ``fees``: account -> its fee rates, without its daily volume
    - ``valuations``: account -> its values, by time
    - ``history``: a sentence about data that may be missing, for the provenance of every frame
    """

    start_ms: int
    now_ms: int
    label: str
    simulated: bool
    fills: Iterable[tuple[str, r.Fill]] = ()
    funding: Iterable[r.FundingRow] = ()
    ledger: Iterable[tuple[str, r.LedgerUpdate]] = ()
    orders: Iterable[tuple[str, r.OrderStatus]] = ()
    approvals: Iterable[Approval] = ()
    slippage: Iterable[r.SlippageSample] = ()
    metas: Mapping[str, r.Meta] = field(default_factory=dict)
    contexts: Mapping[str, Sequence[r.AssetContext]] = field(default_factory=dict)
    depth: r.Depth | None = None
    states: Mapping[str, Mapping[str, r.ClearinghouseState]] = field(default_factory=dict)
    unavailable: frozenset[str] = frozenset()
    limits: Mapping[str, r.PerpDexLimits] = field(default_factory=dict)
    auctions: Sequence[Auction] = ()
    account_snapshots: Sequence[AccountSnapshot] = ()
    twap_snapshots: Sequence[TwapSnapshot] = ()
    borrow_lend: Mapping[str, r.BorrowLend] = field(default_factory=dict)
    lend_interest: Mapping[str, Sequence[r.LendInterest]] = field(default_factory=dict)
    delegations: Mapping[str, Sequence[r.Delegation]] = field(default_factory=dict)
    rewards: Sequence[DailyReward] = ()
    spot_meta: r.SpotMeta | None = None
    spot_contexts: Sequence[r.SpotContext] = ()
    spot_states: Mapping[str, r.SpotState] = field(default_factory=dict)
    outcome_meta: r.OutcomeMeta | None = None
    perp_dexes: Sequence[r.PerpDex] = ()
    funding_rates: Mapping[str, Sequence[r.FundingRate]] = field(default_factory=dict)
    books: Mapping[str, r.L2Book] = field(default_factory=dict)
    stakes: Mapping[str, r.DelegatorSummary] = field(default_factory=dict)
    stake_events: Mapping[str, Sequence[r.DelegatorEvent]] = field(default_factory=dict)
    stake_rewards: Mapping[str, Sequence[r.DelegatorReward]] = field(default_factory=dict)
    vault_equities: Mapping[str, Sequence[r.VaultEquity]] = field(default_factory=dict)
    sub_accounts: Mapping[str, Sequence[r.SubAccountRow]] = field(default_factory=dict)
    roles: Mapping[str, r.UserRole] = field(default_factory=dict)
    fees: Mapping[str, r.UserFees] = field(default_factory=dict)
    valuations: Mapping[str, Sequence[Valuation]] = field(default_factory=dict)
    history: str = ""


class LiveTables(Protocol):
    """The data that changes after the end of the history, while the clock runs.

    Every result depends only on the present. Until it changes, it is the same object.
    """

    def depth(self, now_ms: int) -> r.Depth:
        """Return the depth of all markets."""

    def account_values(self, now_ms: int) -> AccountSnapshot:
        """Return the latest snapshot of account values."""

    def twaps(self, now_ms: int) -> TwapSnapshot:
        """Return the latest snapshot of TWAPs."""

    def auctions(self, now_ms: int) -> Sequence[Auction]:
        """Return the auctions that have started, by start."""
