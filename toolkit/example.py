"""Accounts of the simulated exchange that are worth looking at, by name.

Each name is an address of the default session's world, so that a notebook reads well:

>>> import toolkit as tk
>>> session = tk.local(seed=7, size="tiny")
>>> fills = tk.user_fills(tk.example.LIQUIDATED)
>>> bool(fills["dir"].str.startswith("Liquidated").any())
True

`stories` lists them all, with a line on each one's story. Another seed has other addresses behind
the same names.
"""

from typing import TYPE_CHECKING, Any

import pandas as pd

from toolkit.client import Session, current_session
from toolkit.errors import NotConnected

__all__ = ["stories"]

# What a type checker and an editor see; the addresses are those of the session.
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
    """List the accounts worth looking at.

    Parameters
    ----------
    session : Session, optional
        A session of `toolkit.local`; the default one when not given.

    Returns
    -------
    DataFrame
        One row an account: ``name``, as an attribute of ``tk.example``; ``address``; ``story``.

    Raises
    ------
    NotConnected
        If there is no session, or its source is no simulated exchange.

    Examples
    --------
    >>> import toolkit as tk
    >>> session = tk.local(seed=7, size="tiny", default=False)
    >>> stories(session)["name"].tolist()[:3]
    ['WHALE', 'MARKET_MAKER', 'TWAP_USER']
    """
    world = _world(session)
    told = world["stories"]
    rows = [(name, address, told[name]) for name, address in world["examples"].items()]
    return pd.DataFrame(rows, columns=["name", "address", "story"], dtype="str")


class _NoExample(NotConnected, AttributeError):
    """There is no such account; an AttributeError too, for `hasattr`, `help` and their like."""


def _place(session: Session) -> str:
    place = f"a service at {session.base_url}"
    return place if session.label == session.base_url else f"{place} ({session.label})"


def _world(session: Session | None = None) -> dict[str, Any]:
    try:
        session = current_session(session)
    except NotConnected:
        raise _NoExample(
            "tk.example names accounts of a simulated exchange, and there is no session: "
            "call tk.local() first"
        ) from None
    world = session.world
    if not isinstance(world, dict) or "examples" not in world:
        raise _NoExample(
            f"this session asks {_place(session)}; tk.example needs tk.local(). Where a simulated "
            "exchange of the same seed and size is served, the same addresses are valid: note them "
            "from tk.local()"
        )
    return world


if not TYPE_CHECKING:  # a type checker sees the names above, and a misspelt one

    def __getattr__(name: str) -> str:
        if name.startswith("_"):
            raise AttributeError(f"module 'toolkit.example' has no attribute {name!r}")
        examples = _world()["examples"]
        if name not in examples:
            known = ", ".join(sorted(examples))
            raise _NoExample(f"there is no example {name!r}: choose one of {known}")
        return examples[name]


def __dir__() -> list[str]:
    try:
        return [*sorted(_world()["examples"]), *__all__]
    except NotConnected:
        return list(__all__)
