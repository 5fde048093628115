"""Nested answers: which type they have, and which rows they become.

Most operations answer with a list of records, which are the rows; the others stand here,
one plain function each.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec

from toolkit.contract.dexes import dex_name_in
from toolkit.contract.operations import Operation
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
    SpotMarketRow,
    TokenRow,
)
from toolkit.errors import AnswerInvalid

__all__ = ["ComposedRows", "answer_rows"]

Rows = tuple[Sequence[Any], ...]


class ComposedRows(list[Any]):
    """Rows made of parts of a nested answer.

    Attributes
    ----------
    parts : list of tuple
        For each row the records that it is made of; unknown fields are theirs. A record that
        the row itself holds is not among them.
    """

    __slots__ = ("parts",)

    def __init__(self, pairs: Iterable[tuple[Any, tuple[Any, ...]]]) -> None:
        made = list(pairs)
        super().__init__(row for row, _ in made)
        self.parts = [parts for _, parts in made]


def answer_rows(operation: Operation, answer: Any, parameters: Mapping[str, Any]) -> Rows:
    """Turn an answer into the rows of its frames, one sequence per table of the operation.

    The rows are records, or have the same attributes.
    """
    if shape := _SHAPES.get(operation.view or operation.type):
        return tuple(() if made is None else made for made in shape(answer, parameters))
    return (answer if isinstance(answer, list) else [answer],)


def _depth(answer: Any, _: Mapping[str, Any]) -> Rows:
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


def _meta(answer: Any, _: Mapping[str, Any]) -> Rows:
    return (
        ComposedRows((_perpetual(answer, asset), (asset, answer)) for asset in answer.universe),
    )


def _perpetual(meta: Any, asset: Any) -> MetaRow:
    """Join a perpetual with what its answer says once for the whole dex."""
    fields = {name: getattr(asset, name) for name in PerpAsset.__struct_fields__}
    for name in ("deployer_fee_scale", "last_fee_scale_change_time"):
        if fields[name] is None:
            fields[name] = getattr(meta, name)
    return MetaRow(collateral_token=meta.collateral_token, **fields)


def _margin_tables(answer: Any, _: Mapping[str, Any]) -> Rows:
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


def _contexts(answer: Any, _: Mapping[str, Any]) -> Rows:
    meta, contexts = answer[0], answer[1] or []
    if len(meta.universe) != len(contexts):
        raise AnswerInvalid(
            f"{len(meta.universe)} assets, but the state of {len(contexts)}: they are joined by "
            "position and must be as many",
            operation="metaAndAssetCtxs",
        )
    pairs = zip(meta.universe, contexts, strict=True)
    return (
        ComposedRows(
            (
                ContextRow(
                    asset=_perpetual(meta, asset),
                    context=context,
                    collateral_token=meta.collateral_token,
                ),
                (asset, meta),
            )
            for asset, context in pairs
        ),
    )


def _limits(answer: Any, _: Mapping[str, Any]) -> Rows:
    if answer is None:
        return [], []
    caps = DexCaps(
        total_oi_cap=answer.total_oi_cap,
        oi_sz_cap_per_perp=answer.oi_sz_cap_per_perp,
        max_transfer_ntl=answer.max_transfer_ntl,
    )
    coins = [CoinCapRow(coin=coin, oi_cap=cap) for coin, cap in answer.coin_to_oi_cap or ()]
    return ComposedRows([(caps, (answer,))]), coins


def _states(answer: Any, parameters: Mapping[str, Any]) -> Rows:
    states = list(_by_dex(answer, parameters))
    accounts = ComposedRows((_account(user, dex, state), (state,)) for user, dex, state in states)
    positions = ComposedRows(
        (
            PositionRow(user=user, dex=dex, type=one.type, position=one.position, time=state.time),
            (one,),
        )
        for user, dex, state in states
        for one in state.asset_positions or ()
    )
    return accounts, positions, [FailedRow(user=user) for user in answer.failed_wallets or ()]


def _by_dex(answer: Any, parameters: Mapping[str, Any]) -> Iterator[tuple[str, str, Any]]:
    asked = dex_name_in("states", parameters.get("dex") or "")
    for user, state in answer.successful_states:
        if isinstance(state, dict):
            for dex, one in state.items():
                yield user, dex, _NO_STATE if one is None else one
        else:
            yield user, asked, _NO_STATE if state is None else state


def _account(user: str, dex: str, state: Any) -> AccountRow:
    summary = state.margin_summary
    if state.withdrawable is not None:  # docs/live_service.md, section 1: it stands there today
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


_NO_STATE: Final = ClearinghouseState(**dict.fromkeys(ClearinghouseState.__struct_fields__, None))  # type: ignore[arg-type]
_NO_SUMMARY: Final = MarginSummary(**dict.fromkeys(MarginSummary.__struct_fields__, None))  # type: ignore[arg-type]


def _borrow_lend(answer: Any, _: Mapping[str, Any]) -> Rows:
    account = BorrowLendAccount(health=answer.health, health_factor=answer.health_factor)
    tokens = [
        TokenRow(token_index=index, state=state) for index, state in answer.token_to_state or ()
    ]
    return ComposedRows([(account, (answer,))]), tokens


def _state(answer: Any, parameters: Mapping[str, Any]) -> Rows:
    user = parameters.get("user")
    batch = BatchStates(successful_states=[(user, answer)], failed_wallets=[])  # type: ignore[list-item]
    accounts, positions, _ = _states(batch, parameters)
    return accounts, positions


def _spot_meta(answer: Any, _: Mapping[str, Any]) -> Rows:
    return answer.universe, answer.tokens


def _spot_contexts(answer: Any, _: Mapping[str, Any]) -> Rows:
    meta, contexts = answer
    # A market without a state, or a state without a market, does not count: joined by name.
    pairs = {pair.name: pair for pair in meta.universe or ()}
    markets = [
        SpotMarketRow(pair=pairs[context.coin], context=context)
        for context in contexts or ()
        if context.coin in pairs
    ]
    return markets, meta.tokens


def _dexes(answer: Any, _: Mapping[str, Any]) -> Rows:
    return ([dex for dex in answer if dex is not None],)


def _mids(answer: Any, _: Mapping[str, Any]) -> Rows:
    return ([MidRow(coin=coin, mid_px=mid_px) for coin, mid_px in answer.items()],)


def _book(answer: Any, _: Mapping[str, Any]) -> Rows:
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
                (level,),
            )
            for side, levels in sides
            for place, level in enumerate(levels or (), 1)
        ),
    )


def _balances(answer: Any, _: Mapping[str, Any]) -> Rows:
    return (answer.balances,)


def _sub_accounts(answer: Any, _: Mapping[str, Any]) -> Rows:
    return (answer or [],)


def _order(answer: Any, _: Mapping[str, Any]) -> Rows:
    return ([] if answer.order is None else [answer.order],)


def _outcomes(answer: Any, _: Mapping[str, Any]) -> Rows:
    return answer.outcomes, answer.questions


def _portfolio(answer: Any, _: Mapping[str, Any]) -> Rows:
    rows = []
    for period, history in answer:
        if history is None:
            continue
        pnl_at = dict(history.pnl_history or ())
        for time, value in history.account_value_history or ():
            pnl = pnl_at.get(time)
            rows.append(
                PortfolioRow(
                    period=period, time=time, account_value=value, pnl=pnl, vlm=history.vlm
                )
            )
    return (rows,)


_Shape = Callable[[Any, Mapping[str, Any]], tuple[Sequence[Any] | None, ...]]

_SHAPES: Final[dict[str, _Shape]] = {
    "currentDepth": _depth,
    "meta": _meta,
    "marginTables": _margin_tables,
    "metaAndAssetCtxs": _contexts,
    "perpDexLimits": _limits,
    "batchClearinghouseStates": _states,
    "borrowLendUserState": _borrow_lend,
    "clearinghouseState": _state,
    "spotMeta": _spot_meta,
    "spotMetaAndAssetCtxs": _spot_contexts,
    "perpDexs": _dexes,
    "allMids": _mids,
    "l2Book": _book,
    "spotClearinghouseState": _balances,
    "subAccounts": _sub_accounts,
    "orderStatus": _order,
    "outcomeMeta": _outcomes,
    "portfolio": _portfolio,
}
