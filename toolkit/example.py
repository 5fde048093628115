"""Example accounts of the simulated exchange, by name.

Each name is an address of the default session's world:

>>> import toolkit as tk
>>> session = tk.local(seed=7, size="tiny")
>>> fills = tk.user_fills(tk.example.LIQUIDATED)
>>> bool(fills["dir"].str.startswith("Liquidated").any())
True

`stories` lists them all, with one sentence about each. Another seed has other addresses with the
same names.
"""

from typing import TYPE_CHECKING

import pandas as pd

from toolkit.client import Session, current_session
from toolkit.contract.source_tables import WorldFacts
from toolkit.errors import NotConnected

__all__ = ["stories"]

# Type checkers and editors read these names; the session has the addresses.
BORROWER: str
BUILDER: str
DELEVERAGED: str
ISOLATED: str
LARGE: str
LIQUIDATED: str
MARKET_MAKER: str
PORTFOLIO_MARGIN: str
SOLD: str
SPOT_TRADER: str
SQUEEZED: str
STAKER: str
SUB_ACCOUNT: str
TRIMMED: str
TWAP_USER: str
UNIFIED: str
VALIDATOR: str
VAULT: str
WHALE: str


def stories(session: Session | None = None) -> pd.DataFrame:
    """List the example accounts.

    Parameters
    ----------
    session : Session, optional
        A session of `toolkit.local`; by default the default session.

    Returns
    -------
    DataFrame
        One row for each account: ``name`` (an attribute of ``tk.example``), ``address``,
        ``story``.

    Raises
    ------
    NotConnected
        If there is no session, or its source is not a simulated exchange.

    Examples
    --------
    >>> import toolkit as tk
    >>> session = tk.local(seed=7, size="tiny", default=False)
    >>> stories(session)["name"].tolist()[:3]
    ['WHALE', 'MARKET_MAKER', 'TWAP_USER']
    """
    world = _simulated_world(session)
    texts = world["stories"]
    rows = [(name, address, texts[name]) for name, address in world["examples"].items()]
    return pd.DataFrame(rows, columns=["name", "address", "story"], dtype="str")


class _NoExample(NotConnected, AttributeError):
    """No such account; it is also an AttributeError, as `hasattr` and `help` expect."""


def _simulated_world(session: Session | None = None) -> WorldFacts:
    try:
        session = current_session(session)
    except NotConnected:
        raise _NoExample(
            "tk.example has the accounts of a simulated exchange, but there is no session. "
            "Call tk.local() first"
        ) from None
    world = session.world
    if not isinstance(world, dict) or "examples" not in world:
        label = "" if session.label == session.base_url else f" ({session.label})"
        raise _NoExample(
            f"tk.example needs a session of tk.local(), but this session uses the service at "
            f"{session.base_url}{label}. If it serves a simulated exchange of the same seed and "
            "size, the addresses of tk.local() are also valid there"
        )
    return world


if not TYPE_CHECKING:  # so that type checkers use the names above and report misspelt ones

    def __getattr__(name: str) -> str:
        if name.startswith("_"):
            raise AttributeError(f"module 'toolkit.example' has no attribute {name!r}")
        examples = _simulated_world()["examples"]
        if name not in examples:
            known = ", ".join(sorted(examples))
            raise _NoExample(f"unknown example {name!r}; choose one of {known}")
        return examples[name]


def __dir__() -> list[str]:
    try:
        return [*sorted(_simulated_world()["examples"]), *__all__]
    except NotConnected:
        return list(__all__)
