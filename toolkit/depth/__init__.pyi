from ._depth import consistency as consistency
from ._depth import imbalance as imbalance
from ._depth import profile as profile
from ._resilience import Resilience as Resilience
from ._resilience import resilience as resilience
