"""Liquidation cascades: by hand, by brute force, and against the simulated exchange."""

import numpy as np
import pandas as pd
import pytest

import toolkit as tk
from tests.analysis.examples import wrong_errors
from tests.analysis.interval_coverage import (
    LEVERAGES,
    START,
    books,
    held,
    hold_share,
    owners,
    random_market,
)
from toolkit.simulation.engine.positions import check_margins
from toolkit.simulation.history import NOW_MS, run_history


def run(positions, accounts, depth, *args, **more):
    return tk.liquidations.cascade(
        positions, accounts, depth, "X", *args, max_leverage=LEVERAGES, **more
    )


class TestByHand:
    # Linear impact of 1 % for each 100,000 USD. Maintenance is 5 % of the notional.
    depth = books(0.01, 1.0)
    rows = held(("a", "X", 1e5), ("b", "X", 1e5))

    def test_second_account_falls_in_second_round(self):
        made = run(self.rows, owners(a=12e3, b=15e3), self.depth, [-0.1])
        # a: 12,000 - 10,000 < 4,500. Its 90,000 sold at 0.9: the price is 0.9 * (1 - 0.009).
        # b: 15,000 - 10,810 < 4,459.5, so another 89,190 are sold: 0.9 * (1 - 0.017919).
        assert made.rounds["accounts"].tolist() == [1, 1]
        assert made.rounds["forced_usd"].tolist() == pytest.approx([90_000, 89_190])
        assert made.rounds["coin_usd"].tolist() == pytest.approx([-90_000, -89_190])
        assert made.rounds["move"].tolist() == pytest.approx([-0.1081, -0.1161271])
        assert made.params["amplification"].tolist() == pytest.approx([1.161271])
        assert made.liquidated["user"].tolist() == ["a", "b"]
        assert made.liquidated["equity"].tolist() == pytest.approx([2_000, 4_190])
        assert made.liquidated["method"].tolist() == ["backstop", "market"]

    def test_positions_of_missing_dex_are_liquidated(self):
        rows, accounts = self.rows.assign(dex=None), owners(a=12e3, b=15e3).assign(dex=None)
        made = run(rows, accounts, self.depth, [-0.1])
        assert made.liquidated["user"].tolist() == ["a", "b"]

    def test_positions_without_dex_join_accounts_of_dexes(self):
        """a has 12,000 on the native dex, and 90,000 on flx."""
        accounts = owners(a=12e3, b=15.5e3).assign(dex="native")
        rich = accounts[:1].assign(dex="flx", cross_account_value=90e3)
        made = run(self.rows, pd.concat([rich, accounts]), self.depth, [-0.1])
        assert made.liquidated[["user", "dex"]].to_numpy().tolist() == [["a", "hyperliquid"]]

    def test_account_without_name_is_unknown(self):
        rows = self.rows.assign(user=["a", None])
        with pytest.warns(UserWarning, match="1 account of 2 .no name. cannot be measured"):
            made = run(rows, owners(a=12e3), self.depth, [-0.1])
        assert made.liquidated["user"].tolist() == ["a"]

    def test_cascade_without_backstop_trades(self):
        made = run(
            self.rows, owners(a=12e3, b=15e3), self.depth, [-0.1], backstop_trades=False
        )  # fmt: skip
        assert made.params["estimate"].tolist() == [-0.1]
        assert made.params["backstop_usd"].tolist() == pytest.approx([90_000])

    def test_what_is_not_measured_is_stated(self):
        """The book shows 200,000 USD, and 270,000 are sold; c is not in the frame of accounts."""
        rows = held(("a", "X", 3e5), ("c", "X", 4e4))
        with pytest.warns(tk.errors.UnmeasuredAccounts, match="1 account of 2 .c."):
            made = run(rows, owners(a=36e3), self.depth, [-0.1])
        largest = self.depth["bid_depth_usd"].max()
        assert made.params["extrapolated_usd"].tolist() == pytest.approx([270_000 - largest])
        assert (made.unmeasured, made.unmeasured_usd) == (1, 4e4)
        small = run(self.rows, owners(a=12e3, b=50e3), self.depth, [-0.1])
        assert small.params["extrapolated_usd"].tolist() == [max(0.0, 90_000 - largest)]
        assert (small.unmeasured, small.unmeasured_usd) == (0, 0.0)

    def test_deficit_is_loss_beyond_equity(self):
        made = run(self.rows, owners(a=12e3, b=50e3), self.depth, [-0.2])
        assert made.params["deficit_usd"].tolist() == pytest.approx([8_000])

    def test_isolated_position_is_liquidated_alone(self):
        rows = held(("a", "X", 1e5), ("a", "Y", 1e5)).assign(
            leverage_type=["isolated", "cross"], margin_used=[12e3, 0.0]
        )
        made = run(rows, owners(a=11e3), self.depth, [-0.1])
        assert made.liquidated[["margin", "coin"]].values.tolist() == [["isolated", "X"]]

    def test_coin_without_law_moves_nothing(self):
        rows = held(("a", "X", 1e5), ("a", "Y", 1e5))
        made = run(rows, owners(a=20e3), books(0.01, 1.0, "X"), [-0.1])
        assert made.params["unpriced_usd"].tolist() == [1e5]

    def test_shocked_coin_without_law_is_unknown(self):
        made = run(self.rows, owners(a=12e3, b=15e3), books(0.01, 1.0, "Y"), [-0.1, -0.01])
        assert made.params["estimate"].isna().tolist() == [True, False]

    def test_fit_gives_marginal_price(self):
        """A cost of 2 bps + 10 bps * (Q / 100,000)**0.5 has the marginal price 15 bps there."""
        usd = np.array([1e3, 1e4, 1e5, 1e6])
        bps = (2 + 10 * (usd / 1e5) ** 0.5).round(2)
        samples = pd.DataFrame(
            {"coin": "X", "amount_usd": usd, "half_spread_bps": 2.0, "timestamp": START,
             "buy_slippage_bps": bps, "sell_slippage_bps": bps}
        )  # fmt: skip
        fitted = tk.slippage.fit(samples, draws=9)
        made = run(held(("a", "X", 1e5 / 0.9)), owners(a=13e3), fitted, [-0.1])
        assert made.params["estimate"].iloc[0] == pytest.approx(0.9 * (1 - 0.0015) - 1, abs=2e-6)

    def test_account_is_liquidated_on_one_dex(self):
        """The margin of a on the dex pre holds; that on the native dex does not."""
        rows = held(("a", "X", 1e5), ("a", "pre:Y", 1e5)).assign(dex=["hyperliquid", "pre"])
        accounts = owners(a=12e3).assign(dex="hyperliquid")
        other = owners(a=30e3).assign(dex="pre")
        made = tk.liquidations.cascade(
            rows, pd.concat([other, accounts]), self.depth, "X", [-0.1, 0.05], betas=1.0,
            max_leverage={"X": 10, "pre:Y": 10},
        )  # fmt: skip
        assert made.liquidated[["user", "dex"]].values.tolist() == [["a", "hyperliquid"]]
        assert made.liquidated["equity"].tolist() == pytest.approx([2_000])
        sums = ["rounds", "accounts", "forced_usd", "backstop_usd", "deficit_usd", "unpriced_usd"]
        assert made.params[sums].values.tolist() == [[1, 1, 9e4, 9e4, 0, 0], [0] * 6]
        assert made.params["amplification_low"].isna().all()  # impact is known from one day
        assert made.rounds.attrs["toolkit"]["coin"] == "X"

    def test_default_shocks_are_falls_and_rises(self):
        made = run(self.rows, owners(a=1e6, b=1e6), self.depth)
        falls, rises = made.params["shock"][:6], made.params["shock"][6:]
        assert rises.tolist() == [0.02, 0.05, 0.1, 0.15, 0.2, 0.3]
        assert falls.tolist() == [-shock for shock in rises[::-1]]

    def test_errors_of_cascade(self):
        given = (self.rows, owners(a=1e6, b=1e6), self.depth)
        table = [
            (lambda: tk.liquidations.cascade(*given, "XX", max_leverage=LEVERAGES), "'XX'"),
            (lambda: run(*given, [0.0]), "shock"),
            (lambda: run(*given, [-1.0]), "shock"),
            (lambda: run(*given, lasting=-1), "lasting"),
        ]
        assert wrong_errors((call, ValueError, named) for call, named in table) == []


