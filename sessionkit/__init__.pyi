"""What users import from here; `__init__.py` loads each name when it is first asked for."""

from . import aggregations as aggregations, errors as errors, stores as stores, windows as windows
from .advice.kinds import kinds as kinds
from .advice.suggest import suggest_gap as suggest_gap, suggest_grace as suggest_grace
from .advice.sweep import sweep as sweep
from .aggregations.built_ins import (
    aggregation as aggregation,
    collect as collect,
    count as count,
    first as first,
    last as last,
    max as max,
    mean as mean,
    min as min,
    reduce as reduce,
    sum as sum,
)
from .aggregations.of_times import earliest as earliest, latest as latest
from .aggregations.of_values import (
    count_distinct as count_distinct,
    median as median,
    quantile as quantile,
    std as std,
    top as top,
)
from .audits.audit import Audit as Audit, audit as audit
from .audits.suppressed import SuppressAudit as SuppressAudit
from .deployed.deployment import Deployment as Deployment
from .exports.export import Export as Export
from .other_sessions.compare import compare_sessions as compare_sessions
from .plan import group_by_key as group_by_key
from .plan import Plan as Plan
from .records.places import partition_for as partition_for
from .records.samples import load_sample as load_sample
from .run import Run as Run
from .sessionize import sessionize as sessionize
from .spark.checkpoint import read_state as read_state
from .spark.kafka import from_kafka as from_kafka, to_kafka as to_kafka
from .steps.written import Written as Written
from .stores import open_store as open_store
from .trace.written_trace import open_trace as open_trace
from .views.drawing.palettes import options as options
from .widgets import browse as browse, play as play, tune as tune, watch as watch
from .windows.calendar import CalendarWindows as CalendarWindows
from .windows.hopping import TimeWindows as TimeWindows
from .windows.session import SessionWindows as SessionWindows
from .windows.sliding.windows import SlidingWindows as SlidingWindows

__version__: str
