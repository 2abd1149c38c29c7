"""Markup in keys, names and values: whatever a notebook or a chart shows of it has the parts that harmless text has."""

from collections.abc import Iterator
from html.parser import HTMLParser
from typing import Any

import pandas as pd
import pytest

import sessionkit as sk
from sessionkit.base.text import escape_html, escape_label
from tests.deployments import run_by

HARMLESS = "ada"
PAYLOADS = [
    # elements that run something
    "<script>alert(1)</script>",
    "</script><script>alert(1)</script>",
    "<ScRiPt>alert(1)</sCrIpT>",
    "<script src=//127.0.0.1:9/x.js></script>",
    "<script\x0c>alert(1)</script\x0c>",
    "<scr<script>ipt>alert(1)</scr</script>ipt>",
    "<img src=x onerror=alert(1)>",
    "<img/src=x/onerror=alert(1)>",
    "<img src=x onerror=alert(1)//",
    "<svg onload=alert(1)>",
    "<svg><script>alert&#40;1&#41;</script></svg>",
    "<svg><animate onbegin=alert(1) attributeName=x></svg>",
    "<math><mtext><table><mglyph><style><img src=x onerror=alert(1)>",
    "<iframe src=javascript:alert(1)></iframe>",
    "<iframe srcdoc='<script>alert(1)</script>'></iframe>",
    "<object data=javascript:alert(1)></object>",
    "<embed src=javascript:alert(1)>",
    "<body onload=alert(1)>",
    "<input autofocus onfocus=alert(1)>",
    "<details open ontoggle=alert(1)>",
    "<video><source onerror=alert(1)></video>",
    "<marquee onstart=alert(1)>",
    # elements that load, send or change something
    "<a href=javascript:alert(1)>x</a>",
    '<a href="data:text/html,<script>alert(1)</script>">x</a>',
    "<form action=javascript:alert(1)><button>x</button></form>",
    "<base href=//127.0.0.1:9/>",
    "<link rel=stylesheet href=//127.0.0.1:9/x.css>",
    "<meta http-equiv=refresh content='0;url=javascript:alert(1)'>",
    "<style>@import '//127.0.0.1:9/x.css'; * {display: none}</style>",
    "<template><img src=x onerror=alert(1)></template>",
    # ways out of an attribute or an element
    "\"><img src=x onerror=alert(1)>",
    "'><img src=x onerror=alert(1)>",
    "\" onmouseover=\"alert(1)",
    "' onmouseover='alert(1)",
    "` onmouseover=`alert(1)",
    "</td></tr></table><b>out</b>",
    "</pre></div></p><h1>out</h1>",
    "</title></textarea></style></noscript><img src=x onerror=alert(1)>",
    "--><img src=x onerror=alert(1)><!--",
    "]]><img src=x onerror=alert(1)><![CDATA[",
    "<?xml version='1.0'?><!DOCTYPE x [<!ENTITY y 'z'>]>",
    # entities that would be read a second time
    "&lt;script&gt;alert(1)&lt;/script&gt;",
    "&#60;img src=x onerror=alert(1)&#62;",
    "&#x3c;img src=x onerror=alert(1)&#x3e;",
    "&lt",
    "&amp;lt;b&amp;gt;",
    # what plotly and MathJax read
    "<b>bold</b><br><i>x</i><sub>y</sub>",
    "%{x}<extra></extra>",
    r"$\href{javascript:alert(1)}{x}$",
    r"$$\style{color:red}{x}$$",
    r"\(\href{javascript:alert(1)}{x}\)",
    # characters that hide or turn others
    "\x00<b>x</b>",
    "<\x00script>alert(1)</script>",
    "\u202e<b>x</b>\u202c",
    "a\u2028<b>\u2029x\r\n</b>",
    "\ufeff<b>\u200bx</b>",
    "\uff1cscript\uff1ealert(1)\uff1c/script\uff1e",
    # longer than a label: the cut must not leave half an entity
    "&<>\"'" * 40,
    "<b>" * 5_000,
]  # fmt: skip
SOME = PAYLOADS[::5]  # for what is slow


