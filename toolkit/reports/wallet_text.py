"""Sentences, headline numbers and checks of a wallet report."""

from typing import Any, Final

import pandas as pd

from toolkit.prepare.door import Table
from toolkit.prepare.states import spot_backed_users
from toolkit.reports.forced_closes import (
    add_notionals,
    describe_largest_close,
    describe_leverage,
    describe_loss,
    describe_margin,
    find_forced_closes,
    is_mostly_forced,
    select_largest_liquidation,
    share_by_backstop,
)
from toolkit.reports.report_frames import join_reasons
from toolkit.reports.sentences import Headline, Paragraph, Sentence, headline, sentence
from toolkit.reports.wallet_report import WalletResults

SENTENCES: Final = {
    # the summary
    "no_fills": "The account made no fills in this period.",
    "closed": "The account closed {closed:signed} USD of PnL on a volume of {volume:dollars} USD.",
    "fees": "Fees were {fees:signed} USD.",
    "rebates": "Rebates were more than the fees: the account received {fees:signed} USD.",
    "funding": "Funding was {funding:signed} USD.",
    "net": "Net PnL is {net:signed} USD.",
    "net_without_funding": "Net PnL is {net:signed} USD, without funding.",
    "forced": "The account was liquidated: {orders:count liquidation}, in {coins:count coin}, "
    "brought {closed:signed} USD of its closed PnL.",
    "forced_largest": "The liquidations happened at {moments:count time}. The following describes "
    "the largest, on {time} UTC.",
    "forced_most": "The largest order closed a {side} of {usd:dollars} USD in {coin} on "
    "{time} UTC, {distance:share} {place} its entry price.",
    "forced_leverage": "At entry prices, {positions:count liquidated position was|liquidated "
    "positions were} worth {entry:dollars} USD: {times:times} times the capital of "
    "{capital:dollars} USD before it. Capital is cash in, less cash out, with closed PnL and "
    "fees, without funding.",
    "forced_margin": "At the liquidation, {value:dollars} USD of {mode} margin remained for "
    "positions of {usd:dollars} USD: a leverage of {times:times}.",
    "forced_loss": "With its fees, the liquidation lost {loss:dollars} USD: {share:share} of this "
    "capital.",
    "forced_backstop": "The backstop took over all that was liquidated; orders in the book "
    "closed nothing.",
    "forced_market": "Orders in the book closed all that was liquidated; the backstop took "
    "nothing.",
    "forced_both": "The backstop took {share:share} of what was liquidated, and orders in the "
    "book closed the rest.",
    "deleveraged": "Auto-deleveraging closed positions of the account: {orders:count order}, "
    "in {coins:count coin}, brought {closed:signed} USD of its closed PnL.",
    "traded": "The account traded a volume of {volume:dollars} USD.",
    "closed_unknown": "Of its {fills:count} fills {missing:count} do not state their closed PnL. "
    "Total closed PnL and net PnL are therefore not known.",
    "fees_unknown": "Of its {fills:count} fills {missing:count} do not state their fee. Total "
    "fees and net PnL are therefore not known.",
    "fees_in_cost": "Spot buys also paid fees of {value:signed} USD in the bought tokens. "
    "Closed PnL contains these fees.",
    "at_par": "Fees of {fills:count fill} are in {tokens}, which counts at par with USD.",
    "left_out": "The source does not have these data, and the report leaves them out: {what}.",
    "incomplete": "These data are incomplete, and the report counts what there is: {what}.",
    # how much of the funding is covered
    "funding_unknown": "Funding is not covered: the source does not have it. No number of this "
    "report counts it as 0.",
    "funding_none": "There are no funding rows, and by the fills there is no position at a full "
    "hour.",
    "positions_unknown": "It is not known how much of the funding is covered: {missing:count} of "
    "{fills:count} fills do not state the position before them.",
    "held": "By its fills, the account had positions at {held:count full hour}, summed over coins.",
    "carried": "It had positions in {carried:count coin} before their first fill of this period.",
    "all_covered": "Each hour has its funding row, and each row has the same size as the fills.",
    "covered": "Of these hours {covered:count} have a funding row.",
    "agreeing": "Of these rows {agreeing:count} have the same size as the fills.",
    "beyond": "Another {beyond:count row is|rows are} at hours without a position in the fills.",
    "uncovered": "The other {missing:count hour has|hours have} no funding row: the source may not "
    "have all of them.",
    # the value of the account
    "worth_unknown": "The value of the account is not known.",
    "worth_shared": "The account has unified or portfolio margin: its collateral is in the spot "
    "wallet, which its state does not have. So its value is not known; open positions have an "
    "unrealised PnL of {unrealised:signed} USD.",
    "worth_past": "The period ends before now. The value of the account at its end is not known.",
    "worth": "On all dexes together the value of the account's perps is {value:dollars} USD, "
    "{unrealised:signed} USD of it unrealised.",
    "worth_late": "The period begins after the account did, so its rows cannot explain the value.",
    "worth_unexplained": "Its rows do not explain the value; these are not known: {causes}.",
    "worth_exact": "Its rows explain the value to the last digit.",
    "worth_residual": "Its rows leave {residual:signed} USD of the value unexplained: {causes}.",
}
HEADLINES: Final = {
    "net": ("net PnL", "{net:signed} USD", "closed, less fees, with funding"),
    "net_without_funding": ("net PnL, without funding", "{net:signed} USD", "closed, less fees"),
    "net_unknown": (
        "net PnL",
        "not known",
        "{missing:count} of {fills:count} fills have no closed PnL or no fee",
    ),
    "closed_unknown": (
        "closed PnL",
        "not known",
        "{missing:count} of {fills:count} fills do not state it",
    ),
    "fees_unknown": (
        "fees",
        "not known",
        "{missing:count} of {fills:count} fills do not state their fee",
    ),
    "closed": ("closed PnL", "{closed:signed} USD", "before fees and funding"),
    "fees": ("fees", "{fees:signed} USD", "{rate:bps} bps of volume"),
    "fees_received": ("fees", "{fees:signed} USD", "received: rebates, {rate:bps} bps of volume"),
    "fees_without_volume": ("fees", "{fees:signed} USD", "no volume"),
    "funding_unknown": ("funding", "not known", "the source does not have it"),
    "funding_none": ("funding", "{funding:funding}", "no position at a full hour"),
    "funding_without_positions": ("funding", "not covered", "positions are not known"),
    "funding_beyond": ("funding", "{funding:funding}", "for positions not in the fills"),
    "funding_uncounted": (
        "funding",
        "{funding:funding}",
        "it is not known how much of it is covered",
    ),
    "funding_complete": ("funding", "{funding:funding}", "covers every position hour"),
    "funding_carried": (
        "funding",
        "{funding:funding}",
        "positions from before the period are not known",
    ),
    "funding_missing": ("funding", "not covered", "no funding rows for its position hours"),
    "funding_in_part": ("funding", "{funding:funding}", "covers {share:share} of position hours"),
    "volume": ("volume", "{volume:dollars} USD", "{fills:count fill}"),
    "cash": ("cash in, less out", "{cash:signed} USD", "{updates:count ledger update}"),
}
_RECOMPUTED: Final = "sum of absolute differences by the exchange's rule of closed PnL"
_EXPLAINED: Final = "value now, less cash in, closed PnL, fees, funding, unrealised PnL"
CHECKS: Final = {
    "parts": (
        "Net, less the sum of its parts",
        "{residual:exact} USD",
        "closed PnL + fees + rebates + funding, to a millionth of a USD",
    ),
    "recomputed": (
        "Closed PnL, less recomputed closed PnL",
        "{apart:exact} USD",
        f"{_RECOMPUTED}, over all {{fills:count}} fills",
    ),
    "recomputed_in_part": (
        "Closed PnL, less recomputed closed PnL",
        "{apart:exact} USD",
        f"{_RECOMPUTED}, over {{known:count}} of {{fills:count}} fills; the others have no entry "
        "price",
    ),
    "recomputed_unknown": (
        "Recomputed closed PnL, and breaks in the chain of positions",
        "not known",
        "of {fills:count} fills {unclosed:count} have no closed PnL, {unpaid:count} have no fee, "
        "{unplaced:count} have no position before them",
    ),
    "breaks": (
        "Breaks in the chain of positions",
        "{breaks:count}",
        "fills that do not start at the position after the previous fill: fills between them are "
        "missing, or spot tokens were moved without a fill",
    ),
    "left_out": (
        "Amounts left out",
        "{amounts:count}",
        "fees in tokens without a known price, ledger rows without a known amount",
    ),
    "explained": (
        "Account value, less the value that its rows explain",
        "{residual:exact} USD",
        _EXPLAINED,
    ),
    "explained_in_part": (
        "Account value, less the value that its rows explain",
        "{residual:exact} USD",
        f"{_EXPLAINED}; missing are: {{causes}}",
    ),
}


