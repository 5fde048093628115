"""Funding: by coin and over time, its running total, carry, and the basis of perps."""

from typing import Final, Unpack, overload

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from toolkit.funding import PerpBasis
from toolkit.plots import axes, formats, style
from toolkit.plots.style import Look, PanelLook

_MAX_BARS: Final = 16
_CARRY_PARTS: Final = {
    "funding_bps": "funding", "basis_bps": "basis", "entry_bps": "entry", "exit_bps": "exit",
    "perp_bps": "perp", "spot_bps": "spot", "fees_bps": "fees",
}  # fmt: skip
_NOT_KEYS: Final = ("time", "usdc", "payments", "total")
_MOST: Final = 14


@style.draws_result("Funding by coin")
def funding_by_coin(sums: pd.DataFrame, **look: Unpack[PanelLook]) -> Axes:
    """Draw funding paid and received for each coin, sorted by net.

    Parameters
    ----------
    sums : DataFrame
        `tk.funding.sums` by one column (``"coin"``, ``"user"``, ``"dex"``, ...), float or exact.
    ax : Axes, optional
        Axes to draw on. By default, a new figure.
    theme : {"auto", "light", "dark"}, default "auto"
        Theme of the figure. "auto" takes the theme of `tk.plots.use`.
    transparent : bool, default False
        Whether a new figure has no background.

    Returns
    -------
    Axes
        Horizontal bars in USD: paid to the left, received to the right, and a mark at net. With
        more than 16 rows, the smallest are summed in one bar.

    Examples
    --------
    >>> import pandas as pd
    >>> rows = pd.DataFrame({"coin": ["BTC", "ETH"], "paid": [-2.0, 0.0],
    ...                      "received": [0.5, 1.0], "net": [-1.5, 1.0]})
    >>> [text.get_text() for text in funding_by_coin(rows).get_yticklabels()]
    ['BTC', 'ETH']
    """
    amounts = ["paid", "received", "net"]
    key = next(name for name in sums.columns if name not in amounts)
    rows = sums[amounts].astype("float64").assign(name=sums[key].astype(str))
    rows = rows.iloc[(rows["paid"] - rows["received"]).argsort(kind="stable")]
    if len(rows) > _MAX_BARS:
        rest = rows.iloc[_MAX_BARS - 1 :]
        others = rest[amounts].sum().to_frame().T.assign(name=f"{len(rest)} others")
        rows = pd.concat([rows.iloc[: _MAX_BARS - 1], others])
    # The lowest net is first: the first bar is at the bottom.
    rows = rows.sort_values(["net", "name"], kind="stable", ignore_index=True)
    panel = style.open_panel(sums, look, (7.2, 1.5 + 0.27 * max(4, len(rows))))
    names, texts = rows["name"].tolist(), [formats.usd_amount(net, True) for net in rows["net"]]
    at, colours = panel.name_rows(names, texts), (panel.theme.bad, panel.theme.good)
    panel.stack_bars(at, rows[["paid", "received"]], colours, 0.62, horizontal=True)
    panel.draw_net(rows["net"], at)
    x = "USD, paid below 0; net in figures at the right"
    panel.label_axes(x, x_ticks=formats.usd_tick, legend=3)
    parts = ", ".join(f"{name} {text}" for name, text in zip(names[::-1], texts[::-1], strict=True))
    total = formats.usd_amount(rows["net"].sum(), signed=True)
    return panel.finish(f"Funding by coin in USD, net {total} in all: {parts}.")


@style.draws_result("Funding over time")
def funding_over_time(sums: pd.DataFrame, **look: Unpack[PanelLook]) -> Axes:
    """Draw funding paid and received in each hour, day or week, and the running net.

    Parameters
    ----------
    sums : DataFrame
        `tk.funding.sums` by ``"hour"``, ``"day"`` or ``"week"``, float or exact.
    ax : Axes, optional
        Axes to draw on. By default, a new figure.
    theme : {"auto", "light", "dark"}, default "auto"
        Theme of the figure. "auto" takes the theme of `tk.plots.use`.
    transparent : bool, default False
        Whether a new figure has no background.

    Returns
    -------
    Axes
        Bars and a line in USD over time (UTC).

    Raises
    ------
    ValueError
        If the sums are not by time.

    Examples
    --------
    >>> import pandas as pd
    >>> rows = pd.DataFrame({"day": pd.to_datetime([0], unit="ms", utc=True), "paid": [-2.0],
    ...                      "received": [0.5], "net": [-1.5]})
    >>> funding_over_time(rows).get_xlabel()
    '01 Jan 1970 to 01 Jan 1970, UTC'
    """
    panel = style.open_panel(sums, look)
    key, rows, edges = axes.sort_periods(sums)
    width = 0.86 * (axes.PERIOD_LENGTHS[key] / axes.PERIOD_LENGTHS["day"])
    times, colours = rows[key], (panel.theme.bad, panel.theme.good)
    panel.stack_bars(times, rows[["paid", "received"]], colours, width, align="edge")
    net = np.append(0.0, rows["net"].astype("float64").to_numpy().cumsum())
    total = formats.usd_amount(net[-1], signed=True)
    label = f"running net {total}"
    panel.ax.plot(edges, net, color=panel.theme.text, linewidth=1.8, label=label)
    panel.add_zero_line(is_edge=True)
    panel.set_time_axis(times, "USD, paid below 0", y_ticks=formats.usd_tick, legend=3)
    return panel.finish(
        f"Funding in USD by {key} from {times.iloc[0]:%Y-%m-%d} to {times.iloc[-1]:%Y-%m-%d} UTC; "
        f"the running net ends at {total}."
    )


