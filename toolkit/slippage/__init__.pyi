from ._cost import capacity as capacity
from ._cost import cost as cost
from ._curve import asymmetry as asymmetry
from ._curve import curve as curve
from ._curve import heatmap as heatmap
from ._fit import SlippageFit as SlippageFit
from ._fit import fit as fit
