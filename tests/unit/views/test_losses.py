"""Which keys lose most: equal to the dropped records, counted by hand."""

import pytest

from tests.unit.widgets.test_tuner import KINDS, clicks, spent_in


@pytest.mark.parametrize("kind", KINDS)
def test_losses_add_up(kind: str) -> None:
    data, plan = clicks(), spent_in(KINDS[kind]).with_windows(grace="0s")
    run = plan.run(data)
    table = run.losses()
    lost = run.dropped().drop_duplicates("offset").groupby("key").size()
    assert dict(zip(table["key"], table["late"], strict=True)) == {key: lost.get(key, 0) for key in table["key"]}
    assert lost.sum() > 20
    assert dict(zip(table["key"], table["records"], strict=True)) == data.groupby("user").size().to_dict()
    assert list(table["late"]) == sorted(table["late"], reverse=True)
    assert (table["share"] == table["late"] / table["records"]).all()
    assert table["merges"].sum() == run.metrics()["windows-merged"]
    assert len(run.losses(2)) == 2


def test_no_records() -> None:
    assert len(spent_in(KINDS["session"]).run(clicks(0)).losses()) == 0
