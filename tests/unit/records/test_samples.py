"""The sample comes as a frame, from the checkout or from an installed package."""

from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sessionkit as sk
from sessionkit.errors import InvalidArgument
from sessionkit.records import samples


def test_flights() -> None:
    flights = sk.load_sample("flights")
    assert isinstance(flights, pd.DataFrame)
    assert len(flights) == 28_491
    assert flights.equals(sk.load_sample())
    assert {"partition", "offset", "carrier", "origin", "scheduled"} <= set(flights.columns)


def test_arrow_opens_the_file_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where pandas opened it for Arrow, one process in forty was aborted at its end on a busy machine."""
    given: list[object] = []
    opened = pq.ParquetFile
    monkeypatch.setattr(pq, "ParquetFile", lambda source, **how: given.append(source) or opened(source, **how))
    sk.load_sample("flights")
    assert [type(source) for source in given] == [pa.OSFile]


def test_an_installed_package_has_its_own_copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "site-packages" / "sessionkit" / "records"
    monkeypatch.setattr(samples, "__file__", str(package / "samples.py"))
    copy = package / "_data" / samples.SAMPLES["flights"]
    assert (
        samples.sample_path("flights") == copy
    )  # named where there is no copy, so that the error says what is missing
    copy.parent.mkdir(parents=True)
    copy.touch()
    assert samples.sample_path("flights") == copy


@pytest.mark.parametrize("name", ["trains", "", None, ["flights"]])
def test_there_is_no_such_sample(name: object) -> None:
    with pytest.raises(InvalidArgument, match=r"there is no such sample; got .*; one of \['flights'\]"):
        sk.load_sample(name)  # type: ignore[arg-type]