def brute_force(positions, accounts, a, k, shock, beta):
    """Return the final move and the liquidated accounts, one account after the other."""
    first = {"X": shock, "Y": beta * shock}
    traded, gone, move = {"X": 0.0, "Y": 0.0}, set(), dict(first)
    while True:
        new = []
        for user, value in zip(accounts["user"], accounts["cross_account_value"], strict=True):
            own = positions[positions["user"] == user]
            equity, required = value, 0.0
            for coin, size in zip(own["coin"], own["szi"], strict=True):
                equity += size * move[coin]
                required += abs(size) * (1 + move[coin]) / (2 * LEVERAGES[coin])
            if equity < required and user not in gone:
                new.append(own)
                gone.add(user)
        if not new:
            return move["X"], gone
        for own in new:
            for coin, size in zip(own["coin"], own["szi"], strict=True):
                traded[coin] -= size * (1 + move[coin])
        for coin, usd in traded.items():
            pushed = np.sign(usd) * a * (abs(usd) / 1e5) ** k
            move[coin] = (1 + first[coin]) * (1 + pushed) - 1


@pytest.mark.parametrize("seed", [0, 3])
def test_rounds_agree_with_brute_force(seed):
    positions, accounts = random_market(seed)
    a, k, beta = 0.004, 0.6, 0.5
    shocks = [-0.15, -0.08, 0.1]
    made = run(positions, accounts, books(a, k), shocks, betas=beta)
    for shock in shocks:
        move, gone = brute_force(positions, accounts, a, k, shock, beta)
        row = made.params[made.params["shock"] == shock].iloc[0]
        assert row["estimate"] == pytest.approx(move, rel=1e-9)
        assert set(made.liquidated.loc[made.liquidated["shock"] == shock, "user"]) == gone


