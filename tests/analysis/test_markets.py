"""What the name of a coin tells."""

import narwhals as nw
import pandas as pd

from toolkit.analysis.common import markets


def test_coin_name_tells_its_dex():
    coins = {
        "BTC": "hyperliquid",
        "kPEPE": "hyperliquid",
        "flx:TSLA": "flx",
        "@107": "spot",
        "PURR/USDC": "spot",
        "#12": "outcome",
    }
    frame = nw.from_native(pd.DataFrame({"coin": list(coins)}))
    rows = frame.select(dex=markets.dex_of(nw.col("coin")))
    assert rows["dex"].to_list() == list(coins.values())
    perps = frame.filter(markets.is_perp(nw.col("coin")))["coin"].to_list()
    assert perps == ["BTC", "kPEPE", "flx:TSLA"]