@style.draws_result("Running total of funding")
def funding_accrual(accrual: pd.DataFrame, **look: Unpack[PanelLook]) -> Axes:
    """Draw the running total of funding over time, a line for each group.

    Parameters
    ----------
    accrual : DataFrame
        `tk.funding.accrual`, float or exact.
    ax : Axes, optional
        Axes to draw on. By default, a new figure.
    theme : {"auto", "light", "dark"}, default "auto"
        Theme of the figure. "auto" takes the theme of `tk.plots.use`.
    transparent : bool, default False
        Whether a new figure has no background.

    Returns
    -------
    Axes
        Steps in USD over time (UTC), positive if received. With more than six groups, those with
        the largest totals are drawn, and the label states how many are left out.

    Examples
    --------
    >>> import pandas as pd
    >>> rows = pd.DataFrame({"coin": "BTC", "time": pd.to_datetime([0, 1], unit="h", utc=True),
    ...                      "usdc": [1.0, 2.0], "payments": 1, "total": [1.0, 3.0]})
    >>> funding_accrual(rows).get_ylabel()
    'funding, USD, paid below 0'
    """
    panel = style.open_panel(accrual, look)
    rows = accrual.sort_values("time", kind="stable").astype({"total": "float64"})
    lines = axes.split_groups(rows, _NOT_KEYS, "all")
    lines.sort(key=lambda line: -abs(line[1]["total"].iloc[-1]))
    drawn, more = lines[: axes.MAX_LINES], len(lines) - axes.MAX_LINES
    others = f"; {more} smaller ones not drawn" if more > 0 else ""
    panel.add_zero_line()
    words = []
    for number, (name, own) in enumerate(drawn):
        end = own["total"].iloc[-1]
        panel.ax.plot(
            [*own["time"], rows["time"].iloc[-1]], [*own["total"], end], linewidth=1.8, label=name,
            drawstyle="steps-post", markevery=[len(own)], markersize=6, **panel.line_style(number),
        )  # fmt: skip
        words.append(f"{name} {formats.usd_amount(end, signed=True)}")
    y, looks = "funding, USD, paid below 0", {"y_ticks": formats.usd_tick, "legend": len(drawn)}
    panel.set_time_axis(rows["time"], y, note=others, **looks)
    return panel.finish(f"Running total of funding in USD at the end: {', '.join(words)}{others}.")


@style.draws_result("Carry")
def carry(carry: pd.DataFrame, **look: Unpack[PanelLook]) -> Axes:
    """Draw what positions earn in funding, what they cost, and the net, for each coin.

    Parameters
    ----------
    carry : DataFrame
        `tk.funding.hedged_carry`, or `tk.funding.carry`.
    ax : Axes, optional
        Axes to draw on. By default, a new figure.
    theme : {"auto", "light", "dark"}, default "auto"
        Theme of the figure. "auto" takes the theme of `tk.plots.use`.
    transparent : bool, default False
        Whether a new figure has no background.

    Returns
    -------
    Axes
        Horizontal bars in basis points of the notional: gains to the right, costs to the left, and
        a mark at the net, with its interval. The 16 coins with the highest net are drawn.

    Examples
    --------
    >>> import pandas as pd
    >>> rows = pd.DataFrame({"coin": ["XYZ"], "hours": 240.0, "funding_bps": 240.0,
    ...     "basis_bps": 0.0, "perp_bps": -22.0, "spot_bps": -12.0, "fees_bps": -23.0,
    ...     "net_bps": 183.0, "low": 150.0, "high": 216.0})
    >>> [text.get_text() for text in carry(rows).get_yticklabels()]
    ['XYZ']
    """
    panel = style.open_panel(carry, look)
    rows = style.not_empty(carry.dropna(subset="net_bps"))
    rows = rows.sort_values("net_bps", kind="stable").tail(_MAX_BARS)
    at, text = panel.name_rows(rows["coin"].tolist()), panel.theme.text
    parts = rows.filter([*_CARRY_PARTS]).rename(columns=_CARRY_PARTS)
    panel.stack_bars(at, parts, (*panel.theme.groups, text), 0.55, horizontal=True)
    panel.ax.hlines(at, rows["low"], rows["high"], color=text, linewidth=1.3)
    panel.draw_net(rows["net_bps"], at)
    days, best = rows["hours"].iloc[0] / 24, rows.iloc[-1]
    x = f"gain over {days:g} days, bps of the notional"
    panel.label_axes(x, legend=parts.shape[1] + 1)
    return panel.finish(
        f"Carry of {len(rows)} coins over {days:g} days. The highest net is that of {best['coin']}:"
        f" {formats.basis_points(best['net_bps'])} bps."
    )


