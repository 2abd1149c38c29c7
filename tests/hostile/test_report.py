"""The report over hostile keys, column names and titles: they are words on the page and never a part of it."""

import base64
import hashlib
import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import sessionkit as sk
from sessionkit.report.page import Findings, page
from sessionkit.report.parts import Attached
from tests.hostile.watched import watching
from tests.optional import Browser

MINUTE = 60_000
PAYLOADS = [
    "<img src=x onerror=alert(1)>", "</script><script>alert(1)</script>", '"><svg onload=alert(1)>',
    "%{x}<extra><b>y</b></extra>", r"$\href{javascript:alert(1)}{x}$", '<a href="javascript:alert(1)">x</a>',
    "' onmouseover='alert(1)", "\x00<script>window.__ran = 1</script>", "\u202e<b>evil</b>\u202c",
    "--></style></pre></title><script>window.__ran = 1</script><!--",
    "<style>@import 'http://127.0.0.1:9/x.css'</style>", "&lt;img src=x onerror=alert(1)&gt;",
    "`${alert(1)}`{{constructor.constructor('alert(1)')()}}",
    "line\u2028break\nand <iframe srcdoc='<script>alert(1)</script>'>",
]  # fmt: skip
CLEAN = [f"key {number:02}" for number in range(len(PAYLOADS))]


def report(texts: list[str]) -> str:
    """A page on records whose keys, key column, time column, value column, result and title are these texts."""
    key, at, value, count, mean, all_of = texts[5], texts[1], texts[7], texts[3], texts[0], texts[8]
    steps = [0, 2, 21, 11, 70, 45, 5]  # opens, joins, merges; is late and kept; is dropped
    rows = [(text, step * MINUTE + number) for step in steps for number, text in enumerate(texts)]
    records = pd.DataFrame(rows, columns=[key, at])
    records[value] = 1.5
    plan = (
        sk.group_by_key(key, timestamp=at, unit="ms")
        .windowed_by(sk.SessionWindows(inactivity_gap="10m", grace="20m"))
        .aggregate(**{count: sk.count(), mean: sk.mean(value), all_of: sk.collect(value)})
    )
    run = plan.run(records)
    assert run.metrics()["dropped-records-total"] and run.metrics()["windows-merged"]
    files = {"sessions": Attached(texts[5], 3, b"abc"), "keys": Attached(texts[0], 10**7, None)}
    about: Any = {"command": texts[1], "systems": [("Spark", texts[9])], "remarks": [texts[10]], "files": files}
    return page(Findings(title=texts[2], plan=plan, counts=run.metrics(), local=run, **about))


class Parts(HTMLParser):
    """What a page is made of: elements with their attributes, the words outside of them, what scripts hold."""

    def __init__(self, text: str, free: tuple[str, ...] = ()) -> None:
        super().__init__()
        self.elements: list[tuple[str, tuple[tuple[str, str | None], ...]]] = []
        self.ends: list[str] = []
        self.other: list[str] = []
        self.words: list[str] = []
        self.scripts: list[str] = []
        self._free = free
        self._tag = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._tag = tag
        kept = tuple((name, "" if name in self._free else value) for name, value in attrs)
        self.elements.append((tag, kept))

    def handle_endtag(self, tag: str) -> None:
        self._tag = ""
        self.ends.append(tag)

    def handle_data(self, data: str) -> None:
        (self.scripts if self._tag in ("script", "style") else self.words).append(data)

    def handle_comment(self, data: str) -> None:
        self.other.append(data)

    handle_decl = handle_pi = unknown_decl = handle_comment


@pytest.fixture(scope="module")
def hostile() -> str:
    return report(PAYLOADS)