def test_rounds_add_up():
    positions, accounts = random_market(1)
    made = run(positions, accounts, books(0.004, 0.6), betas=1.0)
    sums = made.rounds.groupby("shock")[["accounts", "forced_usd", "backstop_usd"]].sum()
    totals = made.params.set_index("shock").loc[sums.index]
    pd.testing.assert_frame_equal(sums, totals[sums.columns])
    counted = made.liquidated.groupby("shock")["notional"].agg(["size", "sum"])
    assert counted["size"].tolist() == sums["accounts"].tolist()
    assert counted["sum"].tolist() == pytest.approx(sums["forced_usd"].tolist())
    assert not made.liquidated.duplicated(["shock", "user", "coin"]).any()


def test_liquidations_without_impact_equal_buffers():
    positions, accounts = random_market(9)
    longs = positions.assign(szi=positions["szi"].abs())
    distance = tk.liquidations.buffers(accounts, longs, LEVERAGES).set_index("user")["distance"]
    made = run(longs, accounts, books(0.004, 0.6), [-0.1], betas=1.0, lasting=0.0)
    assert made.params["amplification"].tolist() == [1.0]
    assert set(made.liquidated["user"]) == set(distance[distance < 0.1].index)


def test_intervals_hold_planted_move():
    assert hold_share("cascade", 30) >= 0.85


@pytest.fixture(scope="module")
def session():
    return tk.local(seed=7, size="tiny")


@pytest.mark.parametrize("shock", [-0.6, 0.3])
def test_first_round_equals_simulated_liquidations(shock, session):
    """The margin check of the exchange, after the same shock, takes the accounts of round 1."""
    world = session.world
    states = tk.batch_clearinghouse_states(world["users"], dex="ALL_DEXES", session=session)
    tables = [tk.margin_tables(dex=dex, session=session) for dex in world["dexes"]]
    with pytest.warns(UserWarning, match="spot wallet|never liquidated"):
        made = tk.liquidations.cascade(
            states.positions, states.accounts, tk.current_depth(session=session), "BTC", [shock],
            betas=1.0, lasting=0.0, max_leverage=tk.many(tk.meta, world["dexes"], session=session),
            margin_tables=tk.concat(tables),
        ).liquidated  # fmt: skip
    exchange = run_history(7, "tiny")
    for prices in (exchange.prices.mark, exchange.prices.bid, exchange.prices.ask):
        prices[:, -1] = np.round(prices[:, -1] * (1 + shock))
    before = len(exchange.ledger)
    check_margins(exchange, NOW_MS)
    taken = {
        (user, row.delta.leverage_type.lower(), position.coin)
        for user, row in exchange.ledger[before:]
        if row.delta.type == "liquidation"
        for position in row.delta.liquidated_positions
    }
    # Market makers are not liquidated there, and market makers and hedgers refill margins. States
    # do not have the collateral of unified and portfolio-margin accounts.
    exempt = {
        each.address
        for each in exchange.accounts
        if each.strategy in ("maker", "hedger") or each.mode >= 2
    }
    wanted = {
        (row.user, row.margin, coin)
        for row in made.itertuples()
        for coin in ([row.coin] if row.margin == "isolated" else _cross_coins(states, row))
    }
    assert {row for row in taken if row[0] not in exempt} == {
        row for row in wanted if row[0] not in exempt
    }
    assert taken


def _cross_coins(states, row):
    own = states.positions
    dex = "native" if row.dex == "hyperliquid" else row.dex
    return own.loc[
        (own["user"] == row.user) & (own["leverage_type"] == "cross") & (own["dex"] == dex), "coin"
    ].tolist()
