"""HTML of the wallet explorer of several accounts."""

from typing import Any, Final

import numpy as np
import pandas as pd

from toolkit import plots
from toolkit.display import count_text
from toolkit.plots import formats
from toolkit.widgets import view_html
from toolkit.widgets.comparison_view import ComparisonView
from toolkit.widgets.svg import draw_svg
from toolkit.widgets.view_html import HtmlColumn, signed_share, signed_usd
from toolkit.widgets.wallet_html import MONEY_COLUMNS
from toolkit.widgets.wallet_view import gain_and_return

_ACCOUNTS: Final = (
    HtmlColumn(
        "user",
        "account",
        formats.short_address,
        "the CSV and Excel files have the full address",
        False,
    ),
    *MONEY_COLUMNS,
    HtmlColumn("gain", "gain of value", signed_usd, "USD, without deposits; a dash: not known"),
    HtmlColumn("return_", "return", signed_share, "time-weighted; a dash: not known"),
    HtmlColumn("account_value", "equity now", formats.whole_dollars, "perp account values, USD"),
    HtmlColumn("positions", "positions", formats.whole_number, "open perp positions now"),
)


def comparison_html(view: ComparisonView) -> str:
    """Return a view as HTML: headline, PnL over time, the sum of all, and the table."""
    parts = [view_html.note(_headline_text(view), "tk-head")]
    for user, reason in view.failed.items():
        parts.append(view_html.problem(f"{formats.short_address(user)} is missing: {reason}"))
    missing = {user: each.account.missing for user, each in view.figures.items()}
    for user, reasons in missing.items():
        parts += [
            view_html.problem(
                f"{name} of {formats.short_address(user)}, missing or incomplete: {why}"
            )
            for name, why in reasons.items()
            if name != "states"
        ]
    figures = []
    if len(view.earned):
        coverage = f"Covered: {view.total.iloc[0]['covers']}. Net contains only what is covered."
        lines = draw_svg(plots.cumulative_pnl, view.largest)
        figures.append(f"<div>{lines}{view_html.note(_lines_text(view))}</div>")
        bars = draw_svg(plots.waterfall, view.total)
        figures.append(f"<div>{bars}{view_html.note(f'All accounts. {coverage}')}</div>")
    table = view_html.table("By account", _account_rows(view), _ACCOUNTS)
    unstated = dict.fromkeys(reasons.get("states", "") for reasons in missing.values())
    parts += [
        view_html.note(f"Positions and equity cannot be fetched: {reason}")
        for reason in filter(None, unstated)
    ]
    return (
        f'{"".join(parts)}<div class="tk-figures">{"".join(figures)}</div>'
        f'<div class="tk-side">{table}</div>'
    )


def account_options(view: ComparisonView) -> list[tuple[str, str | None]]:
    """Return the accounts to choose from with their net, in the order of the request."""
    nets = dict(zip(view.earned["user"], view.earned["net"], strict=True))
    options: list[tuple[str, str | None]] = [("all accounts", None)]
    for user in view.request.users:
        text = "missing" if user in view.failed else "no rows"
        text = signed_usd(nets[user]) if user in nets else text
        options.append((f"{formats.short_address(user)}: {text}", user))
    return options


def _headline_text(view: ComparisonView) -> str:
    earned, count = view.earned, len(view.figures)
    where = f"{count_text(count, 'account')} in {view.request.period}"
    if not len(earned):
        return f"{where}: no fills, no ledger, no funding."
    row: Any = view.total.iloc[0]
    text = (
        f"{where}: net {signed_usd(row['net'])} USD from {count_text(row['fills'], 'fill')}, "
        f"volume {formats.whole_dollars(row['volume'])} USD"
    )
    known = _account_rows(view).dropna(subset="gain").sort_values("gain", ascending=False)
    if len(known) > 1:
        best, worst = (
            f"{formats.short_address(row['user'])} with {signed_usd(row['gain'])}"
            for _, row in known.iloc[[0, -1]].iterrows()
        )
        text += f"; gain of value, best: {best}; worst: {worst}"
    if empty := count - len(earned):
        text += f"; {count_text(empty, 'account has', 'accounts have')} no rows"
    return text + "."


def _lines_text(view: ComparisonView) -> str:
    drawn = view.largest["user"].nunique()
    if drawn == len(view.earned):
        return ""
    return f"The {drawn} of {len(view.earned)} accounts with the largest volume."


def _account_rows(view: ComparisonView) -> pd.DataFrame:
    """Return the PnL of each account with its state now; accounts without rows come last."""
    others = [user for user in view.figures if user not in set(view.earned["user"])]
    rows = pd.concat([view.earned, pd.DataFrame({"user": others})], ignore_index=True)
    figures = [view.figures[user] for user in rows["user"]]
    earned = [gain_and_return(each.returns) for each in figures]
    rows[["gain", "return_"]] = np.array(earned).reshape(-1, 2)
    rows["account_value"] = [each.value for each in figures]
    states = [each.account.states for each in figures]
    counts = [None if state is None else len(state.positions) for state in states]
    rows["positions"] = pd.array(counts, dtype="Int64")
    return rows