def list_sentences(results: WalletResults) -> list[Sentence | Headline]:
    """Return every text with numbers in this report, outside of tables and figures."""
    paragraphs = (summarize_wallet(results), describe_coverage(results), describe_value(results))
    return [
        *list_headlines(results),
        *(part for paragraph in paragraphs for part in paragraph.sentences),
        *list_checks(results),
    ]


def list_headlines(results: WalletResults) -> list[Headline]:
    """Return the headline numbers, the most important first."""
    total = results.total
    return [
        _net_headline(results),
        _closed_headline(results),
        _fee_headline(results),
        _funding_headline(results),
        headline(HEADLINES, "volume", volume=total["volume"], fills=total["fills"]),
        headline(HEADLINES, "cash", cash=total["ledger"], updates=len(results.account.ledger)),
    ]


def _net_headline(results: WalletResults) -> Headline:
    missing, fills = results.fills_without_amounts, len(results.account.fills)
    if missing:
        return headline(HEADLINES, "net_unknown", missing=missing, fills=fills)
    name = "net_without_funding" if results.funding is None else "net"
    return headline(HEADLINES, name, net=results.total["net"])


def _closed_headline(results: WalletResults) -> Headline:
    missing, fills = results.missing_counts.get("closed_pnl"), len(results.account.fills)
    if missing is not None:
        return headline(HEADLINES, "closed_unknown", missing=missing, fills=fills)
    return headline(HEADLINES, "closed", closed=results.total["closed_pnl"])


