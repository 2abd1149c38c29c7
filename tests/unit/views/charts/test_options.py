"""`sk.options`: what pictures look like where a call does not say it."""

from collections.abc import Iterator

import pytest

import sessionkit as sk
from sessionkit.errors import InvalidArgument
from sessionkit.views.drawing.palettes import PALETTES
from tests.kinds import EACH_KIND, plan_of


@pytest.fixture
def _as_before() -> Iterator[None]:
    yield
    sk.options.theme = "light"


@pytest.mark.usefixtures("_as_before")
def test_pictures_take_the_theme_of_the_session_unless_they_are_given_one() -> None:
    run = plan_of(EACH_KIND["session"], "on_window_update", {"count": sk.count()}).run({"key": ["a"], "at": [0]})
    assert repr(sk.options) == "Options: theme='light', width=None, progress=True"
    sk.options.theme = "dark"
    for figure in (run.plane(), run.lanes(), run.latency().figure(), run.open_windows().figure()):
        assert figure.layout.paper_bgcolor == PALETTES["dark"].background
    assert run.lanes(theme="light").layout.paper_bgcolor == PALETTES["light"].background


def test_what_is_no_option_is_refused() -> None:
    with pytest.raises(InvalidArgument, match=r"sk\.options\.theme must be .*'black'"):
        sk.options.theme = "black"  # type: ignore[assignment]
    with pytest.raises(AttributeError):
        sk.options.them = "dark"  # type: ignore[attr-defined]
