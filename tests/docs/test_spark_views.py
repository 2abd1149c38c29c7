"""Which views docs/spark.md says that a run has are those that it has, and why not is what the run says."""

import re

import pytest

import sessionkit as sk
from sessionkit.base.guesses import known
from sessionkit.errors import NotBuilt
from sessionkit.trace.session_trace import SessionTrace
from sessionkit.trace.window_trace import WindowTrace
from sessionkit.trace.written_trace import WrittenTrace

pytest.importorskip("pyspark", reason="pyspark is not installed")

from tests.docs.views import KINDS, answer, offered, table, written  # isort: skip

ROW = re.compile(r"^\| `(\w+)` \| (.+?) \| (.+?) \| (.+?) \|$", re.MULTILINE)
SHARED = re.compile(r"^- \((\w)\) (.+)$", re.MULTILINE)


def test_the_table_of_views_is_what_the_classes_have() -> None:
    """The page said "the same views", and 14 of them were missing."""
    rows = ROW.findall(written())
    said = {name: [cell[:3].rstrip(" :") for cell in cells] for name, *cells in rows}
    kinds = [offered(kind) for kind in KINDS.values()]
    assert "table" not in kinds[2] and "table" in kinds[1]
    expected = {}
    for name in sorted(set().union(*kinds)):
        local, batch, stream = (name in kind for kind in kinds)
        expected[name] = ["yes" if local else "no", "yes" if batch else "no", "yes" if stream else "no"]
    assert said == expected
    assert list(said) == sorted(said)


def test_each_no_has_the_reason_that_the_run_gives() -> None:
    shared = dict(SHARED.findall(written()))
    told = 0
    for name, *cells in ROW.findall(written()):
        for kind, cell in zip(KINDS.values(), cells, strict=True):
            if cell == "yes":
                continue
            found = re.fullmatch(r"no(?: \((\w)\)|: (.+))", cell)
            assert found, (name, cell)
            why = (found[2] or shared[found[1]]).replace("`", "")
            assert len(why) > 20
            said = answer(kind, name).replace(f"; got {name}(); ", "; ")
            assert said.endswith(f"; {why}") or said == why, name
            lacks = known()["lacks"][kind.__name__].items()
            assert name == "table" or [why] == [each for names, each in lacks if name in names.split()]
            told += 1
    assert told > 35
    assert written() == table(), "`make docs` writes it anew"


def test_a_reason_is_of_a_view_that_another_kind_of_run_has() -> None:
    lacks = known()["lacks"]
    assert [*lacks] == [*(kind.__name__ for kind in KINDS.values()), "WrittenTrace"]
    of_written = {name for names in lacks["WrittenTrace"] for name in names.split()}
    assert of_written <= {*dir(sk.Run), *dir(SessionTrace), *dir(WindowTrace)} - {*dir(WrittenTrace)}
    every = set().union(*map(offered, KINDS.values()))
    for kind in KINDS.values():
        missing = every - offered(kind) - {"table"}
        listed = [name for names in lacks[kind.__name__] for name in names.split()]
        assert sorted(listed) == sorted(missing)


@pytest.mark.parametrize("kind", KINDS.values())
def test_what_is_lacking_is_an_attribute_error_and_not_built(kind: type) -> None:
    """So that `hasattr` is False, and whoever asks for more than there is yet finds one error."""
    every = set().union(*map(offered, KINDS.values()))
    for name in every - offered(kind) - {"table"}:
        run = object.__new__(kind)
        assert not hasattr(run, name)
        with pytest.raises(AttributeError, match=r"^run has no such name; got ") as raised:
            getattr(run, name)
        assert isinstance(raised.value, NotBuilt)
