"""Print empyrical's figures of daily returns as JSON.

Arguments: the folder with empyrical, and the returns as JSON.
"""

import json
import sys

sys.path.insert(0, sys.argv[1])

import empyrical
import pandas as pd

values = json.loads(sys.argv[2])
returns = pd.Series(values, index=pd.date_range("2025-01-01", periods=len(values)))
year = {"annualization": 365}
print(
    json.dumps(
        {
            "total_return": float(empyrical.cum_returns_final(returns)),
            "annual_return": float(empyrical.annual_return(returns, **year)),
            "volatility": float(empyrical.annual_volatility(returns, **year)),
            "sharpe": float(empyrical.sharpe_ratio(returns, **year)),
            "sortino": float(empyrical.sortino_ratio(returns, **year)),
            "max_drawdown": float(empyrical.max_drawdown(returns)),
            "calmar": float(empyrical.calmar_ratio(returns, **year)),
            "value_at_risk": float(empyrical.value_at_risk(returns)),
            "expected_shortfall": float(empyrical.conditional_value_at_risk(returns)),
        }
    )
)
