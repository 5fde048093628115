"""What a wallet report says in words and headline numbers."""

import pandas as pd

from toolkit.plots.texts import bps, count, dollars, share
from toolkit.reports.blocks import Headline
from toolkit.reports.material import STATES, left_out
from toolkit.reports.results import Results
from toolkit.reports.tables import exact_usd, signed_usd

__all__ = ["checks", "coverage", "headlines", "summary", "worth"]

NOT_COVERED = "not covered"


def headlines(results: Results) -> list[Headline]:
    """Give the headline numbers, the most important first."""
    whole = results.whole
    covered = results.funding is not None
    net = "net PnL" if covered else "net PnL, without funding"
    what = "closed, less fees, with funding" if covered else "closed, less fees"
    fee_bps = results.fee_bps
    return [
        Headline(net, signed_usd(whole["net"]) + " USD", what),
        Headline("closed PnL", signed_usd(whole["closed_pnl"]) + " USD", "before fees and funding"),
        Headline(
            "fees",
            signed_usd(results.fees) + " USD",
            "no volume" if fee_bps is None else f"{bps(fee_bps)} bps of volume",
        ),
        Headline("funding", _funding(results), coverage_note(results)),
        Headline("volume", dollars(whole["volume"]) + " USD", f"{count(whole['fills'])} fills"),
        Headline(
            "cash in, less out",
            signed_usd(whole["ledger"]) + " USD",
            f"{count(len(results.material.ledger))} ledger updates",
        ),
    ]


def _funding(results: Results) -> str:
    value = results.whole["funding"]
    return NOT_COVERED if pd.isna(value) else signed_usd(value) + " USD"


def coverage_note(results: Results) -> str:
    """Say in a few words how much of the funding is covered."""
    found = results.coverage
    if found is None:
        return "no builder is known"
    if found.held == 0:
        return "for positions not in the fills" if found.beyond else "positions are not known"
    if found.complete:
        return "covers every position hour"
    if found.carried:
        return "positions from before the period are not known"
    return f"covers {share(found.covered / found.held)} of position hours"


def summary(results: Results) -> str:
    """Tell the result in a sentence or two."""
    whole = results.whole
    missing = left_out(results.material.lacking)
    if not whole["fills"]:
        return f"The account made no fills in this period.{missing}"
    words = (
        f"The account closed {signed_usd(whole['closed_pnl'])} USD of PnL on a volume of "
        f"{dollars(whole['volume'])} USD. Fees came to {signed_usd(results.fees)} USD"
    )
    if whole["builder_fee"]:
        words += f", of which {signed_usd(whole['builder_fee'])} USD to builders"
    if results.funding is None:
        words += f". That leaves {signed_usd(whole['net'])} USD, funding not included."
    else:
        words += f", and funding to {signed_usd(whole['funding'])} USD. "
        words += f"That leaves {signed_usd(whole['net'])} USD."
    return words + _liquidations(results.material.fills) + missing


def _liquidations(fills: pd.DataFrame) -> str:
    """Say what was closed because margin did not suffice; nothing where nothing was."""
    forced = fills[fills["dir"].astype("str").str.startswith("Liquidated")]
    if forced.empty:
        return ""
    lost = forced["closed_pnl"].dropna().sum()
    coins = forced["coin"].nunique()
    return (
        f" The account was liquidated: {count(len(forced))} of its fills, in {count(coins)} "
        f"{'coin' if coins == 1 else 'coins'}, closed {signed_usd(lost)} USD of that PnL."
    )


def coverage(results: Results) -> str:
    """Tell how much of the funding is covered, and what follows."""
    found = results.coverage
    if found is None and any(what.startswith("funding") for what in results.material.lacking):
        return "Funding is not covered: the source does not have it. Nothing here counts it as 0."
    if found is None:
        return (
            "Funding is not covered. Funding rows can be had only through a builder that the "
            "account had approved, and none of its fills names one. Nothing here counts it as 0: "
            "it is left out, and net is net of fees alone."
        )
    if found.held == 0 and found.beyond == 0:
        return (
            "Funding is not covered. There are no funding rows, and the fills show no "
            "position at a full hour; a position held from before, without a fill since, would not "
            "show. Nothing here counts funding as 0."
        )
    words = f"By its fills, the account held positions at {count(found.held)} full hours, "
    words += "summed over coins; "
    if found.carried:
        words += f"and {count(found.carried)} coins from before their first fill in this period; "
    if found.complete and found.agreeing == found.held:
        return words + "each has its funding row, and each row states the size that the fills give."
    words += f"{count(found.covered)} of them have a funding row"
    if found.covered:
        words += f", and {count(found.agreeing)} of these state the size that the fills give"
    words += "."
    if found.beyond:
        words += f" {count(found.beyond)} more rows are at hours where the fills show no position."
    if found.covered < found.held:
        missing = count(found.held - found.covered)
        words += f" Funding of the other {missing} is not covered: no builder was approved then."
    return words


def _recomputed(known: int, fills: int) -> str:
    words = "sum of absolute differences by the exchange's rule of closed PnL"
    if known == fills:
        return f"{words}, over all {count(fills)} fills"
    return f"{words}, over {count(known)} of {count(fills)} fills; the others lack an entry price"


def worth(results: Results) -> str:
    """Tell what the account is worth now, and whether its tables explain it."""
    states = results.material.states
    if STATES in results.material.lacking:
        return f"It is not known.{left_out(results.material.lacking)}"
    if states is None:
        return "The period ends before now: what the account was worth then is not known."
    value = states.accounts["account_value"].sum()
    words = (
        f"On all dexes together the account's perps are worth {dollars(value)} USD, "
        f"{signed_usd(states.positions['unrealized_pnl'].sum())} USD of it not realised yet."
    )
    found = results.reconciled
    if found is None:
        return f"{words} The tables begin later than the account and cannot explain all of it."
    if pd.isna(found["residual"]):
        return f"{words} The tables do not explain it: not known are {found['causes']}."
    if not found["residual"]:
        return f"{words} Its tables explain the value to the last digit."
    return (
        f"{words} Its tables leave {signed_usd(found['residual'])} USD of the value unexplained: "
        f"{found['causes'] or 'the cause is not known'}."
    )


def _explained(results: Results) -> list[tuple[str, str, str]]:
    found = results.reconciled
    if found is None or pd.isna(found["residual"]):
        return []
    meaning = "what it is worth now, less cash in, closed PnL, fees, funding and unrealised PnL"
    if found["causes"]:
        meaning += f"; missing are: {found['causes']}"
    value = f"{exact_usd(found['residual'])} USD"
    return [("Account value, less what its tables explain", value, meaning)]


def checks(results: Results) -> list[tuple[str, str, str]]:
    """Give what was checked: what, the figure, and what it means."""
    audit = results.audit
    known = audit["difference"].notna()
    apart = audit["difference"].abs().sum() if known.any() else 0
    breaks = int(audit["chain_break"].sum())
    return [
        (
            "Net, less the sum of its parts",
            f"{exact_usd(results.residual)} USD",
            "closed PnL + fees + rebates + funding, in exact decimals",
        ),
        (
            "Closed PnL, less closed PnL recomputed",
            f"{exact_usd(apart)} USD",
            _recomputed(int(known.sum()), len(audit)),
        ),
        (
            "Breaks in the chain of positions",
            count(breaks),
            "fills that do not start where the one before ended: fills in between are missing",
        ),
        (
            "Amounts left out",
            count(results.whole["unpriced_fees"] + results.whole["unknown_flows"]),
            "fees in tokens without a price here, ledger rows whose amount cannot be told",
        ),
        *_explained(results),
    ]
