"""Basis and funding: how fast the basis of perps reverts, and what longs pay across dexes."""

from typing import Any, Final, overload

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

from toolkit.funding import PerpBasis
from toolkit.plots import formats, style
from toolkit.plots.result_checks import draws_result
from toolkit.plots.themes import Theme, ThemeName

_MOST: Final = 14
_ALL: Final = "all"


@overload
def basis(
    basis: PerpBasis, *, ax: None = None, theme: ThemeName = "auto", transparent: bool = False
) -> Figure: ...


@overload
def basis(
    basis: PerpBasis, *, ax: Axes, theme: ThemeName = "auto", transparent: bool = False
) -> Axes: ...


@draws_result
def basis(
    basis: PerpBasis,
    *,
    ax: Axes | None = None,
    theme: ThemeName = "auto",
    transparent: bool = False,
) -> Figure | Axes:
    """Draw the half-life and the mean of the basis by coin, and funding by dex.

    Parameters
    ----------
    basis : PerpBasis
        `tk.funding.basis`.
    ax : Axes, optional
        Axes to draw the half-lives on, without the other panels.
    theme : {"auto", "light", "dark"}, default "auto"
        Theme of the figure. "auto" takes the theme of `tk.plots.use`.
    transparent : bool, default False
        Whether a new figure has no background.

    Returns
    -------
    Figure or Axes
        A new figure with three panels; or `ax`, with the first. Left: half-life of the basis in
        hours. Middle: mean basis in basis points. Both show up to 14 coins, those with the largest
        open interest. Right: annualised funding in percent, weighted by open interest, for all
        assets of each dex and for assets on several dexes. Lines are intervals. If
        no half-life is known, for example because the contexts have one time only, the left panel
        says so.

    Examples
    --------
    >>> import pandas as pd
    >>> from toolkit import funding
    >>> rows = pd.DataFrame({"name": "XYZ", "mark_px": [100.1, 100.2] * 12, "oracle_px": 100.0,
    ...     "funding": 1e-5, "open_interest": 50.0,
    ...     "time": pd.date_range("2025-09-01", periods=24, freq="h", tz="UTC")})
    >>> len(basis(funding.basis(rows)).axes)
    3
    """
    sizes = basis.hours.groupby("coin")["open_interest_usd"].mean()
    coins = sizes.fillna(0.0).sort_values(ascending=False).index[:_MOST].tolist()
    rates = _choose_rates(basis.rates)
    height = 1.5 + 0.24 * max(len(coins), len(rates), 3)
    figure, panels, colours = style.new_panels(
        ax, theme, transparent, size=(10.2, height), ratios=(1, 1, 1) if coins else (1,),
        side_by_side=True,
    )  # fmt: skip
    if coins:
        halves, means = (
            basis.params[basis.params["name"] == name].set_index("coin").loc[coins]
            for name in ("half_life_hours", "mean_bps")
        )
        is_known = bool(halves["estimate"].notna().any())
        if is_known:
            _draw_rows(panels[0], colours, coins, halves, colours.good)
            panels[0].set_ylabel("perp")
            panels[0].set_xlabel("half-life of the basis, hours")
            panels[0].set_xlim(left=0)
        else:
            text = "half-life not known:\nit needs ten pairs\nof neighbouring hours"
            style.draw_no_data(panels[0], colours, text)
        if len(panels) > 1:
            _draw_rows(panels[1], colours, coins, means, colours.good)
            panels[1].axvline(0, color=colours.muted, linewidth=0.8)
            panels[1].set_xlabel("mean basis (mark over oracle), bps")
            panels[1].set_ylabel("perp")
            if is_known:
                panels[1].set_yticklabels([])
            yearly = 100 * rates[["estimate", "low", "high"]]
            names = [_rate_name(row) for row in rates.to_dict("records")]
            _draw_rows(panels[2], colours, names, yearly, colours.bad)
            panels[2].axvline(0, color=colours.muted, linewidth=0.8)
            panels[2].set_ylabel("dex, or asset and dex")
            panels[2].set_xlabel("funding that longs pay, % a year")
    else:
        style.draw_no_data(panels[0], colours)
    words = _describe_basis(basis, coins) if coins else "Basis: no data."
    style.finish_axes(panels[0], colours, words, basis.params)
    return panels[0] if figure is None else figure


def _choose_rates(rates: pd.DataFrame) -> pd.DataFrame:
    """Return the rates of dexes, and of assets on several dexes, the largest first."""
    shared = rates.loc[(rates["dex"] == _ALL) & (rates["asset"] != _ALL), "asset"]
    whole = rates[rates["asset"] == _ALL].sort_values("open_interest_usd", ascending=False)
    both = rates[rates["asset"].isin(shared)].sort_values(
        ["asset", "open_interest_usd"], ascending=[True, False]
    )
    return pd.concat([whole, both]).head(_MOST)


def _rate_name(row: dict[Any, Any]) -> str:
    if row["asset"] == _ALL:
        return "all dexes" if row["dex"] == _ALL else str(row["dex"])
    return f"{row['asset']}, {'all dexes' if row['dex'] == _ALL else row['dex']}"


def _draw_rows(ax: Axes, theme: Theme, names: list[str], rows: pd.DataFrame, colour: str) -> None:
    """Draw one estimate with its interval for each name, the first on top."""
    style.style_axes(ax, theme, grid="x")
    places = np.arange(len(names))[::-1]
    value, low, high = (rows[column].to_numpy(np.float64) for column in ("estimate", "low", "high"))
    known = np.where(np.isfinite(value), value, np.nan)
    top = np.nanmax(np.where(np.isfinite(high), high, known), initial=0.0)
    # An interval without an end continues to the edge of the panel.
    ax.hlines(places, low, np.where(np.isinf(high), 1.2 * top, high), color=colour, linewidth=1.6)
    ax.plot(known, places, "o", color=colour, markersize=5)
    ax.set_yticks(places, names)
    for label in ax.get_yticklabels():
        label.set_parse_math(False)
    ax.set_ylim(-0.7, len(names) - 0.3)
    ax.xaxis.set_major_locator(MaxNLocator(nbins=6))
    ax.xaxis.set_major_formatter(FuncFormatter(formats.signed_number))


def _describe_basis(found: PerpBasis, coins: list[str]) -> str:
    table = found.params.set_index(["coin", "name"])["estimate"]
    parts = [
        f"{coin}: mean {formats.basis_points(table[coin, 'mean_bps'])} bps, half-life "
        f"{_hours_text(table[coin, 'half_life_hours'])}"
        for coin in coins[:3]
    ]
    return f"Basis of {len(coins)} coins by the hour. {'; '.join(parts)}."


def _hours_text(hours: float) -> str:
    return "not known" if np.isnan(hours) else f"{hours:.1f} hours"
