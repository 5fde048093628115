"""A research toolkit for an exchange's data query service: typed, complete DataFrames.

>>> import toolkit as tk
>>> session = tk.local(seed=7, size="tiny")     # the whole service in this process, simulated
>>> user = session.world["users"][0]
>>> fills = tk.user_fills_by_time(user, "30d")
>>> tk.provenance(fills)["complete"]
'yes'

Every operation of the service is a function here, its type in snake case. ``tk.describe()``
lists them. ``tk.connect(base_url, api_key)`` asks a live service instead.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from toolkit import archive, example, plots, reports, widgets
    from toolkit.analysis import (
        accounts,
        auctions,
        builders,
        depth,
        execution,
        funding,
        ledger,
        liquidations,
        orders,
        pnl,
        slippage,
        staking,
        twaps,
    )
    from toolkit.client import Session, connect
    from toolkit.errors import (
        AnswerDamaged,
        AnswerInvalid,
        ArchiveError,
        BadRequest,
        BudgetSpent,
        HistoryWarning,
        Incomplete,
        InvalidKey,
        MissingColumns,
        NotConnected,
        NotPermitted,
        NotReady,
        RateLimited,
        RepeatedRows,
        ReportFailed,
        ServiceDown,
        ServiceError,
        ToolkitError,
        Unreachable,
    )
    from toolkit.fetch import (
        AccountStates,
        BorrowLendState,
        DexLimits,
        account_value_snapshot_timestamp,
        account_value_snapshots,
        batch_clearinghouse_states,
        borrow_lend_user_state,
        builder_approved_fills_by_time,
        builder_approved_funding_by_time,
        builder_orders_by_time,
        current_depth,
        delegations,
        historical_orders,
        margin_tables,
        meta,
        meta_and_asset_ctxs,
        perp_deploy_auction_status,
        perp_dex_limits,
        perp_twap_snapshot_timestamp,
        perp_twap_snapshots,
        slippage_history,
        spot_pair_deploy_auction_status,
        user_fills,
        user_fills_by_time,
        user_non_funding_ledger_updates,
        validator_apr_history,
    )
    from toolkit.fetch.many import many
    from toolkit.fetch.plan import plan
    from toolkit.fetch.poll import poll
    from toolkit.fetch.uniting import concat
    from toolkit.fetch.ways import describe, info, pages, raw
    from toolkit.frames import frame, provenance
    from toolkit.local import local

    __version__: str

__all__ = [
    "AccountStates",
    "AnswerDamaged",
    "AnswerInvalid",
    "ArchiveError",
    "BadRequest",
    "BorrowLendState",
    "BudgetSpent",
    "DexLimits",
    "HistoryWarning",
    "Incomplete",
    "InvalidKey",
    "MissingColumns",
    "NotConnected",
    "NotPermitted",
    "NotReady",
    "RateLimited",
    "RepeatedRows",
    "ReportFailed",
    "ServiceDown",
    "ServiceError",
    "Session",
    "ToolkitError",
    "Unreachable",
    "account_value_snapshot_timestamp",
    "account_value_snapshots",
    "accounts",
    "archive",
    "auctions",
    "batch_clearinghouse_states",
    "borrow_lend_user_state",
    "builder_approved_fills_by_time",
    "builder_approved_funding_by_time",
    "builder_orders_by_time",
    "builders",
    "concat",
    "connect",
    "current_depth",
    "delegations",
    "depth",
    "describe",
    "example",
    "execution",
    "frame",
    "funding",
    "historical_orders",
    "info",
    "ledger",
    "liquidations",
    "local",
    "many",
    "margin_tables",
    "meta",
    "meta_and_asset_ctxs",
    "orders",
    "pages",
    "perp_deploy_auction_status",
    "perp_dex_limits",
    "perp_twap_snapshot_timestamp",
    "perp_twap_snapshots",
    "plan",
    "plots",
    "pnl",
    "poll",
    "provenance",
    "raw",
    "reports",
    "slippage",
    "slippage_history",
    "spot_pair_deploy_auction_status",
    "staking",
    "twaps",
    "user_fills",
    "user_fills_by_time",
    "user_non_funding_ledger_updates",
    "validator_apr_history",
    "widgets",
]

# Imports wait until a name is used, so that `import toolkit` costs next to nothing.
_MODULES = {
    "accounts": "toolkit.analysis.accounts",
    "archive": "toolkit.archive",
    "auctions": "toolkit.analysis.auctions",
    "builders": "toolkit.analysis.builders",
    "depth": "toolkit.analysis.depth",
    "example": "toolkit.example",
    "execution": "toolkit.analysis.execution",
    "funding": "toolkit.analysis.funding",
    "ledger": "toolkit.analysis.ledger",
    "liquidations": "toolkit.analysis.liquidations",
    "orders": "toolkit.analysis.orders",
    "plots": "toolkit.plots",
    "pnl": "toolkit.analysis.pnl",
    "reports": "toolkit.reports",
    "slippage": "toolkit.analysis.slippage",
    "staking": "toolkit.analysis.staking",
    "twaps": "toolkit.analysis.twaps",
    "widgets": "toolkit.widgets",
}
_HOMES = {
    "toolkit.client": ("Session", "connect"),
    "toolkit.errors": (
        "AnswerDamaged",
        "AnswerInvalid",
        "ArchiveError",
        "BadRequest",
        "BudgetSpent",
        "HistoryWarning",
        "Incomplete",
        "InvalidKey",
        "MissingColumns",
        "NotConnected",
        "NotPermitted",
        "NotReady",
        "RateLimited",
        "RepeatedRows",
        "ReportFailed",
        "ServiceDown",
        "ServiceError",
        "ToolkitError",
        "Unreachable",
    ),
    "toolkit.fetch.many": ("many",),
    "toolkit.fetch.plan": ("plan",),
    "toolkit.fetch.poll": ("poll",),
    "toolkit.fetch.uniting": ("concat",),
    "toolkit.fetch.ways": ("describe", "info", "pages", "raw"),
    "toolkit.frames": ("frame", "provenance"),
    "toolkit.local": ("local",),
}
_HOME = {name: home for home, names in _HOMES.items() for name in names}

if not TYPE_CHECKING:  # a type checker sees the imports above, and a misspelt name

    def __getattr__(name: str) -> Any:
        if name == "__version__":
            return importlib.import_module("importlib.metadata").version("exchange-toolkit")
        if name not in __all__:
            raise AttributeError(f"module 'toolkit' has no attribute {name!r}")
        if name in _MODULES:
            value = importlib.import_module(_MODULES[name])
        else:
            home = importlib.import_module(_HOME.get(name, "toolkit.fetch"))
            value = getattr(home, name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return list(__all__)
