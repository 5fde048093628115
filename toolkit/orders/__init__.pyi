from ._fill_times import FillProbability as FillProbability
from ._fill_times import FillTimes as FillTimes
from ._fill_times import fill_probability as fill_probability
from ._fill_times import time_to_fill as time_to_fill
from ._orders import fill_ratio as fill_ratio
from ._orders import mix as mix
from ._orders import transitions as transitions
from ._orders import trigger_delay as trigger_delay
