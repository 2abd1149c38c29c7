"""Charts of a trace: plain plotly figures that hold everything they show."""

from sessionkit.views.charts.lanes.lanes import lanes
from sessionkit.views.charts.plane.plane import plane

__all__ = ["lanes", "plane"]
