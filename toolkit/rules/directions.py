"""The `dir` words of fills that are no ordinary trades (docs/live_service.md, sections 2 and 7).

An ordinary fill says `Open Long`, `Close Short`, `Buy`, `Sell`, ... and comes from an order that
its account placed. The words here say that something else happened.
"""

__all__ = [
    "AUTO_DELEVERAGING",
    "CONVERSIONS",
    "LIQUIDATED",
    "NET_CHILD_VAULTS",
    "NOT_TRADED",
    "SETTLEMENT",
    "SPOT_DUST",
]

CONVERSIONS = ("Split Outcome", "Merge Outcome", "Negate Outcome", "Merge Question")
"""One outcome token becomes others, or USD does, at a conventional price (section 7)."""

SETTLEMENT = "Settlement"
"""A market ends and pays its price: outcomes, and coins that are delisted."""

NET_CHILD_VAULTS = "Net Child Vaults"
"""Opposite positions of a vault's child vaults cancel."""

SPOT_DUST = "Spot Dust Conversion"
"""A spot balance that is worth less than a dollar becomes USDC."""

NOT_TRADED = (*CONVERSIONS, SETTLEMENT, NET_CHILD_VAULTS, SPOT_DUST)
"""No order met another one on a book."""

LIQUIDATED = "Liquidated"
"""How the word of a backstop liquidation begins: `Liquidated Cross Long`, ... (section 2)."""

AUTO_DELEVERAGING = "Auto-Deleveraging"
"""The exchange closes a position against a bankrupt one: forced, but no liquidation."""
