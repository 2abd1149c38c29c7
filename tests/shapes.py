"""Records without the rhythm of an ordinary stream, on which advice, remarks, pages and charts are tried.

Each shape is a pandas frame of the columns user, at (with a zone) and amount, the same in each run; `SHAPES` has all by
name. `plan_of_shape` is a plan over them, whose gap parts visits in each.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pandas as pd

import sessionkit as sk

SECOND, MINUTE, HOUR, DAY = 1_000, 60_000, 3_600_000, 86_400_000
START = 1_719_792_000_000  # 2024-07-01 in UTC
CLOCKS_BACK = 1_729_990_800_000  # 2024-10-27 01:00 in UTC: clocks in Berlin go from 3:00 to 2:00

SHAPES: dict[str, Callable[[], pd.DataFrame]] = {}
# What is to be said of each shape that loses records under a gap of 30 minutes without a grace; the others lose none,
# or for no other reason than that records come late.
CAUSES = {
    "sorted_by_key": "stand one after another", "projects_appended": "stand one after another",
    "histories_appended": "histories stand one behind the other",
    "hourly_files": "histories stand one behind the other", "newest_first": "the newest row stands first",
    "one_record_ahead": "ahead of", "few_records_ahead": "ahead of", "one_clock_ahead": "the clock of key",
    "rare_clock_ahead": "records of key device 4 lie some 1 d ahead of those around them",
    "sources_mixed": "are mixed in one stream", "servers_mixed": "seem to be mixed in one stream",
    "shuffled": "rows stand in no order of time", "robot_first": "the 201 keys stand one after another",
    "folders": "rows stand in no order of time", "few_records_behind": "before all others: record ",
    "sent_again": "records repeat one of the same key and time that came before",
    "one_part_shuffled": "a stretch of rows in no order of time begins at record ",
}  # fmt: skip
HONEST = (
    "late_now_and_then", "late_at_random", "late_in_a_rush", "late_by_a_retry", "project_history", "rebased_commits",
    "offline_devices",
)  # fmt: skip


def plan_of_shape(grace: Any = "0s", *, gap: Any = "30m", **source: Any) -> sk.Plan:
    """A plan over a shape: sessions of each user, with their count."""
    windows = sk.SessionWindows(inactivity_gap=gap, grace=grace)
    return sk.group_by_key("user", timestamp="at", **source).windowed_by(windows).count()


def shape(make: Callable[[], pd.DataFrame]) -> Callable[[], pd.DataFrame]:
    """Registers a shape; it is made once, and each test has its own copy."""
    made = cache(make)

    def copy() -> pd.DataFrame:
        return made().copy()

    SHAPES[make.__name__] = copy
    return copy


def records(user: Any, at_ms: Any, zone: str = "UTC") -> pd.DataFrame:
    """A frame of these users and times in ms, whose amounts count from 0."""
    at = pd.to_datetime(np.asarray(at_ms, np.int64), unit="ms", utc=True).tz_convert(zone)
    return pd.DataFrame({"user": np.asarray(user, object), "at": at, "amount": np.arange(len(at))})


def visits(
    users: int, days: int, *, seed: int, each: int = 8, pause_ms: int = 40 * SECOND
) -> tuple[list[str], list[int]]:
    """Users and times, in order of time, of one visit a day and user, of some `each` records."""
    rng = np.random.default_rng(seed)
    found: list[tuple[int, str]] = []
    for number in range(users):
        for day in range(days):
            at = START + day * DAY + int(rng.integers(6 * HOUR, 22 * HOUR))
            pauses = rng.exponential(pause_ms, int(rng.poisson(each)) + 1).astype(int) + 1
            found += [(at + int(ms), f"user {number:03}") for ms in np.cumsum(pauses)]
    found.sort()
    return [user for _, user in found], [at for at, _ in found]


# ---- rows that are not in the order of arrival


@shape
def sorted_by_key() -> pd.DataFrame:
    """A table in order of (user, time), as databases and GROUP BY give it: 0.6 % of the rows step back."""
    return records(*visits(60, 20, seed=1)).sort_values(["user", "at"], kind="stable", ignore_index=True)


@shape
def projects_appended() -> pd.DataFrame:
    """The histories of three projects, each its own key, one behind the other."""
    rng = np.random.default_rng(2)
    each = [START + np.cumsum(rng.exponential(3 * HOUR, 900).astype(np.int64)) for _ in range(3)]
    return records(np.repeat(["jupyter", "numpy", "pandas"], 900), np.concatenate(each))


@shape
def histories_appended() -> pd.DataFrame:
    """Three files, of one server each, one behind the other: each has all users and the same two weeks."""
    files = [records(*visits(30, 14, seed=seed)) for seed in (3, 4, 5)]
    return pd.concat(files, ignore_index=True)


@shape
def hourly_files() -> pd.DataFrame:
    """Two days of three servers, which write a file an hour, in order of the files' names."""
    rng = np.random.default_rng(6)
    at = [START + hour * HOUR + np.sort(rng.integers(0, HOUR, 80)) for hour in range(48) for _ in range(3)]
    return records(rng.choice([f"user {number:03}" for number in range(40)], 48 * 3 * 80), np.concatenate(at))


