"""What a wallet report says in words and headline numbers."""

from typing import Final

import narwhals as nw
import pandas as pd

from toolkit.analysis.common import directions
from toolkit.reports.material import STATES, listed_reasons
from toolkit.reports.results import Results
from toolkit.reports.sentences import Headline, Paragraph, Sentence, headline, sentence

__all__ = ["CHECKS", "HEADLINES", "SENTENCES", "checks", "coverage", "headlines", "sentences",
           "summary", "worth"]  # fmt: skip

SENTENCES: Final = {
    # the summary
    "no_fills": "The account made no fills in this period.",
    "closed": "The account closed {closed:signed} USD of PnL on a volume of {volume:dollars} USD.",
    "fees": "Fees came to {fees:signed} USD.",
    "builder_fees": "Fees came to {fees:signed} USD, of which {builder:signed} USD to builders.",
    "funding": "Funding came to {funding:signed} USD.",
    "net": "That leaves {net:signed} USD.",
    "net_without_funding": "That leaves {net:signed} USD, funding not included.",
    "forced": "The account was liquidated: {fills:count} of its fills, in {coins:count} {noun}, "
    "closed {closed:signed} USD of that PnL.",
    "deleveraged": "Auto-deleveraging closed positions of the account: {fills:count} of its fills, "
    "in {coins:count} {noun}, closed {closed:signed} USD of that PnL.",
    "traded": "The account traded a volume of {volume:dollars} USD.",
    "closed_unknown": "Of its {fills:count} fills {missing:count} do not state their closed PnL, "
    "so that its sum and net are not known.",
    "fees_unknown": "Of its {fills:count} fills {missing:count} do not state their fee, so that "
    "the sum of fees and net are not known.",
    "fees_in_cost": "Spot buys paid fees of another {value:signed} USD in the bought tokens; "
    "closed PnL contains them.",
    "at_par": "Of the fills {fills:count} are in {tokens}, which counts at par with USD.",
    "left_out": "Left out, since the source does not have it all: {what}.",
    # how much of the funding is covered
    "funding_unknown": "Funding is not covered: the source does not have it. Nothing here counts "
    "it as 0.",
    "funding_without_builder": "Funding is not covered. Funding rows can be had only through a "
    "builder that the account had approved, and none of its fills names one. Nothing here counts "
    "it as 0: it is left out, and net is net of fees alone.",
    "funding_without_positions": "Funding is not covered. There are no funding rows, and the fills "
    "show no position at a full hour; a position held from before, without a fill since, would not "
    "show. Nothing here counts funding as 0.",
    "positions_unknown": "How much of the funding is covered is not known: {missing:count} of "
    "{fills:count} fills do not state the position they start from.",
    "held": "By its fills, the account held positions at {held:count} full hours, summed over "
    "coins.",
    "carried": "It held {carried:count} coins from before their first fill in this period.",
    "all_covered": "Each hour has its funding row, and each row states the size that the fills "
    "give.",
    "covered": "Of these hours {covered:count} have a funding row.",
    "agreeing": "Of these rows {agreeing:count} state the size that the fills give.",
    "beyond": "Another {beyond:count} rows are at hours where the fills show no position.",
    "uncovered": "Funding of the other {missing:count} hours is not covered: no builder was "
    "approved then.",
    # what the account is worth
    "worth_unknown": "It is not known.",
    "worth_past": "The period ends before now: what the account was worth then is not known.",
    "worth": "On all dexes together the account's perps are worth {value:dollars} USD, "
    "{unrealised:signed} USD of it not realised yet.",
    "worth_late": "The tables begin later than the account and cannot explain all of it.",
    "worth_unexplained": "The tables do not explain it: not known are {causes}.",
    "worth_exact": "Its tables explain the value to the last digit.",
    "worth_residual": "Its tables leave {residual:signed} USD of the value unexplained: {causes}.",
}
HEADLINES: Final = {
    "net": ("net PnL", "{net:signed} USD", "closed, less fees, with funding"),
    "net_without_funding": (
        "net PnL, without funding",
        "{net:signed} USD",
        "closed, less fees",
    ),
    "net_unknown": (
        "net PnL",
        "not known",
        "{missing:count} of {fills:count} fills lack closed PnL or fee",
    ),
    "closed_unknown": (
        "closed PnL",
        "not known",
        "{missing:count} of {fills:count} fills do not state it",
    ),
    "fees_unknown": (
        "fees",
        "not known",
        "{missing:count} of {fills:count} fills do not state theirs",
    ),
    "closed": ("closed PnL", "{closed:signed} USD", "before fees and funding"),
    "fees": ("fees", "{fees:signed} USD", "{rate:bps} bps of volume"),
    "fees_without_volume": ("fees", "{fees:signed} USD", "no volume"),
    "funding_without_builder": ("funding", "not covered", "no builder is known"),
    "funding_without_positions": ("funding", "not covered", "positions are not known"),
    "funding_beyond": ("funding", "{funding:funding}", "for positions not in the fills"),
    "funding_uncounted": (
        "funding",
        "{funding:funding}",
        "how much of it is covered is not known",
    ),
    "funding_complete": ("funding", "{funding:funding}", "covers every position hour"),
    "funding_carried": (
        "funding",
        "{funding:funding}",
        "positions from before the period are not known",
    ),
    "funding_in_part": (
        "funding",
        "{funding:funding}",
        "covers {share:share} of position hours",
    ),
    "volume": ("volume", "{volume:dollars} USD", "{fills:count} fills"),
    "cash": ("cash in, less out", "{cash:signed} USD", "{updates:count} ledger updates"),
}
_RECOMPUTED: Final = "sum of absolute differences by the exchange's rule of closed PnL"
_EXPLAINED: Final = "what it is worth now, less cash in, closed PnL, fees, funding, unrealised PnL"
CHECKS: Final = {
    "parts": (
        "Net, less the sum of its parts",
        "{residual:exact} USD",
        "closed PnL + fees + rebates + funding, in exact decimals",
    ),
    "recomputed": (
        "Closed PnL, less closed PnL recomputed",
        "{apart:exact} USD",
        f"{_RECOMPUTED}, over all {{fills:count}} fills",
    ),
    "recomputed_in_part": (
        "Closed PnL, less closed PnL recomputed",
        "{apart:exact} USD",
        f"{_RECOMPUTED}, over {{known:count}} of {{fills:count}} fills; the others lack an entry "
        "price",
    ),
    "recomputed_unknown": (
        "Closed PnL recomputed, and breaks in the chain of positions",
        "not known",
        "of {fills:count} fills {unclosed:count} lack closed PnL, {unpaid:count} the fee, "
        "{unplaced:count} the position before",
    ),
    "breaks": (
        "Breaks in the chain of positions",
        "{breaks:count}",
        "fills that do not start where the one before ended: fills in between are missing, or spot "
        "tokens came or left without one",
    ),
    "left_out": (
        "Amounts left out",
        "{amounts:count}",
        "fees in tokens without a price here, ledger rows whose amount cannot be told",
    ),
    "explained": (
        "Account value, less what its tables explain",
        "{residual:exact} USD",
        _EXPLAINED,
    ),
    "explained_in_part": (
        "Account value, less what its tables explain",
        "{residual:exact} USD",
        f"{_EXPLAINED}; missing are: {{causes}}",
    ),
}


