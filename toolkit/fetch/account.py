"""One account: its frames, each fetched once, from the best source that the session has."""

import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from html import escape
from typing import Any, Final, TypeVar

import pandas as pd

import toolkit  # its names are imported on first use: the helpers are above the fetch functions
from toolkit import errors
from toolkit.client import Session, current_session
from toolkit.contract.dexes import ALL_DEXES, coin_dex, is_perp_coin
from toolkit.contract.requests import AMOUNTS, is_address
from toolkit.display import count_text, facts_table, time_text
from toolkit.fetch.accounts import AccountStates
from toolkit.fetch.concat import concat_frames
from toolkit.fetch.markets import with_readable_coins
from toolkit.fetch.raw import info
from toolkit.frames import frame
from toolkit.public_names import publish_as
from toolkit.times import DAY, Time, to_ms

T = TypeVar("T")

_LACKS: Final = (errors.NotPermitted, errors.NotReady, errors.BadRequest, errors.Incomplete)
"""Errors of a source that does not have what a request asks."""
_RANGED: Final = ("fills", "funding", "ledger")
_LISTED: Final = (*_RANGED, "orders", "states", "spot", "mode", "role", "samples")
_SAMPLED_COINS: Final = 3  # the coins with the largest volume
_SAMPLED_DAYS: Final = 30
_TOLD_POSITIONS: Final = 10


