"""Sentences, headline numbers and checks of a wallet report."""

from collections.abc import Iterator
from functools import partial
from typing import Final

import pandas as pd

from toolkit.fetch.account import Account
from toolkit.prepare.door import Table
from toolkit.prepare.states import spot_backed_users
from toolkit.reports.report_frames import join_reasons, tell_left_out
from toolkit.reports.sentences import Headline, Sentence, headline, join_sentences, paragraph, say
from toolkit.reports.wallet_reasons import find_forced_closes, tell_forced_closes
from toolkit.reports.wallet_report import WalletResults

_NAMES: Final = {"states": "account value", "samples": "slippage", "latest": "latest fills"}


def list_headlines(results: WalletResults) -> list[Headline]:
    """Return the headline numbers, the most important first."""
    facts, of_fills = results.facts, " of {fills:count} fills "
    net = "net PnL", "{net:signed} USD", "closed, less fees, with funding"
    closed = "closed PnL", "{closed_pnl:signed} USD", "before fees and funding"
    fees = "fees", "{fees:signed} USD", "{rate:bps} bps of volume"
    if facts["unvalued"]:
        net = "net PnL", "not known", "{unvalued:count}" + of_fills + "have no closed PnL or no fee"
    elif results.funding is None:
        net = "net PnL, without funding", "{net:signed} USD", "closed, less fees"
    if facts["unclosed"]:
        closed = "closed PnL", "not known", "{unclosed:count}" + of_fills + "do not state it"
    if facts["unpaid"]:
        fees = "fees", "not known", "{unpaid:count}" + of_fills + "do not state their fee"
    elif facts["rate"] is None:
        fees = "fees", "{fees:signed} USD", "no volume"
    elif facts["rate"] > 0:
        fees = "fees", "{fees:signed} USD", "received: rebates, {rate:bps} bps of volume"
    volume = "volume", "{volume:dollars} USD", "{traded:count fill}"
    cash = "cash in, less out", "{ledger:signed} USD", "{updates:count ledger update}"
    rows = (net, closed, fees, _tell_funding(results), volume, cash)
    return [headline(*row, **facts) for row in rows]


def _tell_funding(results: WalletResults) -> tuple[str, str, str]:
    """Return funding, and how much of it is covered, as templates."""
    coverage, value = results.coverage, "{funding:funding}"
    if coverage is None:
        if results.account.funding is None:
            value, note = "not known", "the source does not have it"
        elif results.funding is None:
            value, note = "not covered", "positions are not known"
        else:
            note = "it is not known how much of it is covered"
    elif coverage.held == 0:
        note = "for positions not in the fills" if coverage.beyond else "no position at a full hour"
    elif coverage.is_complete:
        note = "covers every position hour"
    elif coverage.carried:
        note = "positions from before the period are not known"
    elif coverage.covered == 0:
        value, note = "not covered", "no funding rows for its position hours"
    else:
        note = "covers {covered_share:share} of position hours"
    return "funding", value, note


def list_summaries(results: WalletResults) -> list[Sentence]:
    """Return the paragraphs of the summary: the result, and what was closed by force.

    The one that explains most of the result comes first.
    """
    account, forced = results.account, find_forced_closes(results.account)
    whole, *parts = (
        float(fills["closed_pnl"].astype("float64").abs().sum())
        for fills in (account.fills, *forced)
    )
    told = [[*_tell_result(results)], [*tell_forced_closes(account, *forced)]]
    if sum(parts) > whole / 2 or not told[1]:
        told.reverse()
    told[1] += _tell_left_out(account)
    return [join_sentences(each) for each in told if each]


def _tell_result(results: WalletResults) -> Iterator[Sentence]:
    facts, tell = results.facts, partial(say, **results.facts)
    if not facts["traded"]:
        yield tell("The account made no fills in this period.")
        return
    if facts["unclosed"]:
        yield tell("The account traded a volume of {volume:dollars} USD.")
        yield tell(
            "Of its {fills:count} fills {unclosed:count} do not state their closed PnL. Total "
            "closed PnL and net PnL are therefore not known."
        )
    else:
        yield tell(
            "The account closed {closed_pnl:signed} USD of PnL on a volume of {volume:dollars} USD."
        )
    if facts["unpaid"]:
        yield tell(
            "Of its {fills:count} fills {unpaid:count} do not state their fee. Total fees and net "
            "PnL are therefore not known."
        )
    elif facts["fees"] > 0:
        yield tell("Rebates were more than the fees: the account received {fees:signed} USD.")
    else:
        yield tell("Fees were {fees:signed} USD.")
    if not facts["unpaid"] and facts["fees_in_cost"]:
        yield tell(
            "Spot buys also paid fees of {fees_in_cost:signed} USD in the bought tokens. Closed "
            "PnL contains these fees."
        )
    if facts["at_par"]:
        text = "Fees of {at_par:count fill} are in {tokens}, which counts at par with USD."
        yield tell(text, tokens=", ".join(results.account.prepared.tokens_at_par()))
    if results.funding is not None:
        yield tell("Funding was {funding:signed} USD.")
    if not facts["unvalued"] and results.funding is None:
        yield tell("Net PnL is {net:signed} USD, without funding.")
    elif not facts["unvalued"]:
        yield tell("Net PnL is {net:signed} USD.")