def sentences(results: Results) -> list[Sentence | Headline]:
    """Return all that this report says with numbers, outside of tables and figures."""
    said = (summary(results), coverage(results), worth(results))
    return [
        *headlines(results),
        *(one for paragraph in said for one in paragraph.sentences),
        *checks(results),
    ]


def headlines(results: Results) -> list[Headline]:
    """Return the headline numbers, the most important first."""
    whole, rate = results.whole, results.fee_bps
    updates = len(results.material.ledger)
    return [
        _net(results),
        _unknown(results, "closed_pnl", "closed_unknown")
        or headline(HEADLINES, "closed", closed=whole["closed_pnl"]),
        _unknown(results, "fee", "fees_unknown")
        or (
            headline(HEADLINES, "fees_without_volume", fees=results.fees)
            if rate is None
            else headline(HEADLINES, "fees", rate=rate, fees=results.fees)
        ),
        _funding(results),
        headline(HEADLINES, "volume", volume=whole["volume"], fills=whole["fills"]),
        headline(HEADLINES, "cash", cash=whole["ledger"], updates=updates),
    ]


def _net(results: Results) -> Headline:
    if results.without_amounts:
        fills = len(results.material.fills)
        return headline(HEADLINES, "net_unknown", missing=results.without_amounts, fills=fills)
    name = "net_without_funding" if results.funding is None else "net"
    return headline(HEADLINES, name, net=results.whole["net"])


