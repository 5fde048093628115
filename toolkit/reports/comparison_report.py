"""The comparison report: several accounts side by side.

The notebook ``notebooks/comparison.py`` has the prose, and calls these functions.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import pandas as pd

from toolkit import performance, plots
from toolkit.client import Session
from toolkit.display import count_text
from toolkit.errors import ReportFailed
from toolkit.fetch.account import Account
from toolkit.plots import formats
from toolkit.reports import blocks, tables
from toolkit.reports.blocks import BlockList, TitleBlock
from toolkit.reports.example import example_account
from toolkit.reports.report_frames import fetch_account, join_reasons
from toolkit.reports.sentences import Headline, Paragraph, Sentence, headline, sentence
from toolkit.reports.tables import TextColumn, TextTable, table
from toolkit.reports.wallet_performance import WalletPerformance
from toolkit.reports.wallet_report import WalletResults
from toolkit.times import Time

_MOST: Final = 50
_DRAWN: Final = 6
_RATE: Final = 0.05  # false discovery rate
_EXAMPLES: Final = 5

SENTENCES: Final = {
    "trading": "{traders:count} of the {n:count} accounts traded: {volume:dollars} USD in "
    "{fills:count fill}.",
    "all_traded": "All {n:count account} traded: {volume:dollars} USD in {fills:count fill}.",
    "gain": "Accounts whose value gained: {winners:count} of {known:count}. The highest gain is "
    "{best_gain:signed} USD, of {best}; the lowest is {worst_gain:signed} USD, of {worst}.",
    "gain_unknown": "The gain of {unknown:count account} is not known: {reason}.",
    "incomplete": "Data of {some:count account} are missing or incomplete. Of {user}: {what}.",
    "returns_unknown": "The return of no account is known.",
    "returns": "Returns are known of {known:count account}, from {lowest:rate} to {highest:rate}.",
    "short": "{short:count account has|accounts have} too few whole days for an interval of the "
    "Sharpe ratio: it is not known whose ratio is the highest.",
    "overlap_some": "Among the {n:count account} with such an interval, that of {first} overlaps "
    "{overlaps:count other|others}.",
    "overlap": "The interval of the Sharpe ratio of {first}, the highest, overlaps those of "
    "{overlaps:count} of {others:count other account}: it does not differ clearly from these.",
    "no_overlap": "The interval of the Sharpe ratio of {first}, the highest, overlaps that of no "
    "other account.",
    "discoveries": "Of {n:count account} with enough days, {found:count} gained more than luck "
    "explains, at a false discovery rate of {rate:share}. The test does not look for losses.",
    "no_discoveries": "Of {n:count account} with enough days, none gained more than luck explains, "
    "at a false discovery rate of {rate:share}. The test does not look for losses.",
}
HEADLINES: Final = {
    "accounts": ("accounts", "{n:count}", "{traders:count} with fills"),
    "volume": ("volume", "{volume:dollars} USD", "{fills:count fill}"),
    "gain": ("gain of all", "{gain:signed} USD", "change of value, without deposits"),
    "net": ("net PnL", "{net:signed} USD", "after fees and funding, without open positions"),
}


def _fine_share(value: float) -> str:
    """Return a share with two decimals: returns of large accounts are small."""
    return formats.true_minus(f"{100 * value:.2f} %")


_COLUMNS: Final = (
    TextColumn("user", "account", formats.short_address, number=False),
    TextColumn("fills", "fills", formats.whole_number),
    TextColumn("volume", "volume, USD", formats.whole_dollars),
    TextColumn("closed_pnl", "closed PnL", tables.signed_usd),
    TextColumn("fees", "fees", tables.signed_usd),
    TextColumn("funding", "funding", tables.signed_usd),
    TextColumn("net", "net", tables.signed_usd),
    TextColumn("gain", "gain of value", tables.signed_usd),
    TextColumn("total_return", "return", _fine_share),
    TextColumn("max_drawdown", "deepest drawdown", _fine_share),
    TextColumn("sharpe", "Sharpe ratio", lambda value: formats.true_minus(f"{value:,.2f}")),
    TextColumn("trips", "round trips", formats.whole_number),
    TextColumn("win_rate", "with a gain", formats.percent_share),
)
_FIGURES: Final = ("total_return", "max_drawdown", "sharpe", "win_rate")


@dataclass(frozen=True)
class Comparison:
    """The results of a comparison report; each is computed once.

    - ``wallets``: the performance of each account, in the order of the request
    """

    wallets: Sequence[WalletPerformance]

    @cached_property
    def rows(self) -> pd.DataFrame:
        """One row for each account, the highest gain first; unknown values are missing."""
        rows = [_account_row(wallet) for wallet in self.wallets]
        return pd.DataFrame(rows).sort_values(
            ["gain", "user"], ascending=[False, True], ignore_index=True
        )

    @cached_property
    def returns(self) -> pd.DataFrame:
        """The returns by day of the accounts whose returns are known."""
        return self._join_known("returns")

    @cached_property
    def leaderboard(self) -> pd.DataFrame:
        """The accounts by their Sharpe ratio; empty without one."""
        figures = self._join_known("figures")
        if figures.empty or figures.loc[figures["figure"] == "sharpe", "value"].isna().all():
            return pd.DataFrame()
        ranked: pd.DataFrame = performance.leaderboard(figures)
        return ranked

    def _join_known(self, name: str) -> pd.DataFrame:
        """Return a frame of the accounts whose returns are known, with the first provenance."""
        parts = [
            getattr(wallet, name).assign(user=wallet.results.account.address)
            for wallet in self.wallets
            if len(wallet.returns)
        ]
        joined = pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()
        joined.attrs = parts[0].attrs if parts else {}
        return joined

    @cached_property
    def skill(self) -> Any:
        """The separation of skill and luck; None if no account has enough days."""
        if self.returns.empty:
            return None
        found = performance.skill(self.returns)
        return found if found.n else None


def _account_row(wallet: WalletPerformance) -> dict[str, Any]:
    results = wallet.results
    total, figures = results.total, wallet.figures
    values = dict(zip(figures["figure"], figures["value"], strict=True)) if len(figures) else {}
    is_known, is_paid = not results.fills_without_amounts, results.funding is not None
    return {
        "user": results.account.address,
        "fills": int(total["fills"]),
        "volume": float(total["volume"]),
        "closed_pnl": float(total["closed_pnl"]) if is_known else float("nan"),
        "fees": float(results.fees) if is_known else float("nan"),
        "funding": float(total["funding"]) if is_paid else float("nan"),
        "net": float(total["net"]) if is_known and is_paid else float("nan"),
        "gain": float(wallet.returns["gain"].sum()) if len(wallet.returns) else float("nan"),
        "trips": len(wallet.trips),
        **{name: values.get(name, float("nan")) for name in _FIGURES},
    }


def fetch_comparison(
    session: Session,
    users: Sequence[str] | None,
    start: Time = 0,
    end: Time | None = None,
) -> Comparison:
    """Fetch the frames of several accounts, and return the results of their comparison.

    Raise ReportFailed if there are fewer than two accounts or more than 50, or if no account has
    data.
    """
    named = users if users is not None else _example_accounts(session)
    chosen = list(dict.fromkeys(user.lower() for user in named))
    if not 2 <= len(chosen) <= _MOST:
        passed = count_text(len(chosen), "was passed", "were passed")
        raise ReportFailed(f"a comparison needs 2 to {_MOST} accounts; {passed}")
    accounts = [fetch_account(session, user, start, end, with_all=False) for user in chosen]
    if all(account.is_empty for account in accounts):
        raise ReportFailed("there is no data of these accounts in this period: check the addresses")
    return compare(accounts)


def compare(accounts: Sequence[Account]) -> Comparison:
    """Return the results of the comparison of accounts; the fills of all give prices to each."""
    prices = [each.fills[["coin", "time", "px"]] for each in accounts if len(each.fills)]
    marks = pd.concat(prices, ignore_index=True) if prices else None
    return Comparison([WalletPerformance(WalletResults(each), marks) for each in accounts])


def _example_accounts(session: Session) -> list[str]:
    """Return the example account and further accounts of a simulated exchange."""
    first = example_account(session)
    return [first, *(user for user in (session.world or {})["users"] if user != first)][:_EXAMPLES]


def make_title(comparison: Comparison) -> TitleBlock:
    """Return the title of the report."""
    accounts = [wallet.results.account for wallet in comparison.wallets]
    times = (account.fills["time"] for account in accounts)
    first = accounts[0]
    period = tables.period_text(first.start_ms, first.end_ms, *times)
    return blocks.title(
        "Comparison",
        f"{len(accounts)} accounts",
        f"{period} · {first.session.label}",
        simulated=first.session.simulated,
    )


def list_headlines(comparison: Comparison) -> list[Headline]:
    """Return the headline numbers."""
    rows = comparison.rows
    fills, volume = int(rows["fills"].sum()), float(rows["volume"].sum())
    traders = int((rows["fills"] > 0).sum())
    gain, net = (float(rows[name].sum(skipna=False)) for name in ("gain", "net"))
    return [
        headline(HEADLINES, "accounts", n=len(rows), traders=traders),
        headline(HEADLINES, "volume", volume=volume, fills=fills),
        headline(HEADLINES, "gain", gain=gain),
        headline(HEADLINES, "net", net=net),
    ]


def list_sentences(comparison: Comparison) -> list[Sentence | Headline]:
    """Return everything that the report says."""
    return [
        *list_summary(comparison),
        *list_headlines(comparison),
        *list_rank_sentences(comparison),
    ]


def list_summary(comparison: Comparison) -> list[Sentence]:
    """Return the sentences of the summary."""
    rows, sentences = comparison.rows, []

    def add(name: str, **values: Any) -> None:
        sentences.append(sentence(SENTENCES, name, **values))

    traders, volume = int((rows["fills"] > 0).sum()), float(rows["volume"].sum())
    values = {"n": len(rows), "volume": volume, "fills": int(rows["fills"].sum())}
    if traders == len(rows):
        add("all_traded", **values)
    else:
        add("trading", traders=traders, **values)
    known = rows[rows["gain"].notna()]
    if len(known):
        best, worst = known.iloc[0], known.iloc[-1]
        add(
            "gain",
            winners=int((known["gain"] > 0).sum()),
            known=len(known),
            best=formats.short_address(best["user"]),
            best_gain=best["gain"],
            worst=formats.short_address(worst["user"]),
            worst_gain=worst["gain"],
        )
    if len(known) < len(rows):
        reasons = pd.Series(
            [wallet.reason for wallet in comparison.wallets if wallet.returns.empty]
        )
        add("gain_unknown", unknown=len(rows) - len(known), reason=reasons.mode().iloc[0])
    returns = rows["total_return"].dropna()
    if returns.empty:
        add("returns_unknown")
    else:
        add("returns", known=len(returns), lowest=returns.min(), highest=returns.max())
    accounts = [wallet.results.account for wallet in comparison.wallets]
    if lacking := [account for account in accounts if account.missing]:
        first = lacking[0]
        user, what = formats.short_address(first.address), join_reasons(first.missing)
        add("incomplete", some=len(lacking), user=user, what=what)
    return sentences


def summarize_comparison(comparison: Comparison) -> Paragraph:
    """Return a few sentences about what the accounts did."""
    return Paragraph(list_summary(comparison))


def list_rank_sentences(comparison: Comparison) -> list[Sentence]:
    """Return the sentences about the ranking."""
    sentences = []
    board = comparison.leaderboard
    ranked = board[board["overlaps"].notna()] if len(board) else board
    if short := len(board) - len(ranked):
        sentences.append(sentence(SENTENCES, "short", short=short))
    if len(ranked) > 1:
        first, overlaps = formats.short_address(ranked["user"].iloc[0]), ranked["overlaps"].iloc[0]
        counts = {"overlaps": int(overlaps), "others": len(ranked) - 1}
        if short:
            counts = {"overlaps": int(overlaps), "n": len(ranked)}
            sentences.append(sentence(SENTENCES, "overlap_some", first=first, **counts))
        elif overlaps:
            sentences.append(sentence(SENTENCES, "overlap", first=first, **counts))
        else:
            sentences.append(sentence(SENTENCES, "no_overlap", first=first))
    if comparison.skill is not None:
        rates = comparison.skill.accounts["q"].dropna()
        found, values = int((rates <= _RATE).sum()), {"n": len(rates), "rate": _RATE}
        if found:
            sentences.append(sentence(SENTENCES, "discoveries", found=found, **values))
        else:
            sentences.append(sentence(SENTENCES, "no_discoveries", **values))
    return sentences


def describe_ranks(comparison: Comparison) -> Paragraph:
    """Return a few sentences about whether the accounts differ clearly."""
    return Paragraph(list_rank_sentences(comparison))


def make_account_table(comparison: Comparison) -> TextTable:
    """Return one row for each account."""
    caption = "The accounts, the highest gain of value first, in USD. A dash: not known."
    return table(caption, comparison.rows, _COLUMNS)


def list_addresses(comparison: Comparison) -> TextTable:
    """Return the full addresses."""
    columns = (
        TextColumn("place", "row", formats.whole_number, number=False),
        TextColumn("user", "address", tables.plain_text, number=False),
    )
    rows = comparison.rows.assign(place=range(1, len(comparison.rows) + 1))
    return table("The addresses in the same order.", rows, columns)


def draw_growth(comparison: Comparison) -> BlockList:
    """Return the curves of the accounts with the largest volume; none without returns."""
    rows = comparison.returns
    if rows.empty:
        return BlockList([])
    volume = comparison.rows.set_index("user")["volume"].sort_values(ascending=False)
    drawn = [user for user in volume.index if user in set(rows["user"])][:_DRAWN]
    caption = f"Time-weighted return of the {len(drawn)} accounts with the largest volume."
    shown = rows[rows["user"].isin(drawn)].reset_index(drop=True)
    return BlockList([blocks.figure(plots.growth_curve, shown, caption=caption)])


def draw_ranks(comparison: Comparison) -> BlockList:
    """Return the ranking by Sharpe ratio, and skill after shrinkage; none if they are not known."""
    drawn = []
    if len(comparison.leaderboard):
        caption = (
            "Sharpe ratio per year with an interval of 95 %. The grey band is the interval of the "
            "first account."
        )
        drawn.append(blocks.figure(plots.leaderboard, comparison.leaderboard, caption=caption))
    if comparison.skill is not None:
        caption = (
            "The same ratios after shrinkage towards the mean of all accounts. The grey band is "
            "the interval of this mean."
        )
        drawn.append(blocks.figure(plots.skill, comparison.skill, caption=caption))
    return BlockList(drawn)


def source_frames(comparison: Comparison) -> dict[str, pd.DataFrame | None]:
    """Return the fetched frames by name, for the provenance."""
    found: dict[str, pd.DataFrame | None] = {}
    for number, wallet in enumerate(comparison.wallets, 1):
        account = wallet.results.account
        for name in ("fills", "ledger", "funding"):
            found[f"{name} {number}"] = getattr(account, name)
    return found