@publish_as("toolkit")
class Account:
    """The frames of one account; `tk.account` makes it.

    Each frame is fetched when it is first read, and kept. Money is in exact decimals. A frame that
    the source does not have is None; `missing` has the reason. One warning names each frame that is
    missing or incomplete.

    Attributes
    ----------
    address : str
        The account.
    start_ms, end_ms : int
        The range in Unix milliseconds, both ends inclusive. Without an `end`, states that are read
        before the fills, the funding and the ledger end the range: no row is later than they are.
    session : Session
        The source.
    missing : dict
        Name of a frame that is missing or incomplete -> the reason.
    """

    def __init__(
        self, address: str, start: Time, end: Time | None, session: Session, *, quiet: bool = False
    ) -> None:
        self.address = address.strip().lower()
        if not is_address(self.address):
            words = f"{address!r} is not an address. An address is 0x and 40 hex digits"
            raise errors.unsent(words)
        now = session.now_ms()
        self.start_ms = to_ms(start, now_ms=now)
        self.end_ms = now if end is None else to_ms(end, now_ms=now)
        self.session = session
        self.missing: dict[str, str] = {}
        self._is_open, self._is_quiet = end is None, quiet
        self._has_states = self.end_ms >= now
        self._parts: dict[str, Any] = {}
        self._lock = threading.RLock()

    def assign(self, **frames: object) -> "Account":
        """Return a copy that has these frames in place of fetched ones; None: it is missing.

        A copy also takes `start_ms`, `end_ms`, and what is `missing`.
        """
        made: Account = object.__new__(type(self))
        with self._lock:
            vars(made).update(vars(self), _lock=threading.RLock(), _parts=dict(self._parts))
        made.missing = {name: why for name, why in self.missing.items() if name not in frames}
        made._parts.pop("prepared", None)
        for name, value in frames.items():
            (vars(made) if name in vars(made) else made._parts)[name] = value
        return made

    def fetch(self, *names: str) -> "Account":
        """Fetch frames now, in this order, and return the account."""
        for name in names:
            getattr(self, name)
        return self

    def _read(self, name: str, fetch: Callable[[], T]) -> T:
        """Return a frame, fetched once; None if the source does not have it."""
        with self._lock:
            if name not in self._parts:
                rows: Any = None
                try:
                    rows = fetch()
                except _LACKS as error:
                    if name in _RANGED and (rows := getattr(error, "rows", None)) is not None:
                        rows = None if rows.empty else rows
                    if rows is None and name in ("fills", "ledger"):
                        raise
                    self._parts[name] = rows
                    self._note(name, error)
                if name == "fills":
                    rows = with_readable_coins(rows, self.session)
                self._parts[name] = rows
            found: T = self._parts[name]
        return found

    def _note(self, name: str, error: Exception) -> None:
        cause = error.__cause__ or error
        is_of_service = isinstance(cause, errors.ServiceError)
        self.missing[name] = str(cause.args[0] if is_of_service else cause)
        if not self._is_quiet:
            state = "missing" if self._parts.get(name) is None else "incomplete"
            message = f"{name} of {self.address} {state}: {self.missing[name]}"
            errors.warn_caller(message, errors.IncompleteWarning)

    def _ask(self, function: Callable[..., T], *times: int) -> T:
        return function(self.address, *times, numbers="exact", session=self.session)

    def _ask_range(self, function: Callable[..., T]) -> T:
        return self._ask(function, self.start_ms, self.end_ms)

    @property
    def fills(self) -> pd.DataFrame:
        """The fills of the range; spot pairs have their readable names."""
        return self._read("fills", lambda: self._ask_range(toolkit.user_fills_by_time))

    @property
    def prepared(self) -> "toolkit.prepare.Fills":
        """The fills as `tk.prepare.fills` returns them: helpers share each layer."""
        prepare = toolkit.prepare.fills
        return self._read("prepared", lambda: prepare(self.fills, account=self.address))

    @property
    def funding(self) -> pd.DataFrame | None:
        """The funding payments of the range."""
        return self._read("funding", lambda: self._ask_range(toolkit.user_funding))

    @property
    def ledger(self) -> pd.DataFrame:
        """The deposits, withdrawals, transfers and other changes of cash of the range."""
        fetch = toolkit.user_non_funding_ledger_updates
        return self._read("ledger", lambda: self._ask_range(fetch))

    @property
    def orders(self) -> pd.DataFrame | None:
        """The latest order events."""
        return self._read("orders", lambda: self._ask(toolkit.historical_orders))

    @property
    def latest(self) -> pd.DataFrame | None:
        """The latest fills, which name their builder."""
        return self._read("latest", lambda: self._ask(toolkit.user_fills))

    @property
    def states(self) -> AccountStates | None:
        """Perp account values and open positions now; None also if the range ends before now."""

        def fetch() -> AccountStates:
            found = account_states([self.address], self.session)
            if len(found.failed) or found.accounts.empty:
                raise errors.NotReady("the source has no state of the account")
            if self._is_open and not {*_RANGED} & self._parts.keys():
                self.end_ms = to_ms(found.accounts["time"].max())
            return found

        if not self._has_states and "states" not in self._parts:
            return None
        return self._read("states", fetch)

    @property
    def spot(self) -> pd.DataFrame | None:
        """The spot balances now."""
        rows: pd.DataFrame | None = self._read("spot", lambda: self._info("spotClearinghouseState"))
        return rows

    @property
    def mode(self) -> str | None:
        """The account mode now, such as ``default``, ``unifiedAccount``, ``portfolioMargin``."""
        text: str | None = self._read("mode", lambda: self._info("userAbstraction"))
        return text

    @property
    def role(self) -> str | None:
        """The role of the address: user, vault, agent, sub-account or missing."""
        text: str | None = self._read("role", lambda: self._info("userRole")["role"].iloc[0])
        return text

    @property
    def perps(self) -> pd.DataFrame:
        """The metadata of the dexes on which the account traded."""

        def fetch() -> pd.DataFrame:
            coins = filter(is_perp_coin, self.fills["coin"].unique())
            dexes = ["", *sorted({coin_dex(coin) for coin in coins} - {""})]
            frames = {dex: toolkit.meta(dex=dex, session=self.session) for dex in dexes}
            return concat_frames(frames, "dex")

        return self._read("perps", fetch)

    @property
    def samples(self) -> pd.DataFrame | None:
        """The slippage samples of the three perps with the largest volume, in the last 30 days."""

        def fetch() -> pd.DataFrame | None:
            rows = self.fills[self.fills["coin"].map(is_perp_coin).astype("bool")]
            volume = rows["px"].astype("float64") * rows["sz"].astype("float64")
            sums = volume.groupby(rows["coin"]).sum().sort_values(ascending=False, kind="stable")
            frames, start = {}, self.end_ms - _SAMPLED_DAYS * DAY
            for coin in sums.index[:_SAMPLED_COINS]:
                try:
                    for amount in AMOUNTS:
                        frames[f"{coin} {amount:.0f}"] = toolkit.slippage_history(
                            coin, amount, start, self.end_ms, page_size=2000, session=self.session
                        )
                except errors.Incomplete as error:
                    self._note(f"samples of {coin}", error)
            return concat_frames(frames, "amount") if frames else None

        return self._read("samples", fetch)

    @property
    def is_empty(self) -> bool:
        """Whether there are no fills, ledger updates and funding payments in the range."""
        paid = self.funding
        return not (len(self.fills) or len(self.ledger) or (paid is not None and len(paid)))

    def _info(self, type: str) -> Any:
        request = {"type": type, "user": self.address}
        answer = info(request, session=self.session)
        return answer if isinstance(answer, str) else frame(request, answer, numbers="exact")

    def _reasons(self) -> dict[str, str]:
        """Return why frames are missing or incomplete, also those whose fetch only warned."""
        known = {name: getattr(part, "attrs", {}) for name, part in self._parts.items()}
        facts = {name: attrs.get("toolkit", {}) for name, attrs in known.items()}
        cut = {name: fact for name, fact in facts.items() if fact.get("complete") == "no"}
        return {name: fact.get("why", "complete: no") for name, fact in cut.items()} | self.missing

    def _list_parts(self) -> Iterator[tuple[str, str]]:
        """Yield each frame and what is known of it; nothing is fetched."""
        reasons = self._reasons()
        for name in _LISTED:
            part = self._parts.get(name)
            if name not in self._parts:
                yield name, "not fetched"
            elif part is None:
                yield name, f"complete: no; missing: {self.missing.get(name, 'no rows')}"
            elif isinstance(part, str):
                yield name, part
            else:
                rows = part.positions if isinstance(part, AccountStates) else part
                what = "open position" if isinstance(part, AccountStates) else "row"
                complete = rows.attrs.get("toolkit", {}).get("complete")
                text = f", complete: {complete}" if complete else ""
                why = f"; {reasons[name]}" if name in reasons else ""
                yield name, f"{count_text(len(rows), what)}{text}{why}"

    def _range_text(self) -> str:
        begin = time_text(self.start_ms) if self.start_ms else "the beginning"
        return f"{begin} to {time_text(self.end_ms)}"

    def _list_next(self) -> tuple[str, str, str]:
        return (
            "tk.pnl.attribution(account.prepared, account.funding, account.ledger): net PnL",
            f"tk.reports.wallet({self.address!r}): everything as one page",
            "print(account.to_context()): the figures as text, also for an agent",
        )

    def __repr__(self) -> str:
        parts = "".join(f"\n  {name:<8} {text}" for name, text in self._list_parts())
        following = "".join(f"\n  {line}" for line in self._list_next())
        return (
            f"<Account {self.address}\n  from {self._range_text()}; {self.session.label}{parts}\n"
            f"Next:{following}>"
        )

    def _repr_html_(self) -> str:
        facts = {"range": self._range_text(), "source": self.session.label}
        following = "".join(f"<br><code>{escape(line)}</code>" for line in self._list_next())
        table = facts_table(f"Account {self.address}", facts | dict(self._list_parts()))
        return f"{table}<p>Next:{following}</p>"

    def to_context(self) -> str:
        """Return the account as plain text for an agent or a person: figures with their sources.

        Fills, ledger, funding, states and mode are fetched unless they were before.

        Returns
        -------
        str
            Range and source; each frame with its rows and its completeness; net PnL with its parts,
            volume, cash, value and open positions with units; then what is missing, and why.
        """
        with warnings.catch_warnings(record=True) as noted:
            warnings.simplefilter("always")
            states, mode = self.states, self.mode
            total = toolkit.pnl.attribution(self.prepared, self.funding, self.ledger).iloc[0]
        lines = [
            f"Account {self.address}; mode: {mode or 'unknown'}.",
            f"Range: {self._range_text()}. Source: {self.session.label}"
            f"{' (simulated data)' if self.session.simulated else ''}.",
            *(f"{name}: {text}." for name, text in self._list_parts() if text != "not fetched"),
            f"Net PnL {_usd(total['net'])} = closed PnL {_usd(total['closed_pnl'])}"
            + "".join(
                f", {name.replace('_', ' ')} {_usd(total[name])}"
                for name in ("trading_fee", "builder_fee", "deployer_fee", "rebate", "funding")
            )
            + f". It covers: {total['covers']}. Positive is good for the account; unrealised PnL is"
            " not in it (tk.pnl.attribution).",
            f"Volume {total['volume']:,.0f} USD in {count_text(int(total['fills']), 'fill')}. Cash "
            f"into the perp account, less out of it: {_usd(total['ledger'])}.",
            *([] if states is None else _describe_states(states)),
            *(
                f"Note: {note.message}."
                for note in noted
                if note.category is not errors.IncompleteWarning
            ),
            f"Missing or incomplete: {'; '.join(f'{k} ({v})' for k, v in reasons.items())}."
            if (reasons := self._reasons())
            else "Nothing that was requested is missing.",
            *(["No fill, payment or ledger row came: check the address."] if self.is_empty else []),
        ]
        return "\n".join([*lines, "Next:", *self._list_next()])