def _unknown(results: Results, column: str, name: str) -> Headline | None:
    """Say that a sum is not known, where fills lack what it sums."""
    missing = results.unstated.get(column)
    if missing is None:
        return None
    return headline(HEADLINES, name, missing=missing, fills=len(results.material.fills))


def _funding(results: Results) -> Headline:
    """Return funding, and how much of it is covered."""
    found, value = results.coverage, results.whole["funding"]
    if found is None:
        return _uncounted(results)
    if found.held == 0 and not found.beyond:
        return headline(HEADLINES, "funding_without_positions")
    if found.held == 0:
        return headline(HEADLINES, "funding_beyond", funding=value)
    if found.complete:
        return headline(HEADLINES, "funding_complete", funding=value)
    if found.carried:
        return headline(HEADLINES, "funding_carried", funding=value)
    share = found.covered / found.held
    return headline(HEADLINES, "funding_in_part", funding=value, share=share)


def _uncounted(results: Results) -> Headline:
    """Return funding of which it is not known how much is covered."""
    if results.material.funding is None:
        return headline(HEADLINES, "funding_without_builder")
    if results.funding is None:
        return headline(HEADLINES, "funding_without_positions")
    return headline(HEADLINES, "funding_uncounted", funding=results.whole["funding"])


def summary(results: Results) -> Paragraph:
    """Return the result in a few sentences."""
    return Paragraph([*_result(results), *_left_out(results)])


def _result(results: Results) -> list[Sentence]:
    whole = results.whole
    if not whole["fills"]:
        return [sentence(SENTENCES, "no_fills")]
    unstated, volume = results.unstated, whole["volume"]
    if "closed_pnl" in unstated:
        missing = {"missing": unstated["closed_pnl"], "fills": len(results.material.fills)}
        said = [
            sentence(SENTENCES, "traded", volume=volume),
            sentence(SENTENCES, "closed_unknown", **missing),
        ]
    else:
        said = [sentence(SENTENCES, "closed", closed=whole["closed_pnl"], volume=volume)]
    fees = {"fees": results.fees}
    if "fee" in unstated:
        missing = {"missing": unstated["fee"], "fills": len(results.material.fills)}
        said.append(sentence(SENTENCES, "fees_unknown", **missing))
    else:
        said.append(
            sentence(SENTENCES, "builder_fees", builder=whole["builder_fee"], **fees)
            if whole["builder_fee"]
            else sentence(SENTENCES, "fees", **fees)
        )
    if whole["fees_in_cost"] and "fee" not in unstated:
        said.append(sentence(SENTENCES, "fees_in_cost", value=whole["fees_in_cost"]))
    if whole["at_par"]:
        tokens = ", ".join(results.at_par)
        said.append(sentence(SENTENCES, "at_par", fills=whole["at_par"], tokens=tokens))
    if results.funding is not None:
        said.append(sentence(SENTENCES, "funding", funding=whole["funding"]))
    if not results.without_amounts:
        name = "net_without_funding" if results.funding is None else "net"
        said.append(sentence(SENTENCES, name, net=whole["net"]))
    return said + _forced(results)


def _left_out(results: Results) -> list[Sentence]:
    lacking = results.material.lacking
    return [sentence(SENTENCES, "left_out", what=listed_reasons(lacking))] if lacking else []


def _forced(results: Results) -> list[Sentence]:
    """Return what the exchange closed: by liquidations, and apart from them by deleveraging."""
    fills, account = results.material.fills, results.material.user
    frame = nw.from_native(fills.reset_index(drop=True), eager_only=True)
    have = frame.columns
    liquidated = directions.is_liquidation(have, account)
    ways = {
        "forced": liquidated,
        "deleveraged": directions.is_auto_deleveraging(have) & ~liquidated,
    }
    said = []
    for name, is_meant in ways.items():
        rows = frame.filter(is_meant).to_native()
        if rows.empty:
            continue
        coins = rows["coin"].nunique()
        said.append(
            sentence(
                SENTENCES,
                name,
                fills=len(rows),
                coins=coins,
                noun="coin" if coins == 1 else "coins",
                closed=rows["closed_pnl"].sum(skipna=False),
            )
        )
    return said


