"""The example of README.md: what docs/generate.py runs, and shows with its output."""

import toolkit as tk

session = tk.local(seed=7, size="demo")  # a simulated service in this process
user = tk.reports.example_account()
fills = tk.user_fills_by_time(user, "2025-09-01")
builder = tk.user_fills(user)["builder"].dropna().iloc[0]
funding = tk.builder_approved_funding_by_time(builder, "2025-09-01")
earned = tk.pnl.attribution(fills, funding[funding["user"] == user])
print(earned.loc[:, "closed_pnl":"net"].round(2).to_string(index=False))  # parts of net, and net
tk.plots.waterfall(earned).figure.savefig("waterfall.svg")