def _tell_left_out(account: Account) -> Iterator[Sentence]:
    """Yield what the source does not have, and what it has in part."""
    left_out, incomplete = dict[str, str](), dict[str, str]()
    for name, reason in account.missing.items():
        is_there = getattr(account, name, None) is not None
        (incomplete if is_there else left_out)[_NAMES.get(name, name)] = reason
    yield from tell_left_out(left_out)
    if incomplete:
        text = "These data are incomplete, and the report counts what there is: {what}."
        yield say(text, what=join_reasons(incomplete))


@paragraph
def describe_coverage(results: WalletResults) -> Iterator[Sentence]:
    """Return how much of the funding is covered, and what follows from it."""
    coverage, tell = results.coverage, partial(say, **results.facts)
    if coverage is None:
        text = (
            "It is not known how much of the funding is covered: {unplaced_perps:count} of "
            "{fills:count} fills do not state the position before them."
        )
        if results.account.funding is None:
            text = (
                "Funding is not covered: the source does not have it. No number of this report "
                "counts it as 0."
            )
        yield tell(text)
        return
    if coverage.held == coverage.beyond == 0:
        yield tell(
            "There are no funding rows, and by the fills there is no position at a full hour."
        )
        return
    yield tell(
        "By its fills, the account had positions at {held:count full hour}, summed over coins."
    )
    if coverage.carried:
        yield tell(
            "It had positions in {carried:count coin} before their first fill of this period."
        )
    if coverage.is_complete and coverage.agreeing == coverage.held:
        yield tell("Each hour has its funding row, and each row has the same size as the fills.")
        return
    yield tell("Of these hours {covered:count} have a funding row.")
    if coverage.covered:
        yield tell("Of these rows {agreeing:count} have the same size as the fills.")
    if coverage.beyond:
        yield tell(
            "Another {beyond:count row is|rows are} at hours without a position in the fills."
        )
    if missing := coverage.held - coverage.covered:
        text = (
            "The other {uncovered:count hour has|hours have} no funding row: the source may not "
            "have all of them."
        )
        yield tell(text, uncovered=missing)


@paragraph
def describe_value(results: WalletResults) -> Iterator[Sentence]:
    """Return the value of the account now, and whether its rows explain it."""
    states, row = results.account.states, results.reconciliation
    if "states" in results.account.missing:
        yield say("The value of the account is not known.")
        yield from _tell_left_out(results.account)
        return
    if states is None:
        yield say("The period ends before now. The value of the account at its end is not known.")
        return
    unrealised = states.positions["unrealized_pnl"].sum(skipna=False)
    worth = states.accounts["account_value"].sum(skipna=False)
    tell = partial(say, unrealised=unrealised, worth=worth)
    if spot_backed_users(Table(states.accounts, "accounts"), Table(states.positions, "positions")):
        yield tell(
            "The account has unified or portfolio margin: its collateral is in the spot wallet, "
            "which its state does not have. So its value is not known; open positions have an "
            "unrealised PnL of {unrealised:signed} USD."
        )
        return
    yield tell(
        "On all dexes together the value of the account's perps is {worth:dollars} USD, "
        "{unrealised:signed} USD of it unrealised."
    )
    if row is None:
        yield say("The period begins after the account did, so its rows cannot explain the value.")
        return
    text = "Its rows leave {residual:signed} USD of the value unexplained: {causes}."
    if pd.isna(row["residual"]):
        text = "Its rows do not explain the value; these are not known: {causes}."
    elif not row["residual"]:
        text = "Its rows explain the value to the last digit."
    causes = row["causes"] or "the cause is not known"
    yield say(text, residual=row["residual"], causes=causes)


def list_checks(results: WalletResults) -> list[Headline]:
    """Return the checks: name, result, and meaning of each."""
    audit, row = results.audit, results.reconciliation
    values = results.facts | {"off": results.residual}
    note = "closed PnL + fees + rebates + funding, to a millionth of a USD"
    rows = [("Net, less the sum of its parts", "{off:exact} USD", note)]
    if audit is None:
        label = "Recomputed closed PnL, and breaks in the chain of positions"
        note = (
            "of {fills:count} fills {unclosed:count} have no closed PnL, {unpaid:count} have no "
            "fee, {unplaced:count} have no position before them"
        )
        rows.append((label, "not known", note))
    else:
        difference, breaks = audit["difference"], audit["chain_break"].sum()
        values |= {"known": difference.count(), "apart": difference.abs().sum(), "breaks": breaks}
        note = "sum of absolute differences by the exchange's rule of closed PnL, over "
        if difference.notna().all():
            note += "all {fills:count} fills"
        else:
            note += "{known:count} of {fills:count} fills; the others have no entry price"
        rows.append(("Closed PnL, less recomputed closed PnL", "{apart:exact} USD", note))
        note = (
            "fills that do not start at the position after the previous fill: fills between them "
            "are missing, or spot tokens were moved without a fill"
        )
        rows.append(("Breaks in the chain of positions", "{breaks:count}", note))
    note = "fees in tokens without a known price, ledger rows without a known amount"
    rows.append(("Amounts left out", "{unknown:count}", note))
    if row is not None and pd.notna(row["residual"]):
        values |= row[["residual", "causes"]]
        label = "Account value, less the value that its rows explain"
        note = "value now, less cash in, closed PnL, fees, funding, unrealised PnL"
        note += "; missing are: {causes}" if row["causes"] else ""
        rows.append((label, "{residual:exact} USD", note))
    return [headline(*each, **values) for each in rows]
