"""The table of docs/spark.md: which kind of run has which view, and why another one has not, as the runs say it."""

import re
import string
from collections import Counter

import sessionkit as sk
from sessionkit.errors import NotBuilt
from sessionkit.spark.batch_run import SparkRun
from sessionkit.spark.stream_run import StreamRun
from tests.docs.pages import ROOT

PAGE = ROOT / "docs" / "spark.md"
KINDS = {"local run": sk.Run, "Spark batch": SparkRun, "stream": StreamRun}
NO_VIEWS = {"plan", "timezone"}
_TABLE = re.compile(r"^\| view \| local run .*?\n(?=\n[^-])", re.DOTALL | re.MULTILINE)  # and the reasons below it
_CODE = re.compile(r"\b(?:run|plan|sk)(?:\.\w+(?:\([^)]*\))?)+|(?<= )\w+\([^)]*\)")


def offered(kind: type) -> set[str]:
    """What tab completion offers of such a run, without what only says that there is no such view."""
    names = {name for name in dir(object.__new__(kind)) if not name.startswith("_")}
    refusing = {name for name in names if "NoReturn" in str(getattr(vars(kind).get(name), "__annotations__", ""))}
    return names - refusing - NO_VIEWS


def answer(kind: type, name: str) -> str:
    """What such a run says when it is asked for a view that it does not have."""
    try:
        getattr(object.__new__(kind), name)()
    except NotBuilt as error:
        return str(error)
    raise AssertionError(f"{kind.__name__} answers {name}")


def reason(kind: type, name: str) -> str:
    """Why it does not have the view: the answer without what is said of other kinds of runs."""
    what, _, want = answer(kind, name).split("; ", 2)
    if what != "run has no such name":
        return f"{what}; {want}"
    has_it = re.match(rf"(?:plan\.run\(data\)|run\.local\(partition\))\.{name}\b", want)
    return want.rpartition("; ")[2] if has_it else want


def table() -> str:
    """The table and the reasons that several of its cells share."""
    names = sorted(set().union(*map(offered, KINDS.values())))
    reasons = {
        (name, of): reason(kind, name) for of, kind in KINDS.items() for name in names if name not in offered(kind)
    }
    shared = [each for each, count in Counter(reasons.values()).items() if count > 1]
    letter = dict(zip(shared, string.ascii_lowercase, strict=False))
    rows = [f"| view | {' | '.join(KINDS)} |", "| --- | --- | --- | --- |"]
    for name in names:
        cells = [f"no ({letter[why]})" if (why := reasons.get((name, of))) in letter else _cell(why) for of in KINDS]
        rows.append(f"| `{name}` | {' | '.join(cells)} |")
    return "\n".join([*rows, "", *(f"- ({letter[each]}) {_shown(each)}" for each in shared)]) + "\n"


def _cell(why: str | None) -> str:
    return "yes" if why is None else f"no: {_shown(why)}"


def _shown(why: str) -> str:
    return _CODE.sub(r"`\g<0>`", why)


def written() -> str:
    """The table that the page has, and the reasons below it."""
    found = _TABLE.findall(PAGE.read_text(encoding="utf-8"))
    assert len(found) == 1
    return str(found[0])


def write() -> None:
    page = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(page.replace(written(), table()), encoding="utf-8")
