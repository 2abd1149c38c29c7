"""The pictures of the page, with the sliders that move them."""

from __future__ import annotations

from sessionkit.base.text import escape_html
from sessionkit.errors import InvalidData, NotBuilt
from sessionkit.report.parts import section
from sessionkit.report.sessions import are_sessions
from sessionkit.run import Run
from sessionkit.views.page.html import Page

MOST_CARRIED = 100_000  # records, of whole keys


def pictures(run: Run) -> str:
    """The lanes of many keys and the history of one, which the reader's browser makes anew under other settings."""
    try:
        page = Page(run, None, MOST_CARRIED, hide_keys=False, call="the report")
    except (NotBuilt, InvalidData) as error:
        return section("What other settings would do", f"<p>{escape_html(error)}</p>")
    said = "".join(f"<p>{escape_html(sentence)}</p>" for sentence in [page.carries(), *page.left_out()])
    merged = ", and brackets below a bar are the sessions that it was merged from" if are_sessions(run.plan) else ""
    return section(
        "What other settings would do",
        "<p>Move a slider: every record is decided anew, in this page. In the lanes, crosses above were dropped"
        f"{merged}. In the history of one key, left of the amber "
        "line everything is closed, and the dotted piece at a red cross is the grace that the record lacked.</p>",
        said,
        page.content,
    )