@pytest.fixture(scope="module", params=[200, 3_000], ids=["all records", "whole keys"])
def many(request: pytest.FixtureRequest) -> str:
    """A page over all records, and over more than it carries."""
    keys, count = 40, request.param
    at = (60 + np.arange(keys * count) // keys) * MINUTE
    records = pd.DataFrame({"user": np.arange(keys * count) % keys, "at": at - 30 * MINUTE * (at % 7 == 3)})
    windows = sk.SessionWindows(inactivity_gap="1h", grace="5m")
    plan = sk.group_by_key("user", timestamp="at", unit="ms").windowed_by(windows)
    run = plan.count().run(records)
    return page(Findings(title="many", plan=plan.count(), counts=run.metrics(), local=run))


@pytest.fixture(scope="module")
def clean() -> str:
    """The report over harmless texts."""
    return report(CLEAN)


def digest(text: str) -> str:
    """How a policy names a script or a style."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def texts_in(value: Any) -> list[str]:
    """Every text in a JSON value, names included."""
    if isinstance(value, dict):
        return [text for name, inner in value.items() for text in (name, *texts_in(inner))]
    if isinstance(value, list):
        return [text for inner in value for text in texts_in(inner)]
    return [value] if isinstance(value, str) else []


def carried_by(text: str) -> Any:
    """What the script of a page has of the run."""
    (found,) = [json.loads(script) for script in Parts(text).scripts if script.startswith('{"layout"')]
    return found


# ---- without a browser


def test_the_page_has_no_part_that_a_clean_one_has_not(hostile: str, clean: str) -> None:
    free = ("aria-label", "download")  # they name a key, and a file
    theirs, ours = Parts(hostile, free), Parts(clean, free)
    assert theirs.elements == ours.elements
    assert (theirs.ends, theirs.other) == (ours.ends, ours.other)
    assert len(theirs.scripts) == len(ours.scripts)


def test_the_texts_are_there_as_words(hostile: str) -> None:
    words = "".join(Parts(hostile).words)
    for text in (PAYLOADS[0], PAYLOADS[2], PAYLOADS[3], PAYLOADS[5], PAYLOADS[6]):
        assert text in words


def test_no_character_that_hides_or_turns_others(hostile: str) -> None:
    """A NUL, a right-to-left override or a line separator is said, not written."""
    found = Parts(hostile)
    labels = [value or "" for _, attributes in found.elements for name, value in attributes if name == "aria-label"]
    for text in (*found.words, *labels):
        assert not {"\x00", "\u202e", "\u202c", "\u2028"} & set(text), text
    assert "\\u202e<b>evil" in "".join(found.words)


def test_no_script_but_ours(hostile: str, clean: str) -> None:
    differing = 0
    for theirs, ours in zip(Parts(hostile).scripts, Parts(clean).scripts, strict=True):
        if theirs == ours:
            continue
        differing += 1
        assert not {"<", ">", "&"} & set(theirs)
        json.loads(theirs)
    assert differing == 1  # the run that the page carries: all else is the same to the letter


def test_the_names_that_the_page_carries_are_words(hostile: str, clean: str) -> None:
    """The page's script writes them as text alone; what hides or turns others is said, not written."""
    theirs, ours = carried_by(hostile), carried_by(clean)
    assert theirs.keys() == ours.keys() and len(theirs["keys"]) == len(PAYLOADS)
    assert PAYLOADS[0] in theirs["keys"]  # they are there
    assert theirs["results"][0][0] == PAYLOADS[3] and theirs["leftOut"]
    assert not {"\x00", "\u202e", "\u2028"} & set("".join(texts_in(theirs)))


@pytest.mark.parametrize("title", [*PAYLOADS, "\udcff.parquet", "", "a" * 10_000])
def test_any_title_can_be_saved(title: str, tmp_path: Path) -> None:
    """A file may have a name that is not text, which Python reads as lone surrogates."""
    data = pd.DataFrame({"user": ["ada"], "at": [0]})
    windows = sk.SessionWindows(inactivity_gap_ms=1, grace_ms=1)
    plan = sk.group_by_key("user", timestamp="at", unit="ms").windowed_by(windows)
    run = plan.count().run(data)
    findings = Findings(title=title, plan=plan.count(), counts=run.metrics(), local=None)
    text = page(findings)
    (tmp_path / "report.html").write_text(text, encoding="utf-8")
    clean = page(Findings(title="clicks", plan=plan.count(), counts=run.metrics(), local=None))
    assert Parts(text).elements == Parts(clean).elements
    assert len(text) - len(clean) < 10_000


def test_only_what_the_page_brings_along_may_run(hostile: str) -> None:
    """Nothing is loaded, and what runs or styles is named by its hash."""
    (policy,) = [
        value or ""
        for tag, attributes in Parts(hostile).elements
        if tag == "meta"
        for name, value in attributes
        if name == "content" and "-src" in (value or "")
    ]
    rules = {words[0]: words[1:] for words in (rule.split() for rule in policy.split(";"))}
    scripts = re.findall(r"<script>(.*?)</script>", hostile, re.DOTALL)
    (style,) = re.findall(r"<style>(.*?)</style>", hostile, re.DOTALL)
    assert len(scripts) == 1
    assert rules == {
        "default-src": ["'none'"],
        "script-src": [digest(text) for text in scripts],
        "style-src": [digest(style)],
        "base-uri": ["'none'"],
        "form-action": ["'none'"],
    }
    assert [element for element in Parts(hostile).elements if "style" in dict(element[1])] == []


# ---- in a browser


@pytest.mark.browser
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_nothing_runs_and_nothing_is_asked_for(browser: Browser, hostile: str, tmp_path: Path, theme: Any) -> None:
    file = tmp_path / "report.html"
    file.write_text(hostile, encoding="utf-8")
    with watching(browser, color_scheme=theme) as watched:
        tab = watched.tab
        tab.goto(file.as_uri())
        tab.wait_for_selector(".what-if[data-ready]")
        marks = tab.locator(".plane svg [data-thing]")
        assert marks.count() > 3
        for number in range(3):  # hover over the marks, and ask why: their words are hostile, too
            marks.nth(number).dispatch_event("pointerover")
            marks.nth(number).dispatch_event("click")
            assert tab.locator(".why").inner_text()
        for key in ("ArrowDown", "ArrowRight", "ArrowRight", "Enter"):
            tab.locator(".canvas canvas").press(key)
        assert tab.locator("#sk-key option").count() == len(PAYLOADS)
        for place in range(len(PAYLOADS)):
            tab.locator("#sk-key").select_option(index=place)
        tab.locator(".list summary").click()
        tab.locator("#sk-grace").press("ArrowRight")
        tab.locator("#sk-find").fill("<")
        for label in tab.locator("main td, main h1, main b").all()[:40]:
            label.dispatch_event("mouseover")
        assert watched.ran == []
        assert tab.evaluate("window.__ran") is None
        assert watched.asked == [file.as_uri()]
        assert watched.complaints == []
        strangers = (
            "img, iframe, object, embed, link, base, form, main script:not([type='application/json']), a[href^=java], "
            "main b b, .plane svg a, .plane svg image, .plane svg foreignObject"
        )
        assert tab.locator(strangers).count() == 0
        assert tab.locator("h1").inner_text() == PAYLOADS[2]
        assert tab.evaluate("document.title") == PAYLOADS[2]


@pytest.mark.browser
def test_the_policy_holds_and_the_page_works_under_it(browser: Browser, many: str, tmp_path: Path) -> None:
    file = tmp_path / "report.html"
    file.write_text(many, encoding="utf-8")
    with watching(browser) as watched:
        tab = watched.tab
        tab.goto(file.as_uri())
        tab.wait_for_selector(".what-if[data-ready]")
        canvas, counts = tab.locator("canvas"), tab.locator(".counts")
        drawn, before = int(canvas.get_attribute("data-drawn") or 0), counts.inner_text()
        tab.emulate_media(color_scheme="dark")  # draws again
        tab.wait_for_timeout(300)
        assert int(canvas.get_attribute("data-drawn") or 0) > drawn
        tab.locator("#sk-grace").press("End")
        tab.wait_for_timeout(300)
        assert "against the plan" in counts.inner_text() and counts.inner_text() != before
        assert watched.complaints == []
        assert watched.asked == [file.as_uri()]

        tab.evaluate(  # what a hole elsewhere would try
            """() => {
                const script = document.createElement("script");
                script.textContent = "window.__ran = 1";
                const style = document.createElement("style");
                style.textContent = "h1 { position: fixed }";
                const image = new Image();
                image.src = "http://127.0.0.1:9/?keys";
                document.body.append(script, style, image);
                const hole = "<b onclick='window.__ran = 1' id='hole' style='position: fixed'>x</b>";
                document.body.insertAdjacentHTML("beforeend", hole);
                document.querySelector("#hole").click();
            }"""
        )
        assert tab.evaluate("window.__ran") is None
        for place in ("h1", "#hole"):
            assert tab.evaluate(f"getComputedStyle(document.querySelector('{place}')).position") == "static"
        assert len([words for words in watched.told if "Content Security Policy" in words]) >= 4
