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

Pairs = Iterator[tuple[Any, tuple[Any, ...]]]
"""Rows, each with its parts."""

Rows = tuple[Pairs | Sequence[Any] | None, ...]
"""The rows of each table; None stands for no rows."""


class ComposedRows(list[Any]):
    """Rows from the parts of a nested answer.

    - ``parts``: for each row the records that it was made from; they have the unknown fields. A
      record that is itself a value of the row is not among them.
    """

    __slots__ = ("parts",)

    def __init__(self, pairs: Pairs) -> None:
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
    caps = (answer and answer.coin_to_oi_cap) or ()
    return answer and [answer], [r.CoinCapRow(coin=coin, oi_cap=cap) for coin, cap in caps]


def _batch_state_rows(answer: Any, parameters: Parameters) -> Rows:
    tables = _state_rows(answer.successful_states, parameters, answer)
    return *tables, [r.FailedRow(user=user) for user in answer.failed_wallets or ()]


def _state_rows(pairs: Iterable[Any], parameters: Parameters, *batch: Any) -> tuple[Pairs, Pairs]:
    """Return the rows of accounts and of positions; `pairs` are accounts and states."""
    states = []
    for user, by_dex in pairs:
        if isinstance(by_dex, dict):
            states += [(user, dex, state or _NO_STATE) for dex, state in by_dex.items()]
        else:
            state = by_dex or _NO_STATE
            # The coins name the dex, where the request is not known.
            coins = (held.position.coin for held in state.asset_positions or () if held is not None)
            dex = parameters.get("dex") or coin_dex(next(coins, ""))
            states.append((user, dex_name_in("states", dex), state))
    accounts = (
        _row(r.AccountRow, state, *batch, user=user, dex=dex, margin_summary=_summary(state))
        for user, dex, state in states
    )
    positions = (
        _row(r.PositionRow, held, user=user, dex=dex, time=state.time)
        for user, dex, state in states
        for held in state.asset_positions or ()
    )
    return accounts, positions


def _summary(state: Any) -> Any:
    summary = state.margin_summary
    if state.withdrawable is not None:  # docs/live_service.md, section 1: today it is there
        summary = summary or _NO_SUMMARY
        if summary.withdrawable is None:
            summary = msgspec.structs.replace(summary, withdrawable=state.withdrawable)
    return summary


_NO_STATE, _NO_SPOT_STATE, _NO_SUMMARY = (
    _row(record)[0] for record in (r.ClearinghouseState, r.SpotContext, r.MarginSummary)
)


def _portfolio_state_rows(answer: Any, parameters: Parameters) -> Rows:
    user, spot = parameters.get("user"), answer.spot_clearinghouse_state
    mode = iter([_row(r.ModeRow, answer, user=user)])
    states = _state_rows([(user, answer.clearinghouse_state)], parameters)
    return mode, *states, spot and _balance_rows(spot, parameters)


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
            yield _row(r.PredictedFundingRow, next, coin=coin, venue=venue)


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
        return None, None, None
    return [answer], _portfolio_rows(answer.portfolio or (), parameters), answer.followers


ROWS: Final[dict[str, Callable[[Any, Parameters], Pairs | Rows]]] = {
    "currentDepth": _depth_rows,
    "meta": lambda answer, _: (_row(r.MetaRow, asset, answer) for asset in answer.universe),
    "marginTables": _margin_table_rows,
    "metaAndAssetCtxs": _context_rows,
    "perpDexLimits": _limit_rows,
    "batchClearinghouseStates": _batch_state_rows,
    "borrowLendUserState": lambda answer, _: (
        [answer],
        [r.TokenRow(token_index=at, state=state) for at, state in answer.token_to_state or ()],
    ),
    "clearinghouseState": lambda answer, parameters: _state_rows(
        [(parameters.get("user"), answer)], parameters
    ),
    "portfolioState": _portfolio_state_rows,
    "spotMeta": lambda answer, _: (answer.universe, answer.tokens),
    "spotMetaAndAssetCtxs": _spot_context_rows,
    "perpDexs": lambda answer, _: ([dex for dex in answer if dex is not None],),
    "allMids": lambda answer, _: ([r.MidRow(coin=coin, mid_px=px) for coin, px in answer.items()],),
    "predictedFundings": _predicted_rows,
    "l2Book": _book_rows,
    "outcomeMeta": lambda answer, _: (answer.outcomes, answer.questions),
    "orderStatus": lambda answer, _: iter([(answer.order, (answer,))] if answer.order else []),
    "spotClearinghouseState": _balance_rows,
    "vaultDetails": _vault_rows,
    "subAccounts": _sub_account_rows,
    "portfolio": _portfolio_rows,
}
"""Type of operation, or name of a view -> what makes the rows of its tables, or of its only one."""


def nest_slices(answer: Any) -> Any:
    """Return an answer of `userTwapSliceFills` with the usual form of its rows."""
    rows = answer if isinstance(answer, list) else []
    flat = [row for row in rows if isinstance(row, dict) and "fill" not in row]
    nested = {id(row): {"fill": row, "twapId": row.get("twapId")} for row in flat}
    return [nested.get(id(row), row) for row in rows] if flat else answer