def _fee_headline(results: WalletResults) -> Headline:
    missing, fills = results.missing_counts.get("fee"), len(results.account.fills)
    if missing is not None:
        return headline(HEADLINES, "fees_unknown", missing=missing, fills=fills)
    if results.fee_bps is None:
        return headline(HEADLINES, "fees_without_volume", fees=results.fees)
    name = "fees_received" if results.fee_bps > 0 else "fees"
    return headline(HEADLINES, name, rate=results.fee_bps, fees=results.fees)


def _funding_headline(results: WalletResults) -> Headline:
    """Return funding, and how much of it is covered."""
    coverage, values = results.coverage, {"funding": results.total["funding"]}
    if coverage is None and results.account.funding is None:
        return headline(HEADLINES, "funding_unknown")
    if coverage is None:
        name = "funding_without_positions" if results.funding is None else "funding_uncounted"
    elif coverage.held == 0:
        name = "funding_beyond" if coverage.beyond else "funding_none"
    elif coverage.is_complete:
        name = "funding_complete"
    elif coverage.carried:
        name = "funding_carried"
    elif coverage.covered == 0:
        name = "funding_missing"
    else:
        name = "funding_in_part"
        values["share"] = coverage.covered / coverage.held
    return headline(HEADLINES, name, **values)


def summarize_wallet(results: WalletResults) -> Paragraph:
    """Return the results in a few sentences."""
    return Paragraph(part for text in list_summaries(results) for part in text.sentences)


def list_summaries(results: WalletResults) -> list[Paragraph]:
    """Return the paragraphs of the summary: the result, and what was closed by force.

    The one that explains most of the result comes first.
    """
    left_out = _left_out_sentences(results)
    if not results.total["fills"]:
        return [Paragraph([sentence(SENTENCES, "no_fills"), *left_out])]
    result, forced = _pnl_sentences(results), _forced_close_sentences(results)
    if not forced:
        return [Paragraph([*result, *left_out])]
    if is_mostly_forced(results.account):
        return [Paragraph(forced), Paragraph([*result, *left_out])]
    return [Paragraph(result), Paragraph([*forced, *left_out])]


