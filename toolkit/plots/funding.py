"""Funding: paid and received by coin and over time, and its running total."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from toolkit.plots import axes, formats, style
from toolkit.plots.result_checks import draws_result
from toolkit.plots.themes import Theme, ThemeName

_MAX_BARS = 16
_CARRY_PARTS = {
    "funding_bps": "funding", "basis_bps": "basis", "entry_bps": "entry", "exit_bps": "exit",
    "perp_bps": "perp", "spot_bps": "spot", "fees_bps": "fees",
}  # fmt: skip
_NOT_KEYS = {"time", "usdc", "payments", "total"}


@draws_result
def funding_by_coin(
    sums: pd.DataFrame,
    *,
    ax: Axes | None = None,
    theme: ThemeName = "auto",
    transparent: bool = False,
) -> Axes:
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
    rows = _rank_rows(sums) if len(sums) else sums
    size = (7.2, 1.5 + 0.27 * max(4, len(rows)))
    ax, colours = style.new_axes(ax, theme, transparent, size)
    _draw_coin_bars(ax, colours, rows) if len(rows) else style.draw_no_data(ax, colours)
    words = _describe_coins(rows)
    return style.finish_axes(ax, colours, words, sums)


def _rank_rows(sums: pd.DataFrame) -> pd.DataFrame:
    """Return names and floats, the lowest net first: the first bar is at the bottom."""
    key = next(name for name in sums.columns if name not in ("paid", "received", "net"))
    rows = sums[["paid", "received", "net"]].astype("float64").reset_index(drop=True)
    rows.insert(0, "name", sums[key].astype(str).to_numpy())
    if len(rows) > _MAX_BARS:
        size = (rows["received"] - rows["paid"]).sort_values(ascending=False, kind="stable")
        rest = rows.loc[size.index[_MAX_BARS - 1 :]]
        others = rest[["paid", "received", "net"]].sum().to_frame().T
        others.insert(0, "name", f"{len(rest)} others")
        rows = pd.concat([rows.drop(rest.index), others])
    return rows.sort_values(["net", "name"], kind="stable").reset_index(drop=True)


def _draw_coin_bars(ax: Axes, theme: Theme, rows: pd.DataFrame) -> None:
    at = axes.name_rows(ax, theme, rows["name"].tolist())
    ax.barh(at, rows["paid"], height=0.62, color=theme.bad, label="paid")
    ax.barh(at, rows["received"], height=0.62, color=theme.good, label="received")
    axes.draw_net(ax, theme, rows["net"], at)
    for y, net in enumerate(rows["net"]):
        axes.label_right_edge(ax, y, formats.usd_amount(net, signed=True), theme.text)
    ax.set_xlabel("USD, paid below 0; net in figures at the right")
    axes.set_usd_ticks(ax.xaxis)
    handles, _ = ax.get_legend_handles_labels()
    axes.add_legend(ax, theme, ncols=3, handles=[*handles[1:], handles[0]])


def _describe_coins(rows: pd.DataFrame) -> str:
    if not len(rows):
        return "Funding by coin: no data."
    parts = [
        f"{row.name_} {formats.usd_amount(row.net, signed=True)}"
        for row in rows.rename(columns={"name": "name_"}).iloc[::-1].itertuples()
    ]
    total = formats.usd_amount(rows["net"].sum(), signed=True)
    return f"Funding by coin in USD, net {total} in all: {', '.join(parts)}."


@draws_result
def funding_over_time(
    sums: pd.DataFrame,
    *,
    ax: Axes | None = None,
    theme: ThemeName = "auto",
    transparent: bool = False,
) -> Axes:
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
    ax, colours = style.new_axes(ax, theme, transparent)
    words = "Funding over time: no data."
    if len(sums):
        words = _draw_periods(ax, colours, sums)
    else:
        style.draw_no_data(ax, colours)
    return style.finish_axes(ax, colours, words, sums)


def _draw_periods(ax: Axes, theme: Theme, sums: pd.DataFrame) -> str:
    key = axes.period_column(sums)
    rows = sums.sort_values(key, kind="stable")
    net = np.append(0.0, rows["net"].astype("float64").to_numpy().cumsum())
    for name, colour in (("paid", theme.bad), ("received", theme.good)):
        heights = rows[name].astype("float64")
        width = 0.86 * (axes.PERIOD_LENGTHS[key] / axes.PERIOD_LENGTHS["day"])
        ax.bar(rows[key], heights, width=width, align="edge", color=colour, label=name)
    label = f"running net {formats.usd_amount(net[-1], signed=True)}"
    ends = [rows[key].iloc[0], *(rows[key] + axes.PERIOD_LENGTHS[key])]
    ax.plot(ends, net, color=theme.text, linewidth=1.8, label=label)
    ax.axhline(0, color=theme.muted, linewidth=0.8)
    ax.spines["bottom"].set_visible(False)
    axes.set_time_axis(ax, rows[key].iloc[0], rows[key].iloc[-1])
    ax.set_ylabel("USD, paid below 0")
    axes.set_usd_ticks(ax.yaxis)
    axes.add_legend(ax, theme, ncols=3)
    first, last = f"{rows[key].iloc[0]:%Y-%m-%d}", f"{rows[key].iloc[-1]:%Y-%m-%d}"
    return (
        f"Funding in USD by {key} from {first} to {last} UTC; "
        f"the running net ends at {formats.usd_amount(net[-1], signed=True)}."
    )


@draws_result
def funding_accrual(
    accrual: pd.DataFrame,
    *,
    ax: Axes | None = None,
    theme: ThemeName = "auto",
    transparent: bool = False,
) -> Axes:
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
    ax, colours = style.new_axes(ax, theme, transparent)
    lines = _accrual_lines(accrual) if len(accrual) else []
    _draw_accrual(ax, colours, lines) if lines else style.draw_no_data(ax, colours)
    return style.finish_axes(ax, colours, _describe_accrual(lines), accrual)


def _accrual_lines(accrual: pd.DataFrame) -> list[tuple[str, pd.DataFrame]]:
    keys = [name for name in accrual.columns if name not in _NOT_KEYS]
    rows = accrual.assign(total=accrual["total"].astype("float64"))
    split = rows.groupby(keys, sort=True) if keys else [("all", rows)]
    lines = [(axes.group_name(key), group.sort_values("time")) for key, group in split]
    return sorted(lines, key=lambda line: -abs(float(line[1]["total"].iloc[-1])))


def _draw_accrual(ax: Axes, theme: Theme, lines: list[tuple[str, pd.DataFrame]]) -> None:
    first = min(rows["time"].iloc[0] for _, rows in lines)
    last = max(rows["time"].iloc[-1] for _, rows in lines)
    axes.add_zero_line(ax, theme)
    for number, (name, rows) in enumerate(lines[: axes.MAX_LINES]):
        line = axes.line_style(theme, number)
        ax.plot(
            [*rows["time"], last],
            [*rows["total"], rows["total"].iloc[-1]],
            drawstyle="steps-post",
            color=line.colour,
            linestyle=line.dashes,
            linewidth=1.8,
            marker=line.marker,
            markevery=[len(rows)],
            markersize=6,
            label=name,
        )
    axes.set_usd_ticks(ax.yaxis)
    axes.set_time_axis(ax, first, last)
    left_out = len(lines) - axes.MAX_LINES
    if left_out > 0:
        ax.set_xlabel(f"{ax.get_xlabel()}; {left_out} smaller ones not drawn")
    ax.set_ylabel("funding, USD, paid below 0")
    handles, labels = ax.get_legend_handles_labels()
    axes.add_legend(ax, theme, ncols=min(6, len(labels)), handles=handles)


def _describe_accrual(lines: list[tuple[str, pd.DataFrame]]) -> str:
    if not lines:
        return "Running total of funding: no data."
    ends = [
        f"{name} {formats.usd_amount(rows['total'].iloc[-1], signed=True)}"
        for name, rows in lines[: axes.MAX_LINES]
    ]
    more = len(lines) - axes.MAX_LINES
    others = f"; {more} smaller ones not drawn" if more > 0 else ""
    return f"Running total of funding in USD at the end: {', '.join(ends)}{others}."


@draws_result
def carry(
    carry: pd.DataFrame,
    *,
    ax: Axes | None = None,
    theme: ThemeName = "auto",
    transparent: bool = False,
) -> Axes:
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
    ax, colours = style.new_axes(ax, theme, transparent)
    rows = carry.dropna(subset="net_bps") if len(carry) else carry
    if rows.empty:
        style.draw_no_data(ax, colours)
        return style.finish_axes(ax, colours, "Carry: no data.", carry)
    rows = rows.sort_values("net_bps", kind="stable").tail(_MAX_BARS)
    at = axes.name_rows(ax, colours, rows["coin"].tolist())
    left = {True: np.zeros(len(rows)), False: np.zeros(len(rows))}
    parts = [name for name in _CARRY_PARTS if name in rows]
    for number, name in enumerate(parts):
        bps = rows[name].to_numpy(np.float64)
        line = axes.line_style(colours, min(number, axes.MAX_LINES - 1))
        for is_gain in (True, False):
            part = np.where((bps > 0) == is_gain, bps, 0.0)
            ax.barh(
                at, part, left=left[is_gain], height=0.55, color=line.colour, linewidth=0,
                label=_CARRY_PARTS[name] if is_gain else None,
            )  # fmt: skip
            left[is_gain] = left[is_gain] + part
    ax.hlines(at, rows["low"], rows["high"], color=colours.text, linewidth=1.3)
    axes.draw_net(ax, colours, rows["net_bps"], at)
    days = rows["hours"].iloc[0] / 24
    ax.set_xlabel(f"gain over {days:g} days, bps of the notional")
    axes.add_legend(ax, colours, ncols=len(parts) + 1)
    best = rows.iloc[-1]
    words = (
        f"Carry of {len(rows)} coins over {days:g} days. The highest net is that of {best['coin']}:"
        f" {formats.basis_points(best['net_bps'])} bps."
    )
    return style.finish_axes(ax, colours, words, carry)
