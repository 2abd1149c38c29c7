"""Lines of places under a tree of blocks: which places are taken, and what was laid over which range of them.

A node stands for `WIDTH` nodes of the level below, so a range is whole nodes and at most two broken blocks a level.
The levels of a tree lie one behind the other in a flat array, the places themselves first. So wide, trees are low, and
the loops over the nodes of a block become vector instructions.

What is laid over a range marks the highest nodes that are whole in it; a place holds all marks above it taken together.
No mark is ever taken back: to give a place contents of its own, the marks above it are first handed down.
"""

from sessionkit.base.compiled import compiled_loop, inlined

SHIFT = 6
WIDTH = 1 << SHIFT
MOST_LEVELS = 11  # 64 bits of places
NO_PLACE = -1


@compiled_loop
def tree_length(size):  # type: ignore[no-untyped-def]
    """How many nodes a tree over `size` places has."""
    length = size
    while size > WIDTH:
        size = (size + WIDTH - 1) >> SHIFT
        length += size
    return length


@inlined
def cover(size, first, end, nodes):  # type: ignore[no-untyped-def]
    """Fills `nodes` with ranges (begin, end) of nodes that make up the places from `first` to `end`; how many.

    `nodes` has room for MOST_LEVELS times 4 numbers.
    """
    begin = 0
    count = 0
    while first < end:
        if size <= WIDTH or (first >> SHIFT) == ((end - 1) >> SHIFT):
            nodes[count] = begin + first
            nodes[count + 1] = begin + end
            return (count >> 1) + 1
        whole = (first + WIDTH - 1) >> SHIFT
        whole_end = end >> SHIFT
        nodes[count] = begin + first
        nodes[count + 1] = begin + (whole << SHIFT)
        nodes[count + 2] = begin + (whole_end << SHIFT)
        nodes[count + 3] = begin + end
        count += 4
        first = whole
        end = whole_end
        begin += size
        size = (size + WIDTH - 1) >> SHIFT
    return count >> 1


@compiled_loop
def way_down(size, place, nodes):  # type: ignore[no-untyped-def]
    """Fills `nodes` with (node, begin, end of the nodes right under it), from the top to just above a place; how many.

    `nodes` has room for MOST_LEVELS times 3 numbers.
    """
    levels = 0
    count = size
    while count > WIDTH:
        count = (count + WIDTH - 1) >> SHIFT
        levels += 1
    begin = 0
    for level in range(levels):
        at = 3 * (levels - 1 - level)
        following = begin + size
        nodes[at] = following + (place >> SHIFT)
        nodes[at + 1] = begin + ((place >> SHIFT) << SHIFT)
        nodes[at + 2] = min(nodes[at + 1] + WIDTH, following)
        begin = following
        size = (size + WIDTH - 1) >> SHIFT
        place >>= SHIFT
    return levels


@inlined
def take(tree, size, place):  # type: ignore[no-untyped-def]
    """Takes a place that is free; a node counts the taken places under it."""
    begin = 0
    while True:
        tree[begin + place] += 1
        if size <= WIDTH:
            return
        begin += size
        size = (size + WIDTH - 1) >> SHIFT
        place >>= SHIFT


@inlined
def taken_before(tree, size, place):  # type: ignore[no-untyped-def]
    """The last taken place before `place`, which is one of the `size`; NO_PLACE if there is none."""
    begin, count, level, end = 0, size, 0, place
    while True:
        block = (end >> SHIFT) << SHIFT
        at = end - 1
        while at >= block and tree[begin + at] == 0:
            at -= 1
        if at >= block:
            break
        if count <= WIDTH:
            return NO_PLACE
        begin += count
        count = (count + WIDTH - 1) >> SHIFT
        end >>= SHIFT
        level += 1
    while level > 0:
        level -= 1
        below = (size + (1 << (SHIFT * level)) - 1) >> (SHIFT * level)
        begin -= below
        at = min(at * WIDTH + WIDTH, below) - 1
        while tree[begin + at] == 0:
            at -= 1
    return at


@compiled_loop
def taken_between(tree, size, first, end, nodes):  # type: ignore[no-untyped-def]
    """How many places from `first` on and before `end` are taken."""
    total = 0
    for k in range(cover(size, first, end, nodes)):
        part = tree[nodes[2 * k] : nodes[2 * k + 1]]
        for at in range(part.shape[0]):
            total += part[at]
    return total


@inlined
def lay_largest(tree, size, first, end, number, nodes):  # type: ignore[no-untyped-def]
    """Lays a number over the places from `first` on and before `end`; the largest counts."""
    for k in range(cover(size, first, end, nodes)):
        part = tree[nodes[2 * k] : nodes[2 * k + 1]]
        for at in range(part.shape[0]):
            part[at] = max(part[at], number)