def _pnl_sentences(results: WalletResults) -> list[Sentence]:
    total, missing_counts = results.total, results.missing_counts
    fills, volume = len(results.account.fills), total["volume"]
    sentences = []

    def add(name: str, **values: Any) -> None:
        sentences.append(sentence(SENTENCES, name, **values))

    if "closed_pnl" in missing_counts:
        add("traded", volume=volume)
        add("closed_unknown", missing=missing_counts["closed_pnl"], fills=fills)
    else:
        add("closed", closed=total["closed_pnl"], volume=volume)
    if "fee" in missing_counts:
        add("fees_unknown", missing=missing_counts["fee"], fills=fills)
    else:
        add("rebates" if results.fees > 0 else "fees", fees=results.fees)
    if "fee" not in missing_counts and total["fees_in_cost"]:
        add("fees_in_cost", value=total["fees_in_cost"])
    if total["at_par"]:
        add("at_par", fills=total["at_par"], tokens=", ".join(results.par_tokens))
    if results.funding is not None:
        add("funding", funding=total["funding"])
    if not results.fills_without_amounts:
        add("net_without_funding" if results.funding is None else "net", net=total["net"])
    return sentences


def _left_out_sentences(results: WalletResults) -> list[Sentence]:
    """Return what the source does not have, and what it has in part."""
    account = results.account
    parts: dict[str, dict[str, str]] = {"left_out": {}, "incomplete": {}}
    for name, reason in account.missing.items():
        is_there = getattr(account, name, None) is not None
        parts["incomplete" if is_there else "left_out"][_NAMES.get(name, name)] = reason
    return [
        sentence(SENTENCES, name, what=join_reasons(reasons))
        for name, reasons in parts.items()
        if reasons
    ]


_NAMES: Final = {"states": "account value", "samples": "slippage", "latest": "latest fills"}
_FORCED_COUNTS: Final = {"orders": "oid", "coins": "coin"}


def _forced_close_sentences(results: WalletResults) -> list[Sentence]:
    """Return sentences about fills by liquidations, and about other fills by deleveraging."""
    sentences = []
    for name, rows in find_forced_closes(results.account).items():
        counts = {place: rows[column].nunique() for place, column in _FORCED_COUNTS.items()}
        closed = rows["closed_pnl"].sum(skipna=False)
        sentences.append(sentence(SENTENCES, name, **counts, closed=closed))
        if name == "forced":
            sentences += _liquidation_sentences(results, rows)
    return sentences


def _liquidation_sentences(results: WalletResults, rows: pd.DataFrame) -> list[Sentence]:
    """Return who took the liquidated positions; then leverage and loss of the largest moment."""
    account, known = results.account, add_notionals(rows)
    largest = select_largest_liquidation(known)
    sentences = []
    if (share := share_by_backstop(known)) is not None:
        name = "forced_both" if 0 < share < 1 else "forced_backstop" if share else "forced_market"
        sentences.append(sentence(SENTENCES, name, **({"share": share} if 0 < share < 1 else {})))
    if (moments := known["time"].nunique()) > 1:
        time = f"{largest['time'].iloc[0]:%Y-%m-%d %H:%M}"
        sentences.append(sentence(SENTENCES, "forced_largest", moments=moments, time=time))
    leverage = describe_leverage(account, largest)
    parts = {
        "forced_most": describe_largest_close(largest),
        "forced_leverage": leverage,
        "forced_margin": describe_margin(account, largest),
        "forced_loss": describe_loss(account, largest) if leverage else {},
    }
    return sentences + [
        sentence(SENTENCES, name, **values) for name, values in parts.items() if values
    ]


