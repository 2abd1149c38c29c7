"""Sample data that comes with the package."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

from sessionkit.base.calls import called_as
from sessionkit.errors import InvalidArgument, problem, shorten
from sessionkit.records.files.parquet import read_parquet

if TYPE_CHECKING:
    import pandas as pd

SAMPLES = {"flights": "flights-2013-07.parquet"}


def sample_path(name: str) -> Path:
    """Where the Parquet file of a sample lies: in the installed package, or beside a checkout of the project."""
    if name not in list(SAMPLES):
        raise InvalidArgument(problem("there is no such sample", shorten(repr(name)), f"one of {list(SAMPLES)}"))
    here = Path(__file__).resolve().parent
    places = (here / "_data" / SAMPLES[name], here.parent.parent / "data" / SAMPLES[name])
    return next((place for place in places if place.is_file()), places[0])


@called_as('sk.load_sample("flights")')
def load_sample(name: Literal["flights"] = "flights") -> pd.DataFrame:
    """A sample as a pandas frame. "flights": 28,491 departures from New York in July 2013, in order of departure.

    `scheduled` is the event time (New York wall clock, no zone: read it with `timezone="UTC"`), `offset` and
    `partition` give a record's place. A flight that left late is a late record.

    Example:
        >>> flights = sk.load_sample("flights")
        >>> len(flights)
        28491
    """
    # not by pandas, which opens the file itself: Arrow may then abort when Python ends (arrow#50482)
    return read_parquet(sample_path(name)).to_pandas()
