"""What a record can do to a window, and why one can be dropped: the codes that a trace is written in."""

# What a record did. Windows of fixed length can also be made as a copy of a neighbour, without or with the record.
OPENED, ADDED, MERGED, COPIED, COPIED_ADDED = 1, 2, 3, 4, 5
# Why it counts in no window; every number from LATE on is such a reason.
LATE, NULL_KEY, BAD_TIME, NEGATIVE_TIME, REPLAYED, NULL_VALUE, AHEAD = 10, 11, 12, 13, 14, 15, 16
# No record, and so is every number from TICK on: a row that only moves stream time, as a record of another key did that
# is not among these (`by_key`), or (IDLE) as the partition got no record and the others went on.
TICK, IDLE = 17, 18
# what became of a record: it counts, it counts but missed a window, or it is in none
KEPT, PARTLY_LATE, DROPPED = 0, 1, 2
DECISIONS = {OPENED: "opened", ADDED: "added", MERGED: "merged"}
EFFECTS = {OPENED: "opened", ADDED: "added", COPIED: "copied", COPIED_ADDED: "copied and added", LATE: "dropped"}
REASONS = {
    LATE: "late",
    NULL_KEY: "null_key",
    BAD_TIME: "bad_time",
    NEGATIVE_TIME: "negative_time",
    REPLAYED: "replayed",
    NULL_VALUE: "null_value",
    AHEAD: "ahead",
}