def _usd(amount: Any) -> str:
    return "not known" if pd.isna(amount) else f"{amount:+,.2f} USD"


def _describe_states(states: AccountStates) -> Iterator[str]:
    value = states.accounts["account_value"].sum(skipna=False)
    unrealised = states.positions["unrealized_pnl"].sum(skipna=False)
    at = time_text(states.accounts["time"].max())
    yield (
        f"At {at}: value of the perp accounts {_usd(value)}, {_usd(unrealised)} of it unrealised. "
        "A unified or portfolio-margin account has its collateral in the spot wallet instead "
        "(account.spot)."
    )
    held = states.positions
    row: Any
    for row in held.head(_TOLD_POSITIONS).itertuples():
        side = "long" if row.szi > 0 else "short"
        yield (
            f"Open: {side} {abs(float(row.szi)):,.10g} {row.coin} from {float(row.entry_px):,.10g} "
            f"USD, worth {row.position_value:,.2f} USD, unrealised {_usd(row.unrealized_pnl)}."
        )
    if len(held) > _TOLD_POSITIONS:
        yield f"{len(held) - _TOLD_POSITIONS} more positions: account.states.positions."


@publish_as("toolkit")
def account(
    address: str, start: Time = 0, end: Time | None = None, *, session: Session | None = None
) -> Account:
    """Return one account: its fills, funding, ledger, orders and states, each fetched when read.

    Reports and widgets use the same object. Nothing is fetched yet.

    Parameters
    ----------
    address : str
        The account.
    start : Time
        First time, inclusive; by default the beginning of the history.
    end : Time, optional
        Last time, inclusive; by default now.
    session : Session, optional
        Session whose source is used; by default that of `tk.connect` or `tk.local`.

    Returns
    -------
    Account
        - ``fills``, ``funding``, ``ledger``: all rows of the range, money in exact decimals
        - ``states``: account values and open positions now, on all dexes; ``spot``: spot balances;
          ``mode``, ``role``: texts
        - ``orders``, ``latest``: the latest order events and fills; ``perps``: metadata of its
          dexes; ``samples``: slippage of the perps with the largest volume
        - ``prepared``: the fills for several helpers, see `tk.prepare.fills`
        - ``missing``: name -> why it is missing or incomplete. One warning says it, too

        A notebook shows what was fetched, how complete it is, and what to call next;
        ``to_context()`` is the same as text with the main figures.

    Raises
    ------
    BadRequest
        If the address is malformed.

    Examples
    --------
    >>> import toolkit as tk
    >>> session = tk.local(seed=7, size="tiny")
    >>> account = tk.account(session.world["examples"]["WHALE"])
    >>> len(account.fills) > 0, len(account.funding) > 0, account.missing
    (True, True, {})
    """
    return Account(address, start, end, current_session(session))


def account_states(users: Sequence[str], session: Session) -> AccountStates:
    """Return the perp states of accounts on all dexes, with exact numbers.

    A source without the operation for many accounts is asked for each account and dex.
    """
    try:
        return toolkit.batch_clearinghouse_states(
            users, dex=ALL_DEXES, numbers="exact", session=session
        )
    except errors.BadRequest as error:
        if error.status is not None or session.api.changes is None:
            raise
    dexes: Any = info({"type": "perpDexs"}, session=session)
    names = ["", *(dex["name"] for dex in dexes if dex)]
    parts: dict[str, Any] = {}
    for user in users:
        for name in names:
            request = {"type": "clearinghouseState", "user": user} | ({"dex": name} if name else {})
            answer = info(request, session=session)
            parts[f"{user} {name}".strip()] = frame(request, answer, numbers="exact")
    accounts, positions = (
        concat_frames({name: part[place] for name, part in parts.items()}, "dex")
        for place in (0, 1)
    )
    return AccountStates(accounts, positions, pd.DataFrame({"user": []}, dtype="str"))