def coverage(results: Results) -> Paragraph:
    """Return how much of the funding is covered, and what follows."""
    found = results.coverage
    if results.without_position and results.material.funding is not None:
        fills = len(results.material.fills)
        missing = results.without_position
        return Paragraph([sentence(SENTENCES, "positions_unknown", missing=missing, fills=fills)])
    if found is None and any(what.startswith("funding") for what in results.material.lacking):
        return Paragraph([sentence(SENTENCES, "funding_unknown")])
    if found is None:
        return Paragraph([sentence(SENTENCES, "funding_without_builder")])
    if found.held == 0 and found.beyond == 0:
        return Paragraph([sentence(SENTENCES, "funding_without_positions")])
    said = [sentence(SENTENCES, "held", held=found.held)]
    if found.carried:
        said.append(sentence(SENTENCES, "carried", carried=found.carried))
    if found.complete and found.agreeing == found.held:
        return Paragraph([*said, sentence(SENTENCES, "all_covered")])
    said.append(sentence(SENTENCES, "covered", covered=found.covered))
    if found.covered:
        said.append(sentence(SENTENCES, "agreeing", agreeing=found.agreeing))
    if found.beyond:
        said.append(sentence(SENTENCES, "beyond", beyond=found.beyond))
    if found.covered < found.held:
        said.append(sentence(SENTENCES, "uncovered", missing=found.held - found.covered))
    return Paragraph(said)


def worth(results: Results) -> Paragraph:
    """Return what the account is worth now, and whether its tables explain it."""
    states = results.material.states
    if STATES in results.material.lacking:
        return Paragraph([sentence(SENTENCES, "worth_unknown"), *_left_out(results)])
    if states is None:
        return Paragraph([sentence(SENTENCES, "worth_past")])
    value = states.accounts["account_value"].sum(skipna=False)
    unrealised = states.positions["unrealized_pnl"].sum(skipna=False)
    said = [sentence(SENTENCES, "worth", value=value, unrealised=unrealised)]
    found = results.reconciled
    if found is None:
        said.append(sentence(SENTENCES, "worth_late"))
    elif pd.isna(found["residual"]):
        said.append(sentence(SENTENCES, "worth_unexplained", causes=found["causes"]))
    elif not found["residual"]:
        said.append(sentence(SENTENCES, "worth_exact"))
    else:
        causes = found["causes"] or "the cause is not known"
        left = {"residual": found["residual"], "causes": causes}
        said.append(sentence(SENTENCES, "worth_residual", **left))
    return Paragraph(said)


def checks(results: Results) -> list[Headline]:
    """Return what was checked: what, the figure, and what it means."""
    whole = results.whole
    left_out = whole["unpriced_fees"] + whole["unknown_flows"]
    return [
        headline(CHECKS, "parts", residual=results.residual),
        *_recomputed(results),
        headline(CHECKS, "left_out", amounts=left_out),
        *_explained(results),
    ]


def _recomputed(results: Results) -> list[Headline]:
    audit = results.audit
    if audit is None:
        unstated = results.unstated
        lacking = {
            "unclosed": unstated.get("closed_pnl", 0),
            "unpaid": unstated.get("fee", 0),
            "unplaced": unstated.get("start_position", 0),
        }
        fills = len(results.material.fills)
        return [headline(CHECKS, "recomputed_unknown", fills=fills, **lacking)]
    known = int(audit["difference"].notna().sum())
    apart = {"apart": audit["difference"].abs().sum() if known else 0, "fills": len(audit)}
    return [
        headline(CHECKS, "recomputed", **apart)
        if known == len(audit)
        else headline(CHECKS, "recomputed_in_part", known=known, **apart),
        headline(CHECKS, "breaks", breaks=int(audit["chain_break"].sum())),
    ]


def _explained(results: Results) -> list[Headline]:
    found = results.reconciled
    if found is None or pd.isna(found["residual"]):
        return []
    if found["causes"]:
        left = {"residual": found["residual"], "causes": found["causes"]}
        return [headline(CHECKS, "explained_in_part", **left)]
    return [headline(CHECKS, "explained", residual=found["residual"])]
