"""Rows of nested answers.

Most operations answer with a list of records, which are the rows. Every other operation has a
function here that makes the rows of its answer.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final

import msgspec

from toolkit.contract import records as r
from toolkit.contract.dexes import coin_dex, dex_name_in
from toolkit.contract.operations import Parameters
from toolkit.errors import AnswerInvalid

Rows = tuple[Sequence[Any] | None, ...]
Pairs = Iterator[tuple[Any, tuple[Any, ...]]]


class ComposedRows(list[Any]):
    """Rows from the parts of a nested answer.

    - ``parts``: for each row the records that it was made from; they have the unknown fields. A
      record that is itself a value of the row is not among them.
    """

    __slots__ = ("parts",)

    def __init__(self, pairs: Iterable[tuple[Any, tuple[Any, ...]]]) -> None:
        rows_and_parts = list(pairs)
        super().__init__(row for row, _ in rows_and_parts)
        self.parts = [parts for _, parts in rows_and_parts]


def _row(record: type[r.Record], *parts: Any, **values: Any) -> tuple[Any, tuple[Any, ...]]:
    """Return a row and its parts; a field without a value has that of the first part with one."""
    for name in record.__struct_fields__:
        if name not in values:
            found = (getattr(part, name, None) for part in parts)
            values[name] = next((value for value in found if value is not None), None)
    return record(**values), parts


def _depth_rows(answer: Any, _: Parameters) -> Pairs:
    for market in answer.data:
        for level in market.levels or ():
            yield _row(r.DepthRow, level, market, answer)


def _margin_table_rows(answer: Any, _: Parameters) -> Pairs:
    for number, table in answer.margin_tables or ():
        for at, tier in enumerate((table and table.margin_tiers) or ()):
            yield _row(r.MarginTierRow, tier, table, answer, margin_table_id=number, tier=at)


def _context_rows(answer: Any, _: Parameters) -> Pairs:
    meta, contexts = answer[0], answer[1] or []
    if len(meta.universe) != len(contexts):
        raise AnswerInvalid(
            f"the answer has {len(meta.universe)} assets, but {len(contexts)} market states. They "
            "are joined by position, so the counts must be equal. Repeat the call. If it fails "
            "again, report this to the service"
        )
    for asset, context in zip(meta.universe, contexts, strict=True):
        row = _row(r.MetaRow, asset, meta)[0]
        yield _row(r.ContextRow, asset, meta, asset=row, context=context)


def _limit_rows(answer: Any, _: Parameters) -> Rows:
    if answer is None:
        return [], []
    coins = [r.CoinCapRow(coin=coin, oi_cap=cap) for coin, cap in answer.coin_to_oi_cap or ()]
    return [answer], coins


def _batch_state_rows(answer: Any, parameters: Parameters) -> Rows:
    states = list(_states_by_dex(answer, parameters))
    accounts = ComposedRows(
        _row(r.AccountRow, state, answer, user=user, dex=dex, margin_summary=_summary(state))
        for user, dex, state in states
    )
    positions = ComposedRows(
        _row(r.PositionRow, held, user=user, dex=dex, time=state.time)
        for user, dex, state in states
        for held in state.asset_positions or ()
    )
    return accounts, positions, [r.FailedRow(user=user) for user in answer.failed_wallets or ()]


def _states_by_dex(answer: Any, parameters: Parameters) -> Iterator[tuple[str, str, Any]]:
    for user, state in answer.successful_states:
        if isinstance(state, dict):
            for dex, dex_state in state.items():
                yield user, dex, _NO_STATE if dex_state is None else dex_state
        else:
            state = _NO_STATE if state is None else state
            # The coins name the dex, where the request is not known.
            coins = (held.position.coin for held in state.asset_positions or () if held is not None)
            dex = parameters.get("dex") or coin_dex(next(coins, ""))
            yield user, dex_name_in("states", dex), state


def _summary(state: Any) -> Any:
    summary = state.margin_summary
    if state.withdrawable is not None:  # docs/live_service.md, section 1: today it is there
        if summary is None:
            summary = _NO_SUMMARY
        if summary.withdrawable is None:
            summary = msgspec.structs.replace(summary, withdrawable=state.withdrawable)
    return summary


_NO_STATE, _NO_SPOT_STATE, _NO_SUMMARY = (
    _row(record)[0] for record in (r.ClearinghouseState, r.SpotContext, r.MarginSummary)
)


def _borrow_lend_rows(answer: Any, _: Parameters) -> Rows:
    pairs = answer.token_to_state or ()
    return [answer], [r.TokenRow(token_index=index, state=state) for index, state in pairs]


def _state_rows(answer: Any, parameters: Parameters) -> Rows:
    states: Any = [(parameters.get("user"), answer)]
    batch = r.BatchStates(successful_states=states, failed_wallets=[])
    return _batch_state_rows(batch, parameters)[:2]


def _portfolio_state_rows(answer: Any, parameters: Parameters) -> Rows:
    mode = ComposedRows([_row(r.ModeRow, answer, user=parameters.get("user"))])
    spot = answer.spot_clearinghouse_state
    balances = [] if spot is None else ComposedRows(_balance_rows(spot, parameters))
    return mode, *_state_rows(answer.clearinghouse_state, parameters), balances


def _spot_context_rows(answer: Any, _: Parameters) -> Rows:
    meta, contexts = answer
    # Joined by name. A state without a market does not count.
    states = {context.coin: context for context in contexts or () if context is not None}
    markets = [
        r.SpotMarketRow(pair=pair, context=states.get(pair.name, _NO_SPOT_STATE))
        for pair in meta.universe or ()
    ]
    return markets, meta.tokens


def _predicted_rows(answer: Any, _: Parameters) -> Pairs:
    for coin, venues in answer:
        for venue, next in venues or ():
            parts = () if next is None else (next,)
            yield _row(r.PredictedFundingRow, *parts, coin=coin, venue=venue)


def _book_rows(answer: Any, _: Parameters) -> Pairs:
    for side, levels in zip("BA", (answer and answer.levels) or (), strict=False):
        for place, level in enumerate(levels or (), 1):
            yield _row(r.BookLevelRow, level, answer, side=side, level=place)


def _balance_rows(answer: Any, _: Parameters) -> Pairs:
    return ((balance, (answer,)) for balance in answer.balances or ())


def _sub_account_rows(answer: Any, _: Parameters) -> Pairs:
    for account in answer or ():
        by_dex = dict(account.dex_to_clearinghouse_state or ())
        state = account.clearinghouse_state or by_dex.get("")  # on the native dex
        summary, spot = state and state.margin_summary, account.spot_state
        usdc = (held.total for held in (spot and spot.balances) or () if held.coin == "USDC")
        value = summary and summary.account_value
        cash = next(usdc, None if spot is None else "0.0")
        yield _row(r.SubAccountRow, account, account_value=value, spot_usdc=cash)


def _portfolio_rows(answer: Any, _: Parameters) -> Pairs:
    for period, history in answer:
        pnl_at = dict((history and history.pnl_history) or ())
        for time, value in (history and history.account_value_history) or ():
            own = {"period": period, "time": time, "account_value": value, "pnl": pnl_at.get(time)}
            yield _row(r.PortfolioRow, history, **own)


def _vault_rows(answer: Any, parameters: Parameters) -> Rows:
    if answer is None:
        return [], [], []
    history = ComposedRows(_portfolio_rows(answer.portfolio or (), parameters))
    return [answer], history, answer.followers or ()


COMPOSED_ROWS: Final[dict[str, Callable[[Any, Parameters], Pairs]]] = {
    "currentDepth": _depth_rows,
    "meta": lambda answer, _: (_row(r.MetaRow, asset, answer) for asset in answer.universe),
    "marginTables": _margin_table_rows,
    "metaAndAssetCtxs": _context_rows,
    "predictedFundings": _predicted_rows,
    "l2Book": _book_rows,
    "spotClearinghouseState": _balance_rows,
    "subAccounts": _sub_account_rows,
    "orderStatus": lambda answer, _: iter([(answer.order, (answer,))] if answer.order else []),
    "portfolio": _portfolio_rows,
}
"""Type of operation, or name of a view -> what yields the rows of its table, and their parts."""

ROW_FUNCTIONS: Final[dict[str, Callable[[Any, Parameters], Rows]]] = {
    "perpDexLimits": _limit_rows,
    "batchClearinghouseStates": _batch_state_rows,
    "borrowLendUserState": _borrow_lend_rows,
    "clearinghouseState": _state_rows,
    "portfolioState": _portfolio_state_rows,
    "spotMeta": lambda answer, _: (answer.universe, answer.tokens),
    "spotMetaAndAssetCtxs": _spot_context_rows,
    "perpDexs": lambda answer, _: ([dex for dex in answer if dex is not None],),
    "allMids": lambda answer, _: ([r.MidRow(coin=coin, mid_px=px) for coin, px in answer.items()],),
    "outcomeMeta": lambda answer, _: (answer.outcomes, answer.questions),
    "vaultDetails": _vault_rows,
}
"""Type of operation -> what makes the rows of its tables; None stands for no rows."""


def _nest_slices(answer: Any) -> Any:
    rows = answer if isinstance(answer, list) else []
    flat = [row for row in rows if isinstance(row, dict) and "fill" not in row]
    nested = {id(row): {"fill": row, "twapId": row.get("twapId")} for row in flat}
    return [nested.get(id(row), row) for row in rows] if flat else answer


OTHER_FORMS: Final[dict[str, Callable[[Any], Any]]] = {"userTwapSliceFills": _nest_slices}
"""Type of operation -> what brings another known form of its answer into the usual one."""
