"""One partition's entries by hand: places before and behind a bound, and the merge of what is cached and stored."""

import pytest

from sessionkit.stores.cache.named_cache import Budget, Entry, EntryId, NamedCache, merged


def entry(place: str, value: str | None = "cached") -> Entry:
    """An entry of one byte, of which the place is all that matters; None is a deletion."""
    at = place.encode()
    return Entry(at, EntryId(0, at[:1], 0, 0), place, None if value is None else f"{place} {value}", 0, size=1)


def cache_of(*places: str, most: int | None = None) -> NamedCache:
    cache = NamedCache(lambda entry: None, Budget(most))
    for place in places:
        cache.put(entry(place))
    return cache


@pytest.mark.parametrize(
    ("bound", "behind", "before"),
    [("a", "b", None), ("b", "b", None), ("c", "d", "b"), ("d", "d", "b"), ("e", "f", "d"), ("g", None, "f")],
)
def test_the_place_behind_a_bound_may_be_at_it_and_that_before_may_not(
    bound: str, behind: str | None, before: str | None
) -> None:
    cache = cache_of("f", "b", "d")
    assert cache.place_after(bound.encode()) == (None if behind is None else behind.encode())
    assert cache.place_after(bound.encode(), backward=True) == (None if before is None else before.encode())
    assert cache_of().place_after(bound.encode()) is cache_of().place_after(bound.encode(), backward=True) is None


@pytest.mark.parametrize("most", [None, 9])
@pytest.mark.parametrize(
    ("low", "high", "found"),
    [
        (None, None, "a1 a2 b1 b2"), ("a2", "b1", "a2 b1"), ("a2", "a2", "a2"), ("a2", None, "a2 b1 b2"),
        (None, "a2", "a1 a2"), ("b1", "a2", ""), ("a3", "a9", ""),
    ],
)  # fmt: skip
def test_both_bounds_of_a_read_are_included(most: int | None, low: str | None, high: str | None, found: str) -> None:
    cache = cache_of("b2", "a1", "b1", "a2", most=most)
    bounds = (None if low is None else low.encode(), None if high is None else high.encode())
    assert " ".join(each.key for each in cache.between(*bounds)) == found
    assert [each.key for each in cache.between(*bounds, backward=True)] == found.split()[::-1]
    of_a = [place for place in found.split() if place[0] == "a" or most is not None]
    assert [each.key for each in cache.between(*bounds, key=b"a")] == of_a


def test_an_entry_that_went_before_a_read_comes_to_it_is_not_read() -> None:
    cache = cache_of("a", "b", "c", most=3)
    read = cache.between(None, None)
    cache.put(entry("d"))  # a goes
    assert [each.key for each in read] == ["b", "c"]


ENTRIES = [entry("b"), entry("c", None), entry("e", None), entry("g")]


@pytest.mark.parametrize(("rows", "forward", "backward", "overlooking"), [
    ("", "b g", "g b", "g b"), ("a", "a b g", "g b a", "g b a"), ("abcd", "a b d g", "g d b a", "g d c b a"),
    ("bcdefgh", "b d f g h", "h g f d b", "h g f e d c b"), ("h", "b g h", "h g b", "h g b"),
])  # fmt: skip
def test_where_both_know_a_window_the_cache_is_right(rows: str, forward: str, backward: str, overlooking: str) -> None:
    """Kafka goes backward as if it went forward: there it overlooks a deletion that the store comes to later."""

    def merge(*, backward: bool, overlooks: bool = False) -> str:
        cached, stored = (ENTRIES[::-1], rows[::-1]) if backward else (ENTRIES, rows)
        found = merged(iter(cached), iter(stored), str.encode, backward=backward, overlooks=overlooks)
        told = list(found)
        assert {each for each in told if len(each) > 1} == {"b cached", "g cached"}
        return " ".join(each[0] for each in told)

    assert merge(backward=False) == merge(backward=False, overlooks=True) == forward
    assert merge(backward=True) == backward
    assert merge(backward=True, overlooks=True) == overlooking
