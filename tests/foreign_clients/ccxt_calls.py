"""Run ccxt's calls against a service, and print the results as JSON.

Arguments: the folder with ccxt, the address, the key, and accounts.
"""

import json
import sys
from typing import Any

MARKETS = ("load_markets", "fetch_markets", "fetch_currencies", "fetch_tickers")
OF_USERS = (
    "fetch_my_trades",
    "fetch_orders",
    "fetch_open_orders",
    "fetch_closed_orders",
    "fetch_canceled_orders",
    "fetch_positions",
    "fetch_balance",
    "fetch_funding_history",
    "fetch_ledger",
    "fetch_deposits",
    "fetch_withdrawals",
)


def main(folder, address, key, *users):
    """Print the answers of the 17 calls of section 9, and of fetch_order_book."""
    sys.path.append(folder)
    import ccxt

    client = ccxt.hyperliquid(
        {"headers": {"Authorization": f"Bearer {key}"}, "enableRateLimit": False}
    )
    client.urls["api"] = {"public": address, "private": address}
    found: dict[str, Any] = {name: getattr(client, name)() for name in MARKETS}
    found["fetch_ticker"] = client.fetch_ticker("BTC/USDC:USDC")
    found["fetch_funding_rates"] = client.fetch_funding_rates()
    found["fetch_order_book"] = client.fetch_order_book("ETH/USDC:USDC")
    found["users"] = {}
    for user in users:
        client.walletAddress = user
        found["users"][user] = {name: getattr(client, name)() for name in OF_USERS}
    print(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