@shape
def sent_again() -> pd.DataFrame:
    """A source that sends a hundred records again now and then, as after a break of its connection."""
    data = records(*visits(40, 14, seed=8))
    parts = [data[at - 500 : at - 400 if at else 0] for at in range(0, len(data), 600)]
    return pd.concat([each for at, part in enumerate(parts) for each in (part, data[600 * at : 600 * at + 600])])


@shape
def newest_first() -> pd.DataFrame:
    """A log whose newest row stands first."""
    return records(*visits(30, 14, seed=7)).iloc[::-1].reset_index(drop=True)


@shape
def shuffled() -> pd.DataFrame:
    """Rows in no order, as a hash or a parallel reader leaves them."""
    return records(*visits(30, 14, seed=8)).sample(frac=1, random_state=8, ignore_index=True)


@shape
def robot_first() -> pd.DataFrame:
    """A table in order of (user, time): a robot, which comes first, has 95 % of the rows, and the others visit once."""
    rng = np.random.default_rng(23)
    robot = records(["a robot"] * 30_000, START + np.sort(rng.integers(0, 14 * DAY, 30_000)))
    begins = START + rng.integers(0, 14 * DAY, 200)[:, None]
    users = np.repeat([f"user {number:03}" for number in range(200)], 8)
    return pd.concat([robot, records(users, (begins + 40 * SECOND * np.arange(8)).ravel())], ignore_index=True)


@shape
def one_part_shuffled() -> pd.DataFrame:
    """Three parts of 3,000 rows, appended in order of their names: the last, the first, and the second, shuffled."""
    first, second, last = np.split(np.arange(9_000), 3)
    order = [*last, *first, *np.random.default_rng(24).permutation(second)]
    return records(*visits(30, 40, seed=24)).iloc[order].reset_index(drop=True)


@shape
def folders() -> pd.DataFrame:
    """A file a day, in order of their names; in each the rows stand in order of (user, time)."""
    return files(24, "sorted by key")


def files(count: int, inside: str, *, seed: int = 27) -> pd.DataFrame:
    """So many files of a day's records, one behind the other: the days rise, or fall where each file is "in order"."""
    rng, found = np.random.default_rng(seed), []
    for day in range(count):
        day_ms = START + (count - day if inside == "in order" else day) * DAY
        at = day_ms + np.sort(rng.integers(0, DAY, int(rng.integers(100, 400))))
        frame = records([f"user {number:03}" for number in rng.integers(0, 40, len(at))], at)
        found.append({"in order": frame, "newest first": frame[::-1], "shuffled": frame.sample(frac=1, random_state=1),
                      "sorted by key": frame.sort_values(["user", "at"])}[inside])  # fmt: skip
    return pd.concat(found, ignore_index=True)


# ---- clocks and sources


@shape
def few_records_behind() -> pd.DataFrame:
    """Two weeks in order; the clocks of 20 records of 3,700, here and there, were never set."""
    user, at = visits(30, 14, seed=28)
    rng = np.random.default_rng(28)
    for row in rng.choice(len(at), 20, replace=False).tolist():
        at[row] = int(rng.integers(0, 10 * HOUR))
    return records(user, at)


@shape
def one_record_ahead() -> pd.DataFrame:
    """Two weeks in order; the clock of one record, in row 1,000, is a day ahead."""
    user, at = visits(30, 14, seed=9)
    at[1_000] += DAY
    return records(user, at)


@shape
def few_records_ahead() -> pd.DataFrame:
    """Two weeks in order, but four records of one user: three are two days ahead, one is some years."""
    user, at = visits(30, 14, seed=10)
    of_user = np.flatnonzero(np.asarray(user) == "user 007")
    for row, days in zip(of_user[[20, 21, 40, 90]].tolist(), (2, 2, 2, 4_000), strict=True):
        at[row] += days * DAY
    return records(user, at)


@shape
def one_clock_ahead() -> pd.DataFrame:
    """Twenty devices, each with a record every five minutes or so; the clock of one of them is a day ahead."""
    rng = np.random.default_rng(11)
    at = START + np.cumsum(rng.exponential(15 * SECOND, 8_000)).astype(np.int64)
    device = rng.integers(0, 20, 8_000)
    return records([f"device {number}" for number in device], at + DAY * (device == 4))


