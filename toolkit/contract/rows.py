"""Rows of nested answers.

Most operations answer with a list of records, which are the rows. Every other operation has a
function here that makes the rows of its answer.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec

from toolkit.contract.dexes import coin_dex, dex_name_in
from toolkit.contract.records import (
    AccountRow,
    BatchStates,
    BookLevelRow,
    BorrowLendAccount,
    ClearinghouseState,
    CoinCapRow,
    ContextRow,
    DepthRow,
    DexCaps,
    FailedRow,
    MarginSummary,
    MarginTierRow,
    MetaRow,
    MidRow,
    PerpAsset,
    PortfolioRow,
    PositionRow,
    SpotContext,
    SpotMarketRow,
    SubAccountRow,
    TokenRow,
)
from toolkit.errors import AnswerInvalid

Rows = tuple[Sequence[Any], ...]


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


def _depth_rows(answer: Any, _: Mapping[str, Any]) -> Rows:
    return (
        ComposedRows(
            (
                DepthRow(
                    timestamp_ms=answer.timestamp_ms,
                    coin=market.coin,
                    dex=market.dex,
                    bps=level.bps,
                    bid_depth_usd=level.bid_depth_usd,
                    ask_depth_usd=level.ask_depth_usd,
                ),
                (level, market, answer),
            )
            for market in answer.data
            for level in market.levels or ()
        ),
    )


def _meta_rows(answer: Any, _: Mapping[str, Any]) -> Rows:
    return (
        ComposedRows((_perpetual_row(answer, asset), (asset, answer)) for asset in answer.universe),
    )


def _perpetual_row(meta: Any, asset: Any) -> MetaRow:
    """Return the row of a perpetual, with the fields that its answer has once for the dex."""
    fields = {name: getattr(asset, name) for name in PerpAsset.__struct_fields__}
    for name in ("deployer_fee_scale", "last_fee_scale_change_time"):
        if fields[name] is None:
            fields[name] = getattr(meta, name)
    return MetaRow(collateral_token=meta.collateral_token, **fields)


def _margin_table_rows(answer: Any, _: Mapping[str, Any]) -> Rows:
    return (
        ComposedRows(
            (
                MarginTierRow(
                    margin_table_id=number,
                    description=table.description,
                    tier=at,
                    lower_bound=tier.lower_bound,
                    max_leverage=tier.max_leverage,
                ),
                (tier, table, answer),
            )
            for number, table in answer.margin_tables or ()
            if table is not None
            for at, tier in enumerate(table.margin_tiers or ())
        ),
    )


def _context_rows(answer: Any, _: Mapping[str, Any]) -> Rows:
    meta, contexts = answer[0], answer[1] or []
    if len(meta.universe) != len(contexts):
        raise AnswerInvalid(
            f"the answer has {len(meta.universe)} assets, but {len(contexts)} market states. They "
            "are joined by position, so the counts must be equal. Repeat the call. If it fails "
            "again, report this to the service"
        )
    pairs = zip(meta.universe, contexts, strict=True)
    return (
        ComposedRows(
            (
                ContextRow(
                    asset=_perpetual_row(meta, asset),
                    context=context,
                    collateral_token=meta.collateral_token,
                ),
                (asset, meta),
            )
            for asset, context in pairs
        ),
    )


def _limit_rows(answer: Any, _: Mapping[str, Any]) -> Rows:
    if answer is None:
        return [], []
    caps = DexCaps(
        total_oi_cap=answer.total_oi_cap,
        oi_sz_cap_per_perp=answer.oi_sz_cap_per_perp,
        max_transfer_ntl=answer.max_transfer_ntl,
    )
    coins = [CoinCapRow(coin=coin, oi_cap=cap) for coin, cap in answer.coin_to_oi_cap or ()]
    return ComposedRows([(caps, (answer,))]), coins


def _batch_state_rows(answer: Any, parameters: Mapping[str, Any]) -> Rows:
    states = list(_states_by_dex(answer, parameters))
    accounts = ComposedRows(
        (_account_row(user, dex, state), (state, answer)) for user, dex, state in states
    )
    positions = ComposedRows(
        (
            PositionRow(
                user=user,
                dex=dex,
                type=asset_position.type,
                position=asset_position.position,
                time=state.time,
            ),
            (asset_position,),
        )
        for user, dex, state in states
        for asset_position in state.asset_positions or ()
    )
    return accounts, positions, [FailedRow(user=user) for user in answer.failed_wallets or ()]


def _states_by_dex(answer: Any, parameters: Mapping[str, Any]) -> Iterator[tuple[str, str, Any]]:
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


def _account_row(user: str, dex: str, state: Any) -> AccountRow:
    summary = state.margin_summary
    if state.withdrawable is not None:  # docs/live_service.md, section 1: today it is there
        if summary is None:
            summary = _NO_SUMMARY
        if summary.withdrawable is None:
            summary = msgspec.structs.replace(summary, withdrawable=state.withdrawable)
    return AccountRow(
        user=user,
        dex=dex,
        margin_summary=summary,
        cross_margin_summary=state.cross_margin_summary,
        time=state.time,
        cross_maintenance_margin_used=state.cross_maintenance_margin_used,
    )


# A lax reader puts None into any field.
_NULL: Final[Any] = None
_NO_STATE: Final = ClearinghouseState(**dict.fromkeys(ClearinghouseState.__struct_fields__, _NULL))
_NO_SPOT_STATE: Final = SpotContext(**dict.fromkeys(SpotContext.__struct_fields__, _NULL))
_NO_SUMMARY: Final = MarginSummary(**dict.fromkeys(MarginSummary.__struct_fields__, _NULL))


def _borrow_lend_rows(answer: Any, _: Mapping[str, Any]) -> Rows:
    account = BorrowLendAccount(health=answer.health, health_factor=answer.health_factor)
    tokens = [
        TokenRow(token_index=index, state=state) for index, state in answer.token_to_state or ()
    ]
    return ComposedRows([(account, (answer,))]), tokens


def _state_rows(answer: Any, parameters: Mapping[str, Any]) -> Rows:
    user = parameters.get("user")
    states: Any = [(user, answer)]
    batch = BatchStates(successful_states=states, failed_wallets=[])
    accounts, positions, _ = _batch_state_rows(batch, parameters)
    return accounts, positions


def _spot_meta_rows(answer: Any, _: Mapping[str, Any]) -> Rows:
    return answer.universe, answer.tokens


def _spot_context_rows(answer: Any, _: Mapping[str, Any]) -> Rows:
    meta, contexts = answer
    # Joined by name. A state without a market does not count.
    states = {context.coin: context for context in contexts or () if context is not None}
    markets = [
        SpotMarketRow(pair=pair, context=states.get(pair.name, _NO_SPOT_STATE))
        for pair in meta.universe or ()
    ]
    return markets, meta.tokens


def _dex_rows(answer: Any, _: Mapping[str, Any]) -> Rows:
    return ([dex for dex in answer if dex is not None],)


def _mid_rows(answer: Any, _: Mapping[str, Any]) -> Rows:
    return ([MidRow(coin=coin, mid_px=mid_px) for coin, mid_px in answer.items()],)


def _book_rows(answer: Any, _: Mapping[str, Any]) -> Rows:
    sides = () if answer is None else zip("BA", answer.levels or (), strict=False)
    return (
        ComposedRows(
            (
                BookLevelRow(
                    coin=answer.coin,
                    time=answer.time,
                    side=side,
                    level=place,
                    px=level.px,
                    sz=level.sz,
                    orders=level.orders,
                ),
                (level, answer),
            )
            for side, levels in sides
            for place, level in enumerate(levels or (), 1)
        ),
    )


def _balance_rows(answer: Any, _: Mapping[str, Any]) -> Rows:
    return (ComposedRows((balance, (answer,)) for balance in answer.balances or ()),)


def _sub_account_rows(answer: Any, _: Mapping[str, Any]) -> Rows:
    return (
        ComposedRows(
            (
                SubAccountRow(
                    name=account.name,
                    sub_account_user=account.sub_account_user,
                    master=account.master,
                    account_value=_native_value(account),
                    spot_usdc=_usdc_balance(account.spot_state),
                ),
                (account,),
            )
            for account in answer or ()
        ),
    )


def _native_value(account: Any) -> Any:
    """Return the value of a sub-account on the native dex."""
    by_dex = dict(account.dex_to_clearinghouse_state or ())
    state = account.clearinghouse_state or by_dex.get("")
    summary = state and state.margin_summary
    return summary and summary.account_value


def _usdc_balance(state: Any) -> Any:
    balances = (state and state.balances) or ()
    usdc = (balance.total for balance in balances if balance.coin == "USDC")
    return next(usdc, None if state is None else "0.0")


def _order_rows(answer: Any, _: Mapping[str, Any]) -> Rows:
    return (ComposedRows([] if answer.order is None else [(answer.order, (answer,))]),)


def _outcome_rows(answer: Any, _: Mapping[str, Any]) -> Rows:
    return answer.outcomes, answer.questions


def _portfolio_rows(answer: Any, _: Mapping[str, Any]) -> Rows:
    rows = []
    for period, history in answer:
        if history is None:
            continue
        pnl_at = dict(history.pnl_history or ())
        for time, value in history.account_value_history or ():
            pnl = pnl_at.get(time)
            row = PortfolioRow(
                period=period, time=time, account_value=value, pnl=pnl, vlm=history.vlm
            )
            rows.append((row, (history,)))
    return (ComposedRows(rows),)


_RowFunction = Callable[[Any, Mapping[str, Any]], tuple[Sequence[Any] | None, ...]]

ROW_FUNCTIONS: Final[dict[str, _RowFunction]] = {
    "currentDepth": _depth_rows,
    "meta": _meta_rows,
    "marginTables": _margin_table_rows,
    "metaAndAssetCtxs": _context_rows,
    "perpDexLimits": _limit_rows,
    "batchClearinghouseStates": _batch_state_rows,
    "borrowLendUserState": _borrow_lend_rows,
    "clearinghouseState": _state_rows,
    "spotMeta": _spot_meta_rows,
    "spotMetaAndAssetCtxs": _spot_context_rows,
    "perpDexs": _dex_rows,
    "allMids": _mid_rows,
    "l2Book": _book_rows,
    "spotClearinghouseState": _balance_rows,
    "subAccounts": _sub_account_rows,
    "orderStatus": _order_rows,
    "outcomeMeta": _outcome_rows,
    "portfolio": _portfolio_rows,
}
"""Type of operation, or name of a view -> what makes the rows of its tables."""
