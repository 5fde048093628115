from ._twap_quality import quality as quality
from ._twaps import adherence as adherence
from ._twaps import linked as linked
from ._twaps import pressure as pressure
