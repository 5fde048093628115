"""What a fill costs: the exchange's part, the builder's and the deployer's."""

from toolkit.simulation.orders import Ticket
from toolkit.simulation.quantities import rounded_share

__all__ = ["perp_fees"]

_MILLION = 10**6


def perp_fees(
    notional: int, ticket: Ticket, crossed: bool, deployed: bool
) -> tuple[int, int, int | None]:
    """Give the whole fee of a fill, and the builder's and the deployer's part of it.

    Parameters
    ----------
    notional : int
        Price times size, micro-dollars.
    ticket : Ticket
        The order: whose it is, and through which builder it came.
    crossed : bool
        Whether it took.
    deployed : bool
        Whether a builder has deployed the dex.

    Returns
    -------
    tuple of int
        Millionths of the dex's collateral token (docs/live_service.md, section 6); negative is a
        rebate. The deployer's part is None on the native dex.
    """
    # ASSUMED: each part of a fee is rounded to a millionth of a dollar, half away from zero.
    # ASSUMED: on a builder-deployed dex the deployer gets as much again as the exchange.
    micro = ticket.account.taker_micro if crossed else ticket.account.maker_micro
    own = rounded_share(notional, micro, _MILLION)
    builder_fee = rounded_share(notional, ticket.builder_bps, 10_000) if ticket.builder_bps else 0
    if not deployed:
        return own + builder_fee, builder_fee, None
    deployer_fee = max(own, 0)
    return own + builder_fee + deployer_fee, builder_fee, deployer_fee
