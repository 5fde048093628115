"""The comparison report: several accounts side by side.

The notebook ``notebooks/comparison.py`` has the prose, and calls these functions.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, Final

import pandas as pd

from toolkit import performance, plots
from toolkit.client import Session
from toolkit.display import count_text
from toolkit.errors import ReportFailed
from toolkit.fetch.account import Account
from toolkit.plots import formats
from toolkit.plots.formats import short_address
from toolkit.plots.tables import Column, Table, table
from toolkit.reports import blocks, report_frames
from toolkit.reports.example import example_account
from toolkit.reports.sentences import Headline, Sentence, headline, paragraph, say
from toolkit.reports.wallet_performance import fine_share
from toolkit.reports.wallet_report import WalletResults
from toolkit.times import Time

_MOST: Final = 50
_DRAWN: Final = 6
_RATE: Final = 0.05  # false discovery rate
_EXAMPLES: Final = 5

_COLUMNS: Final = (
    Column("user", "account", short_address, number=False),
    Column("fills", "fills", formats.whole_number),
    Column("volume", "volume, USD", formats.whole_dollars),
    Column("closed_pnl", "closed PnL", formats.signed_cents),
    Column("fees", "fees", formats.signed_cents),
    Column("funding", "funding", formats.signed_cents),
    Column("net", "net", formats.signed_cents),
    Column("gain", "gain of value", formats.signed_cents),
    Column("total_return", "return", fine_share),
    Column("max_drawdown", "deepest drawdown", fine_share),
    Column("sharpe", "Sharpe ratio", formats.two_decimals),
    Column("trips", "round trips", formats.whole_number),
    Column("win_rate", "with a gain", formats.percent_share),
)
_FIGURES: Final = ("total_return", "max_drawdown", "sharpe", "win_rate")


@dataclass(frozen=True)
class Comparison:
    """The results of a comparison report; each is computed once.

    - ``wallets``: the results of each account, in the order of the request
    """

    wallets: Sequence[WalletResults]

    @cached_property
    def rows(self) -> pd.DataFrame:
        """One row for each account, the highest gain first; unknown values are missing."""
        rows, nan = [], float("nan")
        for wallet in self.wallets:
            total, figures, is_paid = wallet.total, wallet.figures, wallet.funding is not None
            values = figures.set_index("figure")["value"].to_dict() if len(figures) else {}
            rows.append(
                {
                    "user": wallet.account.address,
                    "fills": int(total["fills"]),
                    "volume": float(total["volume"]),
                    "closed_pnl": nan if wallet.unvalued else float(total["closed_pnl"]),
                    "fees": nan if wallet.unvalued else wallet.fees,
                    "funding": float(total["funding"]) if is_paid else nan,
                    "net": float(total["net"]) if is_paid and not wallet.unvalued else nan,
                    "gain": float(wallet.returns["gain"].sum()) if len(wallet.returns) else nan,
                    "trips": len(wallet.trips),
                    **{name: values.get(name, nan) for name in _FIGURES},
                }
            )
        made = pd.DataFrame(rows)
        return made.sort_values(["gain", "user"], ascending=[False, True], ignore_index=True)

    @cached_property
    def returns(self) -> pd.DataFrame:
        """The returns by day of the accounts whose returns are known."""
        return self._join_known("returns")

    @cached_property
    def leaderboard(self) -> pd.DataFrame:
        """The accounts by their Sharpe ratio; empty without one."""
        rows = self._join_known("figures")
        if rows.empty or rows.loc[rows["figure"] == "sharpe", "value"].isna().all():
            return pd.DataFrame()
        return performance.leaderboard(rows)

    def _join_known(self, name: str) -> pd.DataFrame:
        """Return a frame of the accounts whose returns are known, with the first provenance."""
        parts = [
            getattr(wallet, name).assign(user=wallet.account.address)
            for wallet in self.wallets
            if len(wallet.returns)
        ]
        joined = pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()
        joined.attrs = parts[0].attrs if parts else {}
        return joined

    @cached_property
    def skill(self) -> Any:
        """The separation of skill and luck; None if no account has enough days."""
        found = performance.skill(self.returns) if len(self.returns) else None
        return found if found and found.n else None

    @cached_property
    def facts(self) -> dict[str, Any]:
        """The numbers that sentences state, by the name of their place."""
        rows = self.rows
        known = rows[rows["gain"].notna()]
        ends = (known if len(known) else rows).iloc[[0, -1]]
        users, gains = ends["user"].map(short_address), ends["gain"]
        return {
            "n": len(rows),
            "traders": int((rows["fills"] > 0).sum()),
            "fills": int(rows["fills"].sum()),
            "volume": float(rows["volume"].sum()),
            "gain": float(rows["gain"].sum(skipna=False)),
            "net": float(rows["net"].sum(skipna=False)),
            "winners": int((known["gain"] > 0).sum()),
            "known": len(known),
            "unknown": len(rows) - len(known),
            **dict(zip(("best", "worst"), users, strict=True)),
            **dict(zip(("best_gain", "worst_gain"), gains, strict=True)),
            "returns": int(rows["total_return"].notna().sum()),
            "lowest": rows["total_return"].min(),
            "highest": rows["total_return"].max(),
        }


def fetch_comparison(
    session: Session, users: Sequence[str] | None, start: Time = 0, end: Time | None = None
) -> Comparison:
    """Fetch the frames of several accounts, and return the results of their comparison.

    Raise ReportFailed if there are fewer than two accounts or more than 50, or if no account has
    data.
    """
    if users is None:  # the example account and further accounts of a simulated exchange
        first = example_account(session)
        known = (session.world or {})["users"]
        users = [first, *(user for user in known if user != first)][:_EXAMPLES]
    chosen = list(dict.fromkeys(user.lower() for user in users))
    if not 2 <= len(chosen) <= _MOST:
        passed = count_text(len(chosen), "was passed", "were passed")
        raise ReportFailed(f"a comparison needs 2 to {_MOST} accounts; {passed}")
    accounts = [
        report_frames.fetch_account(session, user, start, end, with_all=False) for user in chosen
    ]
    if all(account.is_empty for account in accounts):
        raise ReportFailed("there is no data of these accounts in this period: check the addresses")
    return compare(accounts)


def compare(accounts: Sequence[Account]) -> Comparison:
    """Return the results of the comparison of accounts; the fills of all give prices to each."""
    prices = [each.fills[["coin", "time", "px"]] for each in accounts if len(each.fills)]
    marks = pd.concat(prices, ignore_index=True) if prices else None
    return Comparison([WalletResults(each, marks) for each in accounts])


def make_title(comparison: Comparison) -> blocks.Block:
    """Return the title of the report."""
    accounts = [wallet.account for wallet in comparison.wallets]
    first, times = accounts[0], [account.fills["time"] for account in accounts]
    period, subject = (first.start_ms, first.end_ms), f"{len(accounts)} accounts"
    return report_frames.make_title("Comparison", subject, first.session, period, times)


def list_headlines(comparison: Comparison) -> list[Headline]:
    """Return the headline numbers."""
    show = partial(headline, **comparison.facts)
    return [
        show("accounts", "{n:count}", "{traders:count} with fills"),
        show("volume", "{volume:dollars} USD", "{fills:count fill}"),
        show("gain of all", "{gain:signed} USD", "change of value, without deposits"),
        show("net PnL", "{net:signed} USD", "after fees and funding, without open positions"),
    ]


@paragraph
def summarize_comparison(comparison: Comparison) -> Iterator[Sentence]:
    """Return a few sentences about what the accounts did."""
    facts, tell = comparison.facts, partial(say, **comparison.facts)
    text = "{traders:count} of the {n:count} accounts traded"
    if facts["traders"] == facts["n"]:
        text = "All {n:count account} traded"
    yield tell(text + ": {volume:dollars} USD in {fills:count fill}.")
    if facts["known"]:
        yield tell(
            "Accounts whose value gained: {winners:count} of {known:count}. The highest gain is "
            "{best_gain:signed} USD, of {best}; the lowest is {worst_gain:signed} USD, of {worst}."
        )
    if facts["unknown"]:
        reasons = [wallet.reason for wallet in comparison.wallets if wallet.returns.empty]
        text = "The gain of {unknown:count account} is not known: {reason}."
        yield tell(text, reason=pd.Series(reasons).mode().iloc[0])
    if facts["returns"]:
        yield tell(
            "Returns are known of {returns:count account}, from {lowest:rate} to {highest:rate}."
        )
    else:
        yield tell("The return of no account is known.")
    accounts = [wallet.account for wallet in comparison.wallets]
    if lacking := [account for account in accounts if account.missing]:
        text = "Data of {some:count account} are missing or incomplete. Of {user}: {what}."
        user, what = short_address(lacking[0].address), lacking[0].missing
        yield tell(text, some=len(lacking), user=user, what=report_frames.join_reasons(what))


@paragraph
def describe_ranks(comparison: Comparison) -> Iterator[Sentence]:
    """Return a few sentences about whether the accounts differ clearly."""
    board = comparison.leaderboard
    ranked = board[board["overlaps"].notna()] if len(board) else board
    if short := len(board) - len(ranked):
        text = (
            "{short:count account has|accounts have} too few whole days for an interval of the "
            "Sharpe ratio: it is not known whose ratio is the highest."
        )
        yield say(text, short=short)
    if len(ranked) > 1:
        overlaps = int(ranked["overlaps"].iloc[0])
        text = "The interval of the Sharpe ratio of {first}, the highest, overlaps "
        if short:
            text = (
                "Among the {ranked:count account} with such an interval, that of {first} overlaps "
                "{overlaps:count other|others}."
            )
        elif overlaps:
            text += (
                "those of {overlaps:count} of {others:count other account}: it does not differ "
                "clearly from these."
            )
        else:
            text += "that of no other account."
        counts = {"overlaps": overlaps, "ranked": len(ranked), "others": len(ranked) - 1}
        yield say(text, first=short_address(ranked["user"].iloc[0]), **counts)
    if comparison.skill is not None:
        rates = comparison.skill.accounts["q"].dropna()
        found = int((rates <= _RATE).sum())
        text = (
            "Of {tested:count account} with enough days, {found} gained more than luck explains, "
            "at a false discovery rate of {false_rate:share}. The test does not look for losses."
        )
        yield say(text, tested=len(rates), found=f"{found or 'none'}", false_rate=_RATE)


def make_account_table(comparison: Comparison) -> Table:
    """Return one row for each account."""
    caption = "The accounts, the highest gain of value first, in USD. A dash: not known."
    return table(caption, comparison.rows, _COLUMNS)


def list_addresses(comparison: Comparison) -> Table:
    """Return the full addresses."""
    place = Column("place", "row", formats.whole_number, number=False)
    columns = (place, Column("user", "address", number=False))
    rows = comparison.rows.assign(place=range(1, len(comparison.rows) + 1))
    return table("The addresses in the same order.", rows, columns)


def draw_growth(comparison: Comparison) -> blocks.Block:
    """Return the curves of the accounts with the largest volume; none without returns."""
    rows = comparison.returns
    if rows.empty:
        return blocks.join()
    known = comparison.rows[comparison.rows["user"].isin(rows["user"])]
    drawn = known.sort_values("volume", ascending=False)["user"].head(_DRAWN)
    caption = f"Time-weighted return of the {len(drawn)} accounts with the largest volume."
    shown = rows[rows["user"].isin(drawn)].reset_index(drop=True)
    return blocks.figure(plots.growth_curve, shown, caption=caption)


def draw_ranks(comparison: Comparison) -> blocks.Block:
    """Return the ranking by Sharpe ratio, and skill after shrinkage; none if they are not known."""
    caption = (
        "Sharpe ratio per year with an interval of 95 %. The grey band is the interval of the "
        "first account."
    )
    drawn = [blocks.draw_rows(plots.leaderboard, comparison.leaderboard, caption)]
    if comparison.skill is not None:
        caption = (
            "The same ratios after shrinkage towards the mean of all accounts. The grey band is "
            "the interval of this mean."
        )
        drawn.append(blocks.figure(plots.skill, comparison.skill, caption=caption))
    return blocks.join(*drawn)


def source_frames(comparison: Comparison) -> dict[str, pd.DataFrame | None]:
    """Return the fetched frames by name, for the provenance."""
    return {
        f"{name} {number}": getattr(wallet.account, name)
        for number, wallet in enumerate(comparison.wallets, 1)
        for name in ("fills", "ledger", "funding")
    }