@inlined
def largest_at(tree, size, place):  # type: ignore[no-untyped-def]
    """The largest number that lies over a place."""
    largest = tree[place]
    begin = 0
    while size > WIDTH:
        begin += size
        size = (size + WIDTH - 1) >> SHIFT
        place >>= SHIFT
        largest = max(largest, tree[begin + place])
    return largest


@inlined
def set_largest(tree, size, place, number, nothing, nodes):  # type: ignore[no-untyped-def]
    """Makes `number` what a place holds, whatever was laid over it before."""
    if largest_at(tree, size, place) > number:
        _hand_down_largest(tree, size, place, nothing, nodes)
    tree[place] = number


@compiled_loop
def _hand_down_largest(tree, size, place, nothing, nodes):  # type: ignore[no-untyped-def]
    for k in range(way_down(size, place, nodes)):
        mark = tree[nodes[3 * k]]
        tree[nodes[3 * k]] = nothing
        part = tree[nodes[3 * k + 1] : nodes[3 * k + 2]]
        for at in range(part.shape[0]):
            part[at] = max(part[at], mark)


@inlined
def lay_sum(tree, size, first, end, number, nodes):  # type: ignore[no-untyped-def]
    """Adds a number to the places from `first` on and before `end`."""
    for k in range(cover(size, first, end, nodes)):
        part = tree[nodes[2 * k] : nodes[2 * k + 1]]
        for at in range(part.shape[0]):
            part[at] += number


@inlined
def sum_at(tree, size, place):  # type: ignore[no-untyped-def]
    """The sum at a place."""
    total = tree[place]
    begin = 0
    while size > WIDTH:
        begin += size
        size = (size + WIDTH - 1) >> SHIFT
        place >>= SHIFT
        total += tree[begin + place]
    return total


@inlined
def set_sum(tree, size, place, number, nothing, nodes):  # type: ignore[no-untyped-def]
    """Makes `number` the sum at a place. Nothing to do where it is so already, which is usual."""
    if sum_at(tree, size, place) != number:
        _hand_down_sum(tree, size, place, nothing, nodes)
        tree[place] = number


@compiled_loop
def _hand_down_sum(tree, size, place, nothing, nodes):  # type: ignore[no-untyped-def]
    for k in range(way_down(size, place, nodes)):
        mark = tree[nodes[3 * k]]
        if mark != nothing:
            tree[nodes[3 * k]] = nothing
            part = tree[nodes[3 * k + 1] : nodes[3 * k + 2]]
            for at in range(part.shape[0]):
                part[at] += mark


@inlined
def lay_best(keys, positions, size, first, end, key, position, nodes):  # type: ignore[no-untyped-def]
    """Lays a position over places: the one with the smallest key counts, of equal ones the lowest."""
    for k in range(cover(size, first, end, nodes)):
        begin, end = nodes[2 * k], nodes[2 * k + 1]
        _improve(keys[begin:end], positions[begin:end], key, position)


@inlined
def _improve(keys, positions, key, position):  # type: ignore[no-untyped-def]
    for at in range(keys.shape[0]):
        better = (key < keys[at]) | ((key == keys[at]) & (position < positions[at]))
        keys[at] = key if better else keys[at]
        positions[at] = position if better else positions[at]


@inlined
def best_at(keys, positions, size, place):  # type: ignore[no-untyped-def]
    """(key, position) of the best at a place."""
    key, position = keys[place], positions[place]
    begin = 0
    while size > WIDTH:
        begin += size
        size = (size + WIDTH - 1) >> SHIFT
        place >>= SHIFT
        at = begin + place
        if keys[at] < key or (keys[at] == key and positions[at] < position):
            key, position = keys[at], positions[at]
    return key, position


@inlined
def set_best(keys, positions, size, place, key, position, nothing, nodes):  # type: ignore[no-untyped-def]
    """Makes this the best at a place. Nothing to do where it is so already, which is usual."""
    if best_at(keys, positions, size, place)[1] != position:
        _hand_down_best(keys, positions, size, place, nothing, nodes)
        keys[place] = key
        positions[place] = position


@compiled_loop
def _hand_down_best(keys, positions, size, place, nothing, nodes):  # type: ignore[no-untyped-def]
    for k in range(way_down(size, place, nodes)):
        node = nodes[3 * k]
        if positions[node] != nothing:
            begin, end = nodes[3 * k + 1], nodes[3 * k + 2]
            _improve(keys[begin:end], positions[begin:end], keys[node], positions[node])
            keys[node] = nothing
            positions[node] = nothing