def describe_coverage(results: WalletResults) -> Paragraph:
    """Return how much of the funding is covered, and what follows from it."""
    coverage, account = results.coverage, results.account
    if results.fills_without_position and account.funding is not None:
        counts = {"missing": results.fills_without_position, "fills": len(account.fills)}
        return Paragraph([sentence(SENTENCES, "positions_unknown", **counts)])
    if coverage is None:
        return Paragraph([sentence(SENTENCES, "funding_unknown")])
    if coverage.held == 0 and coverage.beyond == 0:
        return Paragraph([sentence(SENTENCES, "funding_none")])
    sentences = [sentence(SENTENCES, "held", held=coverage.held)]
    if coverage.carried:
        sentences.append(sentence(SENTENCES, "carried", carried=coverage.carried))
    if coverage.is_complete and coverage.agreeing == coverage.held:
        return Paragraph([*sentences, sentence(SENTENCES, "all_covered")])
    sentences.append(sentence(SENTENCES, "covered", covered=coverage.covered))
    if coverage.covered:
        sentences.append(sentence(SENTENCES, "agreeing", agreeing=coverage.agreeing))
    if coverage.beyond:
        sentences.append(sentence(SENTENCES, "beyond", beyond=coverage.beyond))
    if coverage.covered < coverage.held:
        missing = coverage.held - coverage.covered
        sentences.append(sentence(SENTENCES, "uncovered", missing=missing))
    return Paragraph(sentences)


def describe_value(results: WalletResults) -> Paragraph:
    """Return the value of the account now, and whether its rows explain it."""
    states = results.account.states
    if "states" in results.account.missing:
        return Paragraph([sentence(SENTENCES, "worth_unknown"), *_left_out_sentences(results)])
    if states is None:
        return Paragraph([sentence(SENTENCES, "worth_past")])
    unrealised = states.positions["unrealized_pnl"].sum(skipna=False)
    parts = (Table(states.accounts, "accounts"), Table(states.positions, "positions"))
    if spot_backed_users(*parts):
        return Paragraph([sentence(SENTENCES, "worth_shared", unrealised=unrealised)])
    value = states.accounts["account_value"].sum(skipna=False)
    sentences = [sentence(SENTENCES, "worth", value=value, unrealised=unrealised)]
    row = results.reconciliation
    if row is None:
        sentences.append(sentence(SENTENCES, "worth_late"))
    elif pd.isna(row["residual"]):
        sentences.append(sentence(SENTENCES, "worth_unexplained", causes=row["causes"]))
    elif not row["residual"]:
        sentences.append(sentence(SENTENCES, "worth_exact"))
    else:
        causes = row["causes"] or "the cause is not known"
        values = {"residual": row["residual"], "causes": causes}
        sentences.append(sentence(SENTENCES, "worth_residual", **values))
    return Paragraph(sentences)


def list_checks(results: WalletResults) -> list[Headline]:
    """Return the checks: name, result, and meaning of each."""
    total = results.total
    return [
        headline(CHECKS, "parts", residual=results.residual),
        *_audit_checks(results),
        headline(CHECKS, "left_out", amounts=total["unpriced_fees"] + total["unknown_flows"]),
        *_value_checks(results),
    ]


def _audit_checks(results: WalletResults) -> list[Headline]:
    audit = results.audit
    if audit is None:
        counts = results.missing_counts
        missing = {
            "unclosed": counts.get("closed_pnl", 0),
            "unpaid": counts.get("fee", 0),
            "unplaced": counts.get("start_position", 0),
        }
        fills = len(results.account.fills)
        return [headline(CHECKS, "recomputed_unknown", fills=fills, **missing)]
    known = int(audit["difference"].notna().sum())
    values = {"apart": audit["difference"].abs().sum() if known else 0, "fills": len(audit)}
    return [
        headline(CHECKS, "recomputed", **values)
        if known == len(audit)
        else headline(CHECKS, "recomputed_in_part", known=known, **values),
        headline(CHECKS, "breaks", breaks=int(audit["chain_break"].sum())),
    ]


def _value_checks(results: WalletResults) -> list[Headline]:
    row = results.reconciliation
    if row is None or pd.isna(row["residual"]):
        return []
    if row["causes"]:
        values = {"residual": row["residual"], "causes": row["causes"]}
        return [headline(CHECKS, "explained_in_part", **values)]
    return [headline(CHECKS, "explained", residual=row["residual"])]
