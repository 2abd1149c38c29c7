"""Charts of a trace: plain plotly figures that hold everything they show."""
