from toolkit.contract.records import SlippageSample
from toolkit.simulation.prices import Prices
def slippage_samples(seed: int, prices: Prices, start_ms: int) -> list[SlippageSample]:
    return []
