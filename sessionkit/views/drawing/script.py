"""The script that draws: for a page that brings along all that it needs."""


def plotly_script() -> str:
    """Plotly as JavaScript: nearly five megabytes."""
    from plotly.offline import get_plotlyjs

    return str(get_plotlyjs())
