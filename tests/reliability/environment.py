"""Places where sessionkit may have to run: its answers in each are those of a plain one.

Drawn at random: an install that cannot be written, with or without compiled loops; no home, or one that cannot be
written; a user whom the system has no name for; `python -O`; locales and time zones; nowhere to write but the current
folder and TMPDIR; a cache folder that cannot be used, or that another user made.
"""

import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from tests.reliability._surroundings import PACKAGE, STRANGER, can_hide, copy_package, run_poorly, set_writable
from tests.reliability.pieces import Outcome

PIECE = 6
GOAL = 1_000
SCRIPT = Path(__file__).with_name("_everywhere.py")
KINDS = ("session", "tumbling", "hopping", "sliding")
ZONES = (
    *("UTC", "Asia/Kathmandu", "America/St_Johns", "Pacific/Apia", "Antarctica/Troll", "Africa/Casablanca"),
    *("EST5EDT", "<+1245>-12:45", "Nowhere/Land", "", ":/nothing/there"),
)
LOCALES: tuple[dict[str, str], ...] = (
    {}, {"LANG": "C"}, {"LC_ALL": "C"}, {"LC_ALL": "POSIX", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
    {"LANG": "xx_XX.UTF-8"}, {"LC_ALL": "C.UTF-8", "LANG": "de_DE.UTF-8"},
)  # fmt: skip
HOMES = ("none", "not there", "not writable", "writable")
CACHES = ("none", "none", "not writable", "a file", "not there", "another user's")
OPTIONS = ((), (), ("-O",), ("-OO",), ("-X", "utf8=0"))
NOT_OURS = "sessionkit does not use"
_MADE = ("clicks", "out", "state")


class Place(NamedTuple):
    """Where a case runs."""

    kinds: tuple[str, ...]
    compiled: bool
    home: str
    cache: str
    named: bool
    hidden: bool
    options: tuple[str, ...]
    locale: dict[str, str]
    zone: str | None


def check(seed: int, count: int) -> Outcome:
    """`count` places, and in each the answers of the script."""
    drawn, noted = random.Random(seed), Counter[str]()
    wrong: list[str] = []
    base = Path(tempfile.mkdtemp(prefix="sessionkit-environment-"))
    try:
        base.chmod(0o755)
        places = [_draw(drawn, number) for number in range(count)]
        expected = _plain(seed, base, [kind for kind in KINDS if any(kind in place.kinds for place in places)])
        for number, place in enumerate(places):
            said = _differs(place, seed, base, expected, noted)
            if said:
                wrong.append(f"seed {seed}, case {number}, {place}: {said}")
    finally:
        for folder in ("compiled", "source"):
            if (base / folder).exists():
                set_writable(base / folder, True)
        for path in base.iterdir():
            path.chmod(0o755)
        shutil.rmtree(base)
    return Outcome(count, wrong, dict(noted))


def _draw(drawn: random.Random, number: int) -> Place:
    return Place(
        kinds=tuple(drawn.sample(KINDS, drawn.choice((1, 1, 2)))),
        compiled=drawn.random() < 0.85 or number == 0,
        home=drawn.choice(HOMES),
        cache=drawn.choice(CACHES),
        named=drawn.random() < 0.3,
        hidden=drawn.random() < 0.5,
        options=drawn.choice(OPTIONS),
        locale=drawn.choice(LOCALES),
        zone=drawn.choice((None, *ZONES)),
    )


def _plain(seed: int, base: Path, kinds: list[str]) -> dict[str, str]:
    """The answers in surroundings such as ours."""
    folder = base / "plain"
    folder.mkdir()
    environment = {**os.environ, "PYTHONPATH": str(PACKAGE.parent), "TZ": "UTC"}
    command = [sys.executable, str(SCRIPT), str(seed), ",".join(kinds)]
    ended = subprocess.run(command, cwd=folder, env=environment, capture_output=True, encoding="utf-8", check=True)
    answers: dict[str, str] = json.loads(ended.stdout)
    return answers


def _differs(place: Place, seed: int, base: Path, expected: dict[str, str], noted: Counter[str]) -> str:
    """What is wrong there; nothing if all is right."""
    hidden = place.hidden and _can_hide()
    settings = {**place.locale, **_folders(place, base)}
    if place.zone is not None:
        settings["TZ"] = place.zone
    folder = Path(tempfile.mkdtemp(dir=base))
    folder.chmod(0o777)
    package = base / ("compiled" if place.compiled else "source")
    if not package.exists():
        package.mkdir()
        copy_package(package, compiled=place.compiled)
    script = folder / SCRIPT.name
    shutil.copy(SCRIPT, script)
    ended = run_poorly(
        script, folder=folder, package=package, hidden=base if hidden else None,
        user=None if place.named else STRANGER, options=place.options, arguments=[str(seed), ",".join(place.kinds)],
        **settings,
    )  # fmt: skip
    left = sorted(path.name for path in folder.iterdir() if path != script and path.name.split(" ")[0] not in _MADE)
    shutil.rmtree(folder)
    for what, met in {"hidden": hidden, "compiled anew": not place.compiled, "no home": place.home == "none"}.items():
        noted[what] += met
    told = [line for line in ended.stderr.splitlines() if not line.startswith(("sessionkit c", NOT_OURS))]
    noted["said what it costs"] += "sessionkit cannot keep" in ended.stderr
    refused = os.getuid() == 0 and place.cache == "another user's"
    noted["a cache of another user"] += refused
    if ended.returncode or told or refused != (NOT_OURS in ended.stderr):
        return f"ended with {ended.returncode}: {ended.stderr[-1500:]}"
    if left:
        return f"left {left}"
    answers: dict[str, Any] = json.loads(ended.stdout)
    noted["answers"] += len(answers)
    other = [name for name, answer in answers.items() if expected[name] != answer]
    return f"other answers: {other}" if other or not answers else ""


def _folders(place: Place, base: Path) -> dict[str, str]:
    """HOME, TMPDIR and NUMBA_CACHE_DIR, made as they are to be."""
    own = 0 if place.named else STRANGER
    made = [("closed", 0o555, 0), (f"home {own}", 0o755, own), ("tmp", 0o777, 0), ("another's", 0o777, STRANGER + 1)]
    for name, mode, owner in made:
        (base / name).mkdir(exist_ok=True)
        (base / name).chmod(mode)
        if os.getuid() == 0:
            os.chown(base / name, owner, owner)
    (base / "file").touch()
    homes = {"not there": base / "nobody", "not writable": base / "closed", "writable": base / f"home {own}"}
    caches = {"not writable": base / "closed", "a file": base / "file", "not there": Path("/proc/nothing/there")}
    caches["another user's"] = base / "another's"
    found = {"TMPDIR": str(base / "tmp")}
    if place.home in homes:
        found["HOME"] = str(homes[place.home])
    if place.cache in caches:
        found["NUMBA_CACHE_DIR"] = str(caches[place.cache])
    return found


@cache
def _can_hide() -> bool:
    return can_hide()
