"""Values of `dir` of fills that are no ordinary trades (docs/live_service.md, sections 2 and 7).

An ordinary fill has `Open Long`, `Close Short`, `Buy`, `Sell`, ... and comes from an order of its
account. The values here mean something else.
"""

CONVERSIONS = ("Split Outcome", "Merge Outcome", "Negate Outcome", "Merge Question")
"""Outcome tokens or USD become other tokens at a conventional price (section 7)."""

SETTLEMENT = "Settlement"
"""A market ends and pays its price: an outcome, or a delisted coin."""

NET_CHILD_VAULTS = "Net Child Vaults"
"""Opposite positions of a vault's child vaults cancel."""

SPOT_DUST = "Spot Dust Conversion"
"""A spot balance below one dollar becomes USDC."""

NOT_TRADED = (*CONVERSIONS, SETTLEMENT, NET_CHILD_VAULTS, SPOT_DUST)
"""Fills without two orders that met on a book."""

LIQUIDATED = "Liquidated"
"""The start of `dir` of a backstop liquidation: `Liquidated Cross Long`, ... (section 2)."""

AUTO_DELEVERAGING = "Auto-Deleveraging"
"""The exchange closes a position against a bankrupt one: forced, but not a liquidation."""

BORROW_LIQUIDATIONS = ("Partial Borrow Liquidation", "Backstop Borrow Liquidation")
"""The exchange sells the collateral of a loan: a liquidation of the account."""

ORDINARY = (
    *("Open Long", "Close Long", "Open Short", "Close Short", "Long > Short", "Short > Long"),
    *("Buy", "Sell"),
)
"""Fills of the account's own orders, and of its liquidations by market order."""

KNOWN = (*ORDINARY, *NOT_TRADED, *BORROW_LIQUIDATIONS, AUTO_DELEVERAGING)
"""All values, apart from those that begin with `LIQUIDATED`."""