@shape
def rare_clock_ahead() -> pd.DataFrame:
    """Twenty devices; one of them sends seldom, and its clock is a day ahead."""
    rng = np.random.default_rng(21)
    at = START + np.cumsum(rng.exponential(15 * SECOND, 8_000)).astype(np.int64)
    device = np.where(rng.random(8_000) < 0.008, 4, rng.integers(5, 24, 8_000))
    return records([f"device {number}" for number in device], at + DAY * (device == 4))


@shape
def sources_mixed() -> pd.DataFrame:
    """Three partitions of a topic in one stream, as they were fetched; the column `source` has their numbers.

    Each is in order and has its own users; they stand hours apart.
    """
    rng = np.random.default_rng(12)
    source = rng.integers(0, 3, 9_000)
    at = np.zeros(9_000, np.int64)
    for number in range(3):
        of = source == number
        at[of] = START + number * 5 * HOUR + np.cumsum(rng.exponential(20 * SECOND, of.sum())).astype(np.int64)
    user = [f"user {number}" for number in source + 3 * rng.integers(0, 12, 9_000)]
    return records(user, at).assign(source=source)


@shape
def servers_mixed() -> pd.DataFrame:
    """Two servers, each in order, of which one is heard of three to six hours later; the same users visit both."""
    rng = np.random.default_rng(22)
    at = START + np.cumsum(rng.exponential(2 * MINUTE, 9_000)).astype(np.int64)
    source = (rng.random(9_000) < 0.4).astype(int)
    user = [f"user {number}" for number in rng.integers(0, 30, 9_000)]
    heard = at + np.where(source, 2 * HOUR + rng.exponential(HOUR, 9_000), 0).astype(np.int64)
    heard[source == 1] = np.maximum.accumulate(heard[source == 1])
    return records(user, at).assign(source=source).iloc[np.argsort(heard, kind="stable")].reset_index(drop=True)


# ---- late for honest reasons


@shape
def late_now_and_then() -> pd.DataFrame:
    """A stream in order; three records of a hundred come up to six hours late."""
    rng = np.random.default_rng(13)
    user, at = visits(30, 14, seed=13)
    late = np.where(rng.random(len(at)) < 0.03, rng.integers(HOUR, 6 * HOUR, len(at)), 0)
    frame = records(user, at)
    return frame.iloc[np.argsort(np.asarray(at) + late, kind="stable")].reset_index(drop=True)


