"""No public name changes its signature unnoticed: public_api.txt has a line for each, which is changed with it."""

import difflib

from tests.public_api import COMMAND, LISTED, lines


def test_public_names_are_those_listed() -> None:
    listed, found = LISTED.read_text(encoding="utf-8").splitlines(), lines()
    changed = list(difflib.unified_diff(listed, found, "listed", "found", n=0, lineterm=""))
    advice = f"if users are meant to see this change, `{COMMAND}` writes {LISTED.name} anew; say so in CHANGELOG.md"
    assert not changed, "\n".join([*changed, "", advice])


def test_names_handed_on_and_classes_that_are_handed_out_are_listed() -> None:
    listed = LISTED.read_text(encoding="utf-8").splitlines()
    for start in (
        "sessionkit.group_by_key(*keys: str",
        "sessionkit.Plan.run(data: Any, *, store: PlanStore | None = None",
        "sessionkit.SessionWindows(*, inactivity_gap: Duration | None = None, grace: Duration | None = None, ",
        "sessionkit.windows.WindowKind.retention_ms(retention: Duration | None) -> int",
        "sessionkit.stores.open_store(",
        "sessionkit.stores.memory.sessions.MemorySessionStore.find_sessions(",
        "sessionkit.views.explain.record.Explanation is a class",
        "sessionkit.errors.StoreCorrupted is a class(StoreError)",
    ):
        assert any(line.startswith(start) for line in listed), start
