from ._activity import activity as activity
from ._activity import approval_spans as approval_spans
from ._cohorts import LifetimeValue as LifetimeValue
from ._cohorts import cohorts as cohorts
from ._cohorts import lifetime_value as lifetime_value
from ._revenue import attach_rate as attach_rate
from ._revenue import revenue as revenue
from ._revenue import routing as routing