@shape
def late_by_a_retry() -> pd.DataFrame:
    """A fifth of the records comes at a second try, one to two and a half hours later."""
    rng = np.random.default_rng(26)
    at = START + np.cumsum(rng.exponential(20 * SECOND, 9_000)).astype(np.int64)
    order = np.argsort(
        at + np.where(rng.random(9_000) < 0.2, rng.integers(HOUR, 5 * HOUR // 2, 9_000), 0), kind="stable"
    )
    return records([f"user {number}" for number in rng.integers(0, 30, 9_000)], at[order])


@shape
def late_at_random() -> pd.DataFrame:
    """Every record is under way for a time of its own, in the mean two hours."""
    rng = np.random.default_rng(14)
    user, at = visits(30, 14, seed=14)
    arrival = np.asarray(at) + rng.exponential(2 * HOUR, len(at)).astype(np.int64)
    return records(user, at).iloc[np.argsort(arrival, kind="stable")].reset_index(drop=True)


@shape
def late_in_a_rush() -> pd.DataFrame:
    """Records an hour late in the mean, half of them from the same three hours of two weeks."""
    rng = np.random.default_rng(25)
    at = START + np.append(rng.integers(0, 14 * DAY, 3_000), rng.integers(7 * DAY, 7 * DAY + 3 * HOUR, 3_000))
    order = np.argsort(at + rng.exponential(HOUR, 6_000), kind="stable")
    return records([f"user {number}" for number in rng.integers(0, 40, 6_000)], at[order])


@shape
def offline_devices() -> pd.DataFrame:
    """Forty phones; each is offline for some hours now and then, and then sends what it has kept, in order."""
    rng = np.random.default_rng(15)
    user, at = visits(40, 14, seed=15, each=12, pause_ms=10 * MINUTE)
    arrival, number = np.asarray(at), np.array([int(name[5:]) for name in user])
    arrival = arrival.copy()
    for phone in range(40):
        for day in rng.choice(14, 2, replace=False):
            from_ms = START + int(day) * DAY + int(rng.integers(8 * HOUR, 18 * HOUR))
            until_ms = from_ms + int(rng.integers(2 * HOUR, 8 * HOUR))
            kept = (number == phone) & (arrival >= from_ms) & (arrival < until_ms)
            arrival[kept] = until_ms
    return records(user, at).iloc[np.argsort(arrival, kind="stable")].reset_index(drop=True)


@shape
def project_history() -> pd.DataFrame:
    """Changes of a project by author, as they were merged; the time is when each was written, at times weeks before."""
    rng = np.random.default_rng(16)
    merged = START + np.cumsum(rng.exponential(5 * HOUR, 3_000)).astype(np.int64)
    waited = np.where(rng.random(3_000) < 0.5, 0, rng.lognormal(np.log(12 * HOUR), 1.8, 3_000)).astype(np.int64)
    authors = rng.zipf(1.6, 3_000) % 80
    return records([f"author {number}" for number in authors], merged - waited)


@shape
def rebased_commits() -> pd.DataFrame:
    """The files of commits, oldest commit first: a commit is a key with one time, which a rebase leaves as it was."""
    rng = np.random.default_rng(17)
    committed = START + np.cumsum(rng.exponential(5 * HOUR, 900)).astype(np.int64)
    authored = committed - np.where(rng.random(900) < 0.2, rng.integers(HOUR, 40 * HOUR, 900), 0)
    files = rng.integers(1, 12, 900)
    return records(np.repeat([f"commit {number}" for number in range(900)], files), np.repeat(authored, files))


# ---- nothing is lost


@shape
def heartbeats() -> pd.DataFrame:
    """Four visits of each of eight devices: 110 beats, 5 s apart, in a visit, and an hour between visits."""
    pauses = np.tile([HOUR, *[5 * SECOND] * 109], 4)
    at = (START + np.cumsum(pauses)[None, :] + 700 * np.arange(8)[:, None]).ravel()
    frame = records(np.repeat([f"device {number}" for number in range(8)], len(pauses)), at)
    return frame.sort_values("at", kind="stable", ignore_index=True)


@shape
def minute_beats() -> pd.DataFrame:
    """One sensor with a beat every 60 s, and 20 pauses of two hours among 10,000."""
    pauses = np.full(10_000, MINUTE)
    pauses[np.arange(1, 21) * 470] = 2 * HOUR
    return records(["sensor"] * 10_000, START + np.cumsum(pauses))


def late_beats() -> pd.DataFrame:
    """Twelve devices with a beat every 60 s and rare pauses; 8 % of the beats come some 40 s late, none by a gap."""
    rng = np.random.default_rng(11)
    pauses = (
        60_000 + rng.normal(0, 1_500, (12, 200)) + (rng.random((12, 200)) < 0.02) * rng.uniform(3e5, 4e6, (12, 200))
    )
    at = (START + pauses.cumsum(axis=1) + 3_100 * np.arange(12)[:, None]).astype(np.int64).ravel()
    late_ms = np.where(rng.random(len(at)) < 0.08, np.minimum(rng.exponential(40_000, len(at)), 85_000), 0)
    frame = records(np.repeat([f"sensor {number}" for number in range(12)], 200), at)
    return frame.iloc[np.argsort(at + late_ms, kind="stable")].reset_index(drop=True)


@shape
def access_log() -> pd.DataFrame:
    """A web server's log: addresses, in order, to the second, with many records in one second; nothing is dropped."""
    rng = np.random.default_rng(18)
    at = START + np.cumsum(rng.integers(0, 4, 6_000)) * SECOND
    return records([f"10.0.{number // 250}.{number % 250}" for number in rng.zipf(1.5, 6_000) % 400], at)


@shape
def one_huge_key() -> pd.DataFrame:
    """41 keys, of which one has 99.6 % of the records; it loses 90 of them, which come five hours late."""
    rng = np.random.default_rng(19)
    pauses = np.where(np.arange(20_000) % 500, rng.exponential(10 * SECOND, 20_000), HOUR)
    at = START + np.cumsum(pauses).astype(np.int64)
    user = np.full(20_000, "robot", object)
    user[rng.choice(20_000, 80, replace=False)] = [f"user {number % 40:02}" for number in range(80)]
    at[rng.choice(np.arange(5_000, 20_000), 90, replace=False)] -= 5 * HOUR
    return records(user, at)


@shape
def clock_change() -> pd.DataFrame:
    """Six sensors in Berlin in the night in which 2:00 to 3:00 comes twice, with a record every two minutes or so."""
    rng = np.random.default_rng(20)
    at = np.sort(CLOCKS_BACK + rng.integers(-6 * HOUR, 6 * HOUR, 2_000))
    return records([f"sensor {number}" for number in rng.integers(0, 6, 2_000)], at, "Europe/Berlin")
