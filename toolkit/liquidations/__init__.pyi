from ._cascade import Cascade as Cascade
from ._cascade import cascade as cascade
from ._liquidations import fills as fills
from ._liquidations import history as history
from ._liquidations import levels as levels
from ._margin_buffers import buffers as buffers
