"""What was measured is kept as lines of JSON, a file for each commit: a run that was stopped goes on where it was."""

from __future__ import annotations

import json
from pathlib import Path

from benchmarks.running.process import Measured

Place = tuple[str, str, str, int]  # topic, case, side, round


class Kept:
    """The measurements of one commit. A line that was cut while it was written is dropped."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._found: dict[Place, Measured] = {}
        lines = path.read_text().splitlines() if path.exists() else []
        for line in lines:
            try:
                told = json.loads(line)
                topic, case, side, number = told.pop("place")
                self._found[topic, case, side, number] = Measured(**told)
            except (ValueError, KeyError, TypeError):
                continue
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(_line(place, each) for place, each in self._found.items()))

    def __contains__(self, place: Place) -> bool:
        return place in self._found

    def add(self, place: Place, found: Measured) -> None:
        """Kept in memory and in the file."""
        self._found[place] = found
        with self._path.open("a") as file:
            file.write(_line(place, found))

    def rounds(self, topic: str, case: str, sides: list[str]) -> list[tuple[Measured, ...]]:
        """What the sides of a case did, a tuple for each round in which all of them ran."""
        numbers = sorted({place[3] for place in self._found if place[:2] == (topic, case)})
        rounds = [[self._found.get((topic, case, side, number)) for side in sides] for number in numbers]
        return [tuple(each for each in found if each) for found in rounds if all(found)]


def _line(place: Place, found: Measured) -> str:
    return json.dumps({"place": place, **found._asdict()}) + "\n"
