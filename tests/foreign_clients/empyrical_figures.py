"""Print empyrical's figures of each series of daily returns as JSON.

Arguments: the folder with empyrical, and the series as JSON.
"""

import json
import sys

import pandas as pd


def figures_of(empyrical, values):
    returns = pd.Series(values, index=pd.date_range("2025-01-01", periods=len(values)))
    year = {"annualization": 365}
    figures = {
        "total_return": empyrical.cum_returns_final(returns),
        "annual_return": empyrical.annual_return(returns, **year),
        "volatility": empyrical.annual_volatility(returns, **year),
        "sharpe": empyrical.sharpe_ratio(returns, **year),
        "sortino": empyrical.sortino_ratio(returns, **year),
        "max_drawdown": empyrical.max_drawdown(returns),
        "calmar": empyrical.calmar_ratio(returns, **year),
        "value_at_risk": empyrical.value_at_risk(returns),
        "expected_shortfall": empyrical.conditional_value_at_risk(returns),
    }
    return {name: float(value) for name, value in figures.items()}


if __name__ == "__main__":
    sys.path.insert(0, sys.argv[1])
    import empyrical

    print(json.dumps([figures_of(empyrical, values) for values in json.loads(sys.argv[2])]))
