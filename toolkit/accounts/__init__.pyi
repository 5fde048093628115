from ._concentration import concentration as concentration
from ._concentration import lorenz as lorenz
from ._concentration import migration as migration
from ._positioning import positioning as positioning
from ._values import leverage as leverage
from ._values import values as values