class Parts(HTMLParser):
    """Elements with their attributes, ends, and everything else that is not words."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.marks: list[tuple[Any, ...]] = []
        self.words = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.marks.append((tag, *attrs))

    def handle_endtag(self, tag: str) -> None:
        self.marks.append(("end of", tag))

    def handle_data(self, data: str) -> None:
        self.words += data

    def handle_comment(self, data: str) -> None:
        self.marks.append(("comment", data))

    def handle_decl(self, decl: str) -> None:
        self.marks.append(("declaration", decl))

    def handle_pi(self, data: str) -> None:
        self.marks.append(("instruction", data))

    def unknown_decl(self, data: str) -> None:
        self.marks.append(("declaration", data))


def plan(text: str) -> sk.Plan:
    """A plan in which every name is the text."""
    windows = sk.SessionWindows(inactivity_gap="10s", grace="5s")
    start = sk.group_by_key(
        f"{text}1", f"{text}2", timestamp=f"{text} at", sep=text, partition=f"{text} p", offset=f"{text} o"
    )
    return start.windowed_by(windows).aggregate(**{text: sk.first(f"{text} v")}, all=sk.collect(f"{text} v"))


def run(text: str, **options: Any) -> sk.Run:
    """A run in which keys, values, a column and a result are the text; one record is dropped, two sessions merge."""
    seconds = [0, 15, 8, 60, 3]
    data = pd.DataFrame({"user": [text] * 5, "at": [second * 1_000 for second in seconds], text: [text] * 5})
    named = {text: sk.last(text), "first": sk.first(text), "all": sk.collect(text), "own": sk.reduce(join, text)}
    windows = sk.SessionWindows(inactivity_gap="10s", grace="5s")
    keyed = sk.group_by_key("user", timestamp="at", unit="ms", label=text)
    done = run_by(keyed.windowed_by(windows).aggregate(**named), data, **options)
    return done


def join(older: str, newer: str) -> str:
    return f"{older}{newer}"[:500]


def store(text: str) -> Any:
    """A store that a run has left with the text as key and in its aggregates."""
    kept = sk.open_store("memory", "clicks-store")
    run(text, store=kept)
    return kept


def shown(text: str) -> Iterator[tuple[str, str]]:
    """Every HTML that a notebook would show for objects over this text, with its name."""
    yield "plan", plan(text)._repr_html_()
    done = run(text)
    yield "run", done._repr_html_()
    yield "trace", done.trace._repr_html_()
    for offset in range(5):
        yield f"explanation {offset}", done.explain(offset=offset)._repr_html_()
    yield "steps", done.steps(text)._repr_html_()
    yield "kafka's rules", run(text, rules="kafka")._repr_html_()
    yield "store", store(text)._repr_html_()


@pytest.fixture(scope="module")
def harmless() -> dict[str, list[tuple[Any, ...]]]:
    """The marks of everything that is shown of a harmless text."""
    return {name: Parts(html).marks for name, html in shown(HARMLESS)}


def test_the_harmless_text_shows_all_there_is_to_show(harmless: dict[str, list[tuple[Any, ...]]]) -> None:
    assert len(PAYLOADS) >= 40 and len(set(PAYLOADS)) == len(PAYLOADS)
    assert len(harmless) == 11
    for name, html in shown(HARMLESS):
        assert name == "trace" or HARMLESS in Parts(html).words  # the test sees the text where it is shown
    assert "was dropped" in dict(shown(HARMLESS))["explanation 4"]
    assert "is a bridge" in dict(shown(HARMLESS))["explanation 2"]


@pytest.mark.parametrize("payload", PAYLOADS, ids=range(len(PAYLOADS)))
def test_nothing_that_is_shown_has_a_part_more(payload: str, harmless: dict[str, list[tuple[Any, ...]]]) -> None:
    for name, html in shown(payload):
        parts = Parts(html)
        assert parts.marks == harmless[name], name
        assert not {"\x00", "\u202e", "\u2028", "\u2029", "\u200b", "\ufeff"} & set(parts.words), name
        assert "$" not in html, name  # plotly and old front ends look for MathJax in the text as written
        assert html.startswith('<div class="mathjax_ignore tex2jax_ignore">') and html.endswith("</div>")


@pytest.mark.parametrize("payload", PAYLOADS, ids=range(len(PAYLOADS)))
def test_pictures_of_emissions_hold_no_part_more(payload: str) -> None:
    figure = run(payload).emissions(payload).figure()
    texts = [
        figure.layout.title.text,
        *(note.text for note in figure.layout.annotations),
        *figure.layout.yaxis.ticktext,
    ]
    texts += [text for trace in figure.data for text in trace.hovertext or ()]
    assert len(texts) > 10
    for text in texts:
        assert {mark[1] if mark[0] == "end of" else mark[0] for mark in Parts(text).marks} <= {"b", "span", "br"}
        assert "$" not in text


@pytest.mark.parametrize("payload", PAYLOADS, ids=range(len(PAYLOADS)))
def test_pictures_with_labels_hold_no_part_more(payload: str) -> None:
    done = run(payload)
    texts = [note.text for note in done.plane(payload).layout.annotations]
    for trace in (*done.plane(payload).data, *done.lanes().data):
        texts += [*(trace.hovertext or ()), *(trace.text or ())]
    assert len(texts) > 10
    for text in texts:
        assert {mark[1] if mark[0] == "end of" else mark[0] for mark in Parts(text).marks} <= {"b", "span", "br"}
        assert "$" not in text


@pytest.mark.parametrize("payload", PAYLOADS, ids=range(len(PAYLOADS)))
def test_escaped_text_is_words_in_an_element_and_in_an_attribute(payload: str) -> None:
    for escaped in (escape_html(payload), escape_label(payload)):
        assert Parts(escaped).marks == []
        for quote in "\"'":
            inside = Parts(f"<p title={quote}{escaped}{quote}>{escaped}</p>").marks
            assert [mark[0] for mark in inside] == ["p", "end of"]
            assert [name for name, _ in inside[0][1:]] == ["title"]
    assert Parts(escape_html(payload)).words == payload  # it shows as itself
    label = escape_label(payload)
    assert "$" not in label and "\n" not in label
    assert len(Parts(label).words) <= 60