@overload
def basis(basis: PerpBasis, *, ax: None = None, **look: Unpack[Look]) -> Figure: ...
@overload
def basis(basis: PerpBasis, *, ax: Axes, **look: Unpack[Look]) -> Axes: ...
@style.draws_result("Basis")
def basis(basis: PerpBasis, **look: Unpack[PanelLook]) -> Figure | Axes:
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
    sizes = style.not_empty(sizes.fillna(0.0)).sort_values(ascending=False)
    coins = sizes.index[:_MOST].tolist()
    rates = _choose_rates(basis.rates)
    height = 1.5 + 0.24 * max(len(coins), len(rates), 3)
    panels = style.open_panels(basis.params, look, (10.2, height), widths=(1, 1, 1))
    table, good = basis.params.set_index("coin"), panels[0].theme.good
    halves, means = (
        table[table["name"] == name].loc[coins] for name in ("half_life_hours", "mean_bps")
    )
    is_known = bool(halves["estimate"].notna().any())
    if is_known:
        _draw_rows(panels[0], coins, halves, good, "half-life of the basis, hours", "perp")
        panels[0].ax.set_xlim(left=0)
    else:
        panels[0].write_note("half-life not known:\nit needs ten pairs\nof neighbouring hours")
    for panel in panels[1:2]:
        _draw_rows(panel, coins, means, good, "mean basis (mark over oracle), bps", "perp")
        panel.add_zero_line(vertical=True)
        if is_known:
            panel.ax.set_yticklabels([])
    for panel in panels[2:]:
        names, shares = rates["shown"].tolist(), 100 * rates[axes.INTERVAL]
        x, y = "funding that longs pay, % a year", "dex, or asset and dex"
        _draw_rows(panel, names, shares, panel.theme.bad, x, y)
        panel.add_zero_line(vertical=True)
    parts = [
        f"{coin}: mean {formats.basis_points(mean)} bps, half-life "
        f"{'not known' if np.isnan(hours) else f'{hours:.1f} hours'}"
        for coin, mean, hours in zip(coins[:3], means["estimate"], halves["estimate"], strict=False)
    ]
    return panels[0].finish(f"Basis of {len(coins)} coins by the hour. {'; '.join(parts)}.")


def _choose_rates(rates: pd.DataFrame) -> pd.DataFrame:
    """Return the rates of dexes, and of assets on several dexes, the largest first."""
    shared = rates.loc[(rates["dex"] == "all") & (rates["asset"] != "all"), "asset"]
    by_size = rates.sort_values("open_interest_usd", ascending=False, kind="stable")
    dex, is_whole = by_size["dex"].replace("all", "all dexes"), by_size["asset"] == "all"
    by_size = by_size.assign(shown=dex.where(is_whole, by_size["asset"] + ", " + dex))
    both = by_size[by_size["asset"].isin(shared)].sort_values("asset", kind="stable")
    return pd.concat([by_size[is_whole], both]).head(_MOST)


def _draw_rows(
    panel: axes.Panel, names: list[str], rows: pd.DataFrame, colour: str, x: str, y: str
) -> None:
    """Draw one estimate with its interval for each name, the first on top."""
    at, rows = panel.name_rows(names, from_top=True), rows[axes.INTERVAL].astype("float64")
    # An interval without an end continues to the edge of the panel.
    known = rows.where(np.isfinite(rows))
    top = 1.2 * np.fmax(known["high"].fillna(known["estimate"]).max(), 0.0)
    panel.draw_intervals(at, known.assign(high=rows["high"].clip(upper=top)), "estimate", colour)
    panel.ax.xaxis.set_major_locator(MaxNLocator(nbins=6))
    panel.label_axes(x, y, x_ticks=formats.signed_number)
