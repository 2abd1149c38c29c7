"""The page with sliders over hostile keys, names and titles: they are words on it and never a part of it."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import sessionkit as sk
from sessionkit.errors import shorten
from tests.hostile import test_markup, test_report
from tests.hostile.test_report import Parts
from tests.hostile.watched import watching
from tests.optional import Browser

PAYLOADS = list(dict.fromkeys([*test_markup.PAYLOADS, *test_report.PAYLOADS, "__proto__", "constructor", ""]))
STEPS = [0, 2_000, 21_000, 11_000, 90_000, 3_000]  # opens, joins, opens, merges; opens; is dropped


def run(keys: list[str], name: str) -> sk.Run:
    """A run in which keys, columns and results are these texts."""
    rows = [(key, step + place) for step in STEPS for place, key in enumerate(keys)]
    table = pa.table(
        {name: [key for key, _ in rows], f"{name} at": [at for _, at in rows], f"{name} n": range(len(rows))}
    )
    made: sk.Run = (
        sk.group_by_key(name, timestamp=f"{name} at", unit="ms")
        .windowed_by(sk.SessionWindows(inactivity_gap="10s", grace="20s"))
        .aggregate(**{f"{name} 1": sk.sum(f"{name} n"), f"{name} 2": sk.collect(f"{name} n")})
        .run(table)
    )
    assert made.metrics()["windows-merged"] and made.metrics()["dropped-records-total"]
    return made


@pytest.mark.thorough
@pytest.mark.parametrize("most", [100_000, 3], ids=["all of it", "a part"])
@pytest.mark.parametrize("payload", PAYLOADS, ids=range(len(PAYLOADS)))
def test_a_text_adds_no_part_to_the_page(payload: str, most: int, tmp_path: Path) -> None:
    """As key, as column, as result and as title; as the key that is cut, and as one that is left out."""
    text = payload[:200]
    keys = [text, f"{text}!"]
    place = run(keys, text or "x").write_html(tmp_path / "page.html", title=payload, most_records=most)
    theirs = Parts(place.read_text(encoding="utf-8"))
    clean = run(["ada", "bob"], "who").write_html(tmp_path / "clean.html", title="clicks", most_records=most)
    ours = Parts(clean.read_text(encoding="utf-8"))
    assert (theirs.elements, theirs.ends, theirs.other) == (ours.elements, ours.ends, ours.other)
    words = "".join(theirs.words)
    assert not {"\x00", "\u202e", "\u2028", "\u2029", "\u200b", "\ufeff"} & set(words)
    assert len(theirs.scripts) == len(ours.scripts)
    for each, clean_one in zip(theirs.scripts, ours.scripts, strict=True):
        assert each == clean_one or not {"<", ">", "&"} & set(each)


@pytest.mark.browser
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_no_key_runs_loads_or_makes_anything(browser: Browser, tmp_path: Path, theme: Any) -> None:
    """All of them are looked at, pointed at, explained, listed and moved by the sliders."""
    assert len(PAYLOADS) >= 70
    place = run(PAYLOADS, PAYLOADS[0]).write_html(tmp_path / "page.html", title=PAYLOADS[2])
    with watching(browser, color_scheme=theme) as watched:
        tab = watched.tab
        tab.goto(place.as_uri())
        tab.wait_for_selector(".what-if[data-ready]")
        names = tab.locator("#sk-key option").all_inner_texts()
        assert sorted(names) == sorted(" ".join((shorten(key) or "(empty)").split()) for key in PAYLOADS)
        tab.locator(".list summary").click()
        for number in range(len(PAYLOADS)):
            tab.locator("#sk-key").select_option(index=number)
            marks = tab.locator(".plane svg path.drop[data-thing]")
            marks.first.dispatch_event("pointerover")
            marks.first.dispatch_event("click")
            assert "was dropped: too late" in tab.locator(".why").inner_text()
        for key in ("ArrowDown", "ArrowRight", "ArrowDown", "Enter"):
            tab.locator("canvas").press(key)
        tab.locator("#sk-grace").press("ArrowRight")
        tab.locator("#sk-find").fill("<script")
        for field in tab.locator(".slider input[type=text]").all():
            field.fill(PAYLOADS[0])
            field.press("Enter")
        assert PAYLOADS[0] in tab.locator(".refused").inner_text()
        assert watched.ran == [] and tab.evaluate("window.__ran") is None
        assert watched.asked == [place.as_uri()]
        assert watched.told == []
        strangers = (
            "img, iframe, object, embed, link, base, form, main script:not([type]), a, image, foreignObject, b b"
        )
        assert tab.locator(strangers).count() == 0
        assert tab.locator("h1").inner_text() == tab.evaluate("document.title") == PAYLOADS[2]
