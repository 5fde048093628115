"""Variants of a world's tables: as the live service shows them at some other time."""

from dataclasses import replace

from msgspec import UNSET
from msgspec.structs import replace as changed

from toolkit.contract.records import ClearinghouseState
from toolkit.contract.sources import Sources

__all__ = ["without_trade_sizes"]


def without_trade_sizes(sources: Sources) -> Sources:
    """Return the tables with no `maxTradeSzs` in any position, as the live service since 2025.

    Parameters
    ----------
    sources : Sources
        Tables of a world; they are not changed.

    Returns
    -------
    Sources
        The same tables, with other account states (docs/live_service.md, section 1).

    Examples
    --------
    >>> from toolkit.simulation import simulate
    >>> made = without_trade_sizes(simulate(7, "tiny").sources)
    >>> {row.position.max_trade_szs for state in made.states[""].values()
    ...     for row in state.asset_positions}
    {UNSET}
    """
    states = {
        dex: {user: _without_trade_sizes(state) for user, state in states.items()}
        for dex, states in sources.states.items()
    }
    return replace(sources, states=states)


def _without_trade_sizes(state: ClearinghouseState) -> ClearinghouseState:
    positions = [
        changed(row, position=changed(row.position, max_trade_szs=UNSET))
        for row in state.asset_positions
    ]
    return changed(state, asset_positions=positions)
