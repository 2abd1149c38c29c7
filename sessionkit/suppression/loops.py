"""The compiled buffer of suppress: a heap of windowed keys by place and rank."""

from __future__ import annotations

from sessionkit.base.compiled import compiled_loop

# Places in `state`: the largest timestamp, how many keys wait, the most that did, how many rows went out.
CLOCK, WAITING, MOST_WAITING, SENT = range(4)
NOT_HELD = -1


@compiled_loop
def _comes_first(one, other, place, rank):  # type: ignore[no-untyped-def]
    return place[one] < place[other] or (place[one] == place[other] and rank[one] < rank[other])


@compiled_loop
def _push(heap, count, key, place, rank):  # type: ignore[no-untyped-def]
    at = count
    while at > 0 and _comes_first(key, heap[(at - 1) // 2], place, rank):
        heap[at] = heap[(at - 1) // 2]
        at = (at - 1) // 2
    heap[at] = key


@compiled_loop
def _pop(heap, count, place, rank):  # type: ignore[no-untyped-def]
    first, last, at = heap[0], heap[count - 1], 0
    while 2 * at + 1 < count - 1:
        child = 2 * at + 1
        if child + 1 < count - 1 and _comes_first(heap[child + 1], heap[child], place, rank):
            child += 1
        if _comes_first(last, heap[child], place, rank):
            break
        heap[at] = heap[child]
        at = child
    heap[at] = last
    return first


@compiled_loop
def suppress_rows(  # type: ignore[no-untyped-def]
    rows, carried, key, rank, given_place, timestamp_ms, silent, waits_ms, most, shuts_down, is_final,
    place, held, heap, state, sent, sent_at,
):  # fmt: skip
    """Takes the rows of one partition in; returns the row at which the buffer was full, -1 where it never stopped.

    `rows` integers (r,), the first `carried` of which waited before: they move no clock. `key`, `given_place`,
    `timestamp_ms`, `silent` and `size` are those of all rows, `rank` of all windowed keys. `limits` int64 (3,): how
    long a place waits, the most records, the most bytes. `place` and `held` int64 receive the place of each key, and
    the row that waits for it; `heap` int64 is scratch, `state` int64 (4,). What goes out: row `sent[j]`, after
    `sent_at[j]`.
    """
    for n in range(rows.shape[0]):
        row = rows[n]
        k = key[row]
        if held[k] == NOT_HELD:
            place[k] = given_place[row]
            _push(heap, state[WAITING], k, place, rank)
            state[WAITING] += 1
        held[k] = row
        state[MOST_WAITING] = max(state[MOST_WAITING], state[WAITING])
        if n < carried:
            continue
        state[CLOCK] = max(state[CLOCK], timestamp_ms[row])
        while state[WAITING] > 0:
            is_over = state[WAITING] > most
            if place[heap[0]] > state[CLOCK] - waits_ms:
                if is_over and shuts_down:
                    return row
                if not is_over:
                    break
            first = _pop(heap, state[WAITING], place, rank)
            state[WAITING] -= 1
            if not (silent[held[first]] and is_final):
                sent[state[SENT]], sent_at[state[SENT]] = held[first], row
                state[SENT] += 1
            held[first] = NOT_HELD
    return -1
