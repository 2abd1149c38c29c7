"""What stores hold: the words that are there where nobody gives others."""

from sessionkit.stores.contract import Snapshot, StoredSession, StoredWindow


def test_a_window_that_is_put_by_hand_was_opened_and_closed_by_no_record() -> None:
    assert StoredSession(0, 5, 1, "ada") == (0, 5, 1, "ada", -1, -1, -1)
    assert StoredWindow(0, 1, 5, "ada") == (0, 1, 5, "ada", -1, -1, -1)


def test_a_partition_that_was_not_read_is_before_its_first_record() -> None:
    assert Snapshot() == (-1, -1, -1, -1)
