"""What a table holds, and the smallest round grace: for columns and orders of any kind."""

import datetime as dt
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import sessionkit as sk
from sessionkit.advice.file_columns import begins_with_a_record, file_columns
from sessionkit.advice.joined_parts import joined_parts
from sessionkit.advice.replay import smallest_round_grace_ms
from sessionkit.base.durations import ROUND_MS

START = 1_720_000_000
SECONDS = START + np.arange(60)
DEVICES = {"device": ["phone", "tablet", "desktop"] * 20}


@pytest.mark.parametrize(("times", "unit"), [
    (pa.array(SECONDS), "s"), (pa.array(SECONDS * 1_000), "ms"), (pa.array(SECONDS * 1_000_000), "us"),
    (pa.array(SECONDS * 1_000_000_000), "ns"), (pa.array(SECONDS * 1_000, pa.timestamp("ms")), None),
    (pa.array(SECONDS * 1_000, pa.timestamp("ms", "Europe/Berlin")), None),
])  # fmt: skip
def test_times_are_found_with_their_unit(times: pa.Array, unit: str | None) -> None:
    found = file_columns(pa.table({"count": np.arange(60) % 7, "seen": times, "page": ["a", "b", "c"] * 20}))
    assert found.time is not None and found.key is not None
    assert (found.time.name, found.time.unit, found.key.name) == ("seen", unit, "page")
    assert found.step_back_share == 0


@pytest.mark.parametrize(
    ("columns", "key"),
    [
        ({"page": ["a", "b"] * 30, "visitor_id": list(range(20)) * 3}, "visitor_id"),
        ({"page": ["a", "b", "c"] * 20, "state": ["x", "y"] * 30}, "page"),
        ({"page": [f"page {number}" for number in range(60)]}, None),  # nothing repeats
        ({"amount": np.linspace(0, 1, 60)}, None),
        ({"page": pa.array([None] * 60, pa.string())}, None),
        ({"one": ["ada"] * 60}, "one"),
        ({"one": ["ada"] * 60, "page": ["a", "b"] * 30}, "page"),
        ({"Subject": list("abcdef") * 10, "Ticket ID": ["t1", "t2"] * 30}, "Ticket ID"),
        ({"verb.id": ["did", "saw", "was"] * 20, "actor.mbox": [f"a{n}" for n in range(20)] * 3}, "actor.mbox"),
        ({"user": ["-", "ada", "bob"] * 20, "remote_addr": [f"10.0.0.{n}" for n in range(20)] * 3}, "remote_addr"),
        ({"lists": [[1]] * 60, "user": ["ada", "bob"] * 30}, "user"),
        *(({**DEVICES, name: [*range(40), *range(20)]}, name) for name in ("customer", "userId", "account_no")),
        ({**DEVICES, "customer": [str(number % 20) for number in range(60)]}, "customer"),
        *(({**DEVICES, name: list(range(20)) * 3}, "device") for name in ("packet_id", "user_count", "session")),
        ({"device_id": [f"d{n % 20}" for n in range(60)], "customer": [1, 2, 3] * 20}, "device_id"),
        ({"user": ["ada", "bob"] * 30, "account_balance": list(range(20)) * 3}, "user"),
        ({"customer": list(range(55)) + [0] * 5, "page": ["a", "b"] * 30}, "page"),  # hardly one repeats
        ({"heart_rate": [60, 61, 62] * 20, "stepCount": [5, 6] * 30, "timezone": ["Europe/Rome", "UTC"] * 30}, None),
        ({"Heart Rate": [60, 61, 62] * 20, "tz": ["+02:00"] * 60}, None),  # one person's
        ({"glucose": [100 + abs(n % 40 - 20) for n in range(60)], "isig": ["1.5", "2.25", "-"] * 20}, None),
        ({"house": [*range(20)] * 3}, "house"),  # round after round
        ({"order": [n // 3 + n % 2 for n in range(60)]}, "order"),  # several at a time
        ({"date": pa.array([2**64 - 1 - n % 7 for n in range(60)], pa.uint64())}, "date"),
        ({"session.reuses": [n // 3 for n in range(60)], "pid": [7, 8] * 30}, "pid"),
        ({"rate_plan": [1, 2] * 30, "bytes": [7, 8, 9] * 20}, "rate_plan"),
        ({"VISIT": list("abcdef") * 10, "USUBJID": [f"01-{n % 5}" for n in range(60)]}, "USUBJID"),
        ({"religion": list("abc") * 20, "subject_id": [*range(50), *range(10)]}, "subject_id"),
        ({"weather": list("abcdef") * 10, "location": ["x", "y"] * 30}, "location"),
        ({"customer_type": ["a", "b"] * 30, "country": list("abcdef") * 10}, "country"),
        ({"is_repeat_session": [0, 1] * 30, "device_type": list("abc") * 20}, "device_type"),
        ({"c1": list("abcdef") * 10, "c6": [f"GET /{n % 20} HTTP/1.0" for n in range(60)]}, "c1"),
        ({"state_name": list("abcd") * 15, "dept_name": [f"Police of {n % 9}" for n in range(60)]}, "dept_name"),
        ({"invoice": [*map(str, range(536365, 536384))] * 3 + ["C536391"] * 3, "item": list("abcde") * 12}, "invoice"),
        ({"CustomerID": [17850.0, 13047.0, None] * 20, "item": list("abcde") * 12}, "CustomerID"),  # others are missing
        ({"user": [0.5, 1.0, 2.0] * 20, "item": list("abcde") * 12}, "item"),
        ({"client_name": ["w7", "mac"] * 2 + [None] * 56, "orig_h": ["10.0.0.1", "10.0.0.2"] * 30}, "orig_h"),
        ({"replies": [n % 20 for n in range(60)], "user": ["ada"] * 60}, "user"),
    ],
)
def test_keys_are_what_repeats(columns: dict[str, Any], key: str | None) -> None:
    found = file_columns(pa.table({**columns, "at": pa.array(SECONDS)}))
    assert (found.key.name if found.key is not None else None) == key


def test_newest_rows_first_are_in_order_too() -> None:
    """Of two times of a game, that of its end was taken, as fewer rows of it step back."""
    began = SECONDS
    ended = began + np.random.default_rng(1).integers(0, 90, len(began)) * (began[1] - began[0])
    found = file_columns(pa.table({"user": ["ada", "bob"] * 30, "ended_at": ended[::-1], "began_at": began[::-1]}))
    assert found.time is not None and found.time.name == "began_at"
    table = pa.table({"user": ["ada", "bob"] * 30, "timestamp": np.roll(began, 1), "stored": began})
    found = file_columns(table)
    assert found.time is not None and found.time.name == "timestamp" and found.arrivals == ["stored"]


def test_of_rows_in_no_order_the_first_time_is_that_of_the_events() -> None:
    """Dropping off was taken for the event, as 50.1% of its rows step back instead of 50.2%."""
    start = np.random.default_rng(7).permutation(1_000) * 60_000
    for shift in range(5):
        end = start + 60_000 * np.random.default_rng(shift).integers(1, 60, 1_000)
        both = {"pickup": pa.array(start, pa.timestamp("ms")), "dropoff": pa.array(end, pa.timestamp("ms"))}
        found = file_columns(pa.table({**both, "zone": ["a", "b"] * 500}))
        assert found.time is not None and found.time.name == "pickup"


def test_a_time_that_is_the_same_for_all_rows_of_a_key_is_not_that_of_the_events() -> None:
    """Of the times of a permit, the day on which its case began was proposed, which makes sessions of no length."""
    case, sensor = np.arange(60) // 3, {"ts": SECONDS + np.tile([0, 5, 1], 20), "_write_ts": SECONDS + 9}
    columns = {"case": [f"c{n}" for n in case], "case_start": START + 9 * case, "at": SECONDS + np.tile([0, 5, 1], 20)}
    found = file_columns(pa.table(columns))
    assert found.time is not None and found.time.name == "at"
    assert "the same for all rows of a key" in found.columns[1].why
    alone = file_columns(pa.table(columns).drop_columns("at"))
    assert alone.time is not None and alone.time.name == "case_start"
    found = file_columns(pa.table({"host": ["a", "b"] * 30, **sensor}))
    assert found.time is not None and (found.time.name, found.arrivals) == ("ts", ["_write_ts"])


@pytest.mark.parametrize("zone", [None, "Europe/Vienna"])
def test_an_instant_comes_before_clocks_and_these_before_days(zone: str | None) -> None:
    """Of times in a night of October, the clocks' and then the midnights of the days were taken for the event time."""
    ts = pd.Series(pd.date_range("2026-10-24 20:00", periods=90, freq="7min", tz="UTC"))
    local = ts.dt.tz_convert("Europe/Vienna").dt.tz_localize(None)
    days, ms = local.dt.date, ts.dt.as_unit("ms").astype("int64").sample(frac=1, random_state=1).tolist()
    columns = {"vehicle": [1, 2, 3] * 30, "service_day": days, "local_time": local, "ts": ms, "received": ts}
    table = pa.table(columns)
    for name in ("ts", "local_time", "service_day", "received"):
        found = file_columns(table, zone)
        assert found.time is not None and found.time.name == name
        assert found.time.has_only_days == (name == "service_day")
        table = table.drop_columns(name)


def test_the_share_of_rows_that_step_back() -> None:
    found = file_columns(pa.table({"at": SECONDS[::-1].copy(), "user": ["ada", "bob"] * 30}))
    assert found.step_back_share == 59 / 60
    nothing = file_columns(pa.table({"user": pa.array([], pa.string())}))
    assert (nothing.rows, nothing.time, nothing.key, nothing.step_back_share) == (0, None, None, 0)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("most_late_s", [0, 40, 7_000, 90_000_000])
def test_the_smallest_round_grace_keeps_all_and_the_one_before_does_not(seed: int, most_late_s: int) -> None:
    random = np.random.default_rng(seed)
    at = (1_000_000_000 + np.arange(300) * 60 - random.integers(0, most_late_s + 1, 300)) * 1_000
    records = pd.DataFrame({"user": random.integers(0, 4, 300), "at": at})
    windows = sk.SessionWindows(inactivity_gap="5m", grace="0s")
    plan = sk.group_by_key("user", timestamp="at", unit="ms").windowed_by(windows).count()
    found_ms = smallest_round_grace_ms(plan, records)

    def lost(grace_ms: int) -> int:
        dropped: int = plan.with_windows(grace_ms=grace_ms).run(records).metrics()["dropped-records-total"]
        return dropped

    assert found_ms in ROUND_MS and lost(found_ms) == 0
    place = ROUND_MS.index(found_ms)
    assert place == 0 or lost(ROUND_MS[place - 1]) > 0


def test_what_is_the_same_in_all_rows_is_neither_time_nor_key() -> None:
    same = pa.array([START] * 60, pa.timestamp("s"))
    found = file_columns(pa.table({"loaded": same, "site": ["x"] * 60, "user": ["ada", "bob"] * 30, "at": SECONDS}))
    assert found.time is not None and found.key is not None
    assert (found.time.name, found.key.name) == ("at", "user")
    whys = {column.name: (column.could_be, column.why) for column in found.columns}
    assert whys["loaded"] == ("", "no event time: it is the same in all rows")
    assert whys["site"] == ("", "no key: it has one value")
    alone = file_columns(pa.table({"loaded": same, "site": ["x"] * 60}))
    assert alone.time is None and alone.key is None


@pytest.mark.parametrize(
    ("texts", "way"),
    [
        (["01/02/2024 10:00"], 'format="%d/%m/%Y %H:%M" or "%m/%d/%Y %H:%M"'),
        (["Oct 11 22:14:15"], 'format="2024 %b %d %H:%M:%S"'),
    ],
)
def test_texts_that_a_format_makes_times_of(texts: list[str], way: str) -> None:
    found = file_columns(pa.table({"at": texts * 60}))
    assert found.time is None and way in found.columns[0].why


@pytest.mark.parametrize(
    ("names", "is_record"),
    [
        (["ada", "2024-07-01 00:10:00", "3"], True),
        (["ada", "31.12.2024 10:00", ""], True),
        (["x7", "2024-07-01 00:10:00", "2024-07-01"], False),  # of numbers, as in a pivoted table
        (["user", "at", "n"], False),
        (["user", "2024", "2025"], False),  # a year for each column
        (["user", "at", "1"], False),  # times are not called so
    ],
)
def test_names_that_are_rather_a_record(names: list[str], is_record: bool) -> None:
    table = pa.table([pa.array(["x", "y"]), pa.array([1, 2], pa.timestamp("s")), pa.array([1, 2])], names=names)
    assert begins_with_a_record(table, file_columns(table)) is is_record


@pytest.mark.parametrize(
    ("name", "texts", "is_record"),
    [
        ("user37", ["user5", "user12"], True), ("level=info", ["level=warn", "level=info"], True),
        ('{"n": 1}', ['{"n": 2}', '{"n": 3}'], True), ("CreateTime:1780272013683", ["CreateTime:1780272017242"], True),
        ("Thu Nov 26 06:08:37 2026 +0000", ["Thu Nov 26 06:08:17 2026 +0000", "Wed Nov 25 06:08:17 2026 +0000"], True),
        ("2024-07-01", ["x", "F"], False), ("7", ["x", "F"], False), ("user_2", ["ada", "bob"], False),
    ],
)  # fmt: skip
def test_a_name_of_the_shape_of_its_values(name: str, texts: list[str], is_record: bool) -> None:
    table = pa.table({name: texts, "": range(len(texts))})
    assert begins_with_a_record(table, file_columns(table)) is is_record
    named = table.append_column("at", pa.array(range(len(texts)), pa.timestamp("s")))
    assert not begins_with_a_record(named, file_columns(named))  # no time is called so


def test_the_format_that_fits_all_of_a_long_history_is_named() -> None:
    days = pd.date_range("2026-02-01", periods=3_000, freq="13min").strftime("%d/%m/%Y %H:%M")
    found = file_columns(pa.table({"user": ["a", "b"] * 1_500, "at": list(days)}))
    assert found.time is not None and found.time.format == "%d/%m/%Y %H:%M"


@pytest.mark.parametrize("measures", [["-", *"12345"], ["°C", "1.5", "2.5", "3.5"], ["1,5", "", "n/a", *"234567"]])
def test_a_measure_beside_other_texts_is_not_proposed_as_the_key(measures: list[str]) -> None:
    at = pa.array(range(4 * len(measures)), pa.timestamp("s"))
    found = file_columns(pa.table({"at": at, "where": ["a", "b"] * (len(at) // 2), "n": measures * 4}))
    assert found.key is not None and found.key.name == "where"


@pytest.mark.parametrize(
    ("name", "ids", "is_key"),
    [
        ("id", [1_234_567_890_123_456_789, 1_234_567_890_123_456_790], True),
        ("order", [1_234_567_890_123_456_789, 1_234_567_890_123_456_790], True),  # one time in milliseconds
        ("user_id", [1_234_567_890_123_456_789, 1_534_567_890_123_456_790], True),
        *(
            (name, [1_234_567_890_123_456_789, 1_534_567_890_123_456_790], True)
            for name in ("MessageID", "a.id", "iPhoneId")
        ),
        ("paid", [1_234_567_890_123_456_789, 1_534_567_890_123_456_790], False),
        ("createdAt", [1_634_567_890_000, 1_634_567_899_000], False),
        ("customer", [1_634_567_890, 1_534_567_899], True),
        ("session_start", [1_634_567_890_000, 1_634_567_899_000], False),
        ("seen", [1_234_567_890_123_456_789, 1_534_567_890_123_456_790], False),
    ],
)
def test_long_ids_are_keys_and_no_times(name: str, ids: list[int], is_key: bool) -> None:
    found = file_columns(pa.table({name: ids * 30, "at": pa.array(SECONDS, pa.timestamp("s"))}))
    assert found.columns[0].could_be == ("key" if is_key else "event time")


def test_a_person_is_a_key_before_a_session_that_the_file_numbers_itself() -> None:
    """A shop's clicks: by their own session_id nearly no pause is a gap, by user_id one stands out."""
    rows = {"session_id": [f"s{n // 3}" for n in range(60)], "user_id": [f"u{n // 12}" for n in range(60)]}
    found = file_columns(pa.table({**rows, "seen": pa.array(SECONDS)}))
    assert found.key is not None and found.key.name == "user_id"
    alone = file_columns(pa.table({"session_id": rows["session_id"], "seen": pa.array(SECONDS)}))
    assert alone.key is not None and alone.key.name == "session_id"


def test_an_account_is_a_key_before_the_device_that_it_used() -> None:
    """Payments: a device served four accounts, and each of its sessions of several rows mixed two of them."""
    rows = {"AccountID": [f"AC{n // 12}" for n in range(60)], "DeviceID": [f"D{n // 5}" for n in range(60)]}
    found = file_columns(pa.table({**rows, "seen": pa.array(SECONDS)}))
    assert found.key is not None and found.key.name == "AccountID"


@pytest.mark.parametrize("name", ["coffee_name", "product name", "itemName"])
def test_the_name_of_a_thing_is_no_key_before_a_card(name: str) -> None:
    """Sales of a machine: visits of a kind of drink were proposed, without a word that this is a guess."""
    found = file_columns(
        pa.table({name: list("abc") * 20, "card": [f"c{n % 20}" for n in range(60)], "at": pa.array(SECONDS)})
    )
    assert found.key is not None and found.key.name == "card" and found.key_is_a_guess


def test_a_time_that_is_the_same_for_all_rows_of_a_ticket_comes_last() -> None:
    """Updates of tickets counted at the moment in which the ticket was opened, whatever column was the key."""
    rows = {"number": [f"INC{n // 5:07}" for n in range(60)], "caller_id": [f"Caller {n % 9}" for n in range(60)]}
    opened, updated = (
        pa.array(SECONDS // 100 * 100 + np.arange(60) // 5),
        pa.array(SECONDS + np.arange(60) * 7 % 60 * 3_600),
    )
    found = file_columns(pa.table({**rows, "opened_at": opened, "updated_at": updated}))
    assert found.time is not None and found.time.name == "updated_at"
    assert found.columns[2].why.endswith("; the same for all rows of number")


@pytest.mark.parametrize(("name", "key"), [("website_session_id", "website_session_id"), ("order_id", "page")])
def test_an_id_that_mostly_comes_once_is_a_key_too(name: str, key: str) -> None:
    """Page views: most visits are of one page; the key proposed was the address, and of the visit nothing was said."""
    rows = {name: [*range(34), *range(26)], "page": ["home", "cart", "pay"] * 20, "seen": pa.array(SECONDS)}
    found = file_columns(pa.table(rows))
    assert found.columns[0].why == "34 values, 1.8 rows each" and found.key is not None and found.key.name == key


@pytest.mark.parametrize("name", ["ContextTokens", "prompt_tokens", "body length", "latency"])
def test_sizes_of_requests_are_no_keys(name: str) -> None:
    """A trace of requests to a language model has no key; its numbers of tokens repeat by chance."""
    found = file_columns(pa.table({name: pa.array([7 * n % 20 * 100 for n in range(60)]), "seen": pa.array(SECONDS)}))
    assert found.key is None


def test_frames_of_a_film_are_no_days_of_excel() -> None:
    """The events of a match: frames from 1 to 141,156, half of them where Excel counts the days of today."""
    frames = np.linspace(1, 141_156, 60).astype(np.int64)
    found = file_columns(pa.table({**DEVICES, "Start Frame": frames, "Start Time [s]": frames / 25}))
    assert "Excel" not in found.columns[1].why
    way = "df['Start Time [s]'] = (df['Start Time [s]'] * 1000).round().astype('Int64'), with unit=\"ms\""
    assert way in found.columns[2].why and "seconds since a start" in found.columns[2].why


def test_fractions_that_do_not_go_on_are_no_seconds_since_a_start() -> None:
    found = file_columns(pa.table({**DEVICES, "response_time": np.sin(np.arange(60.0)) + 2}))
    assert "seconds" not in found.columns[1].why


def test_a_type_of_device_is_no_key_before_the_ship() -> None:
    rows = range(90)
    table = pa.table(
        {
            "at": pa.array(rows, pa.timestamp("s")),
            "Type of position fixing device": [("GPS", "Loran", "Undefined")[row % 3] for row in rows],
            "MMSI": [219_000_000 + row % 20 for row in rows],
        }
    )
    found = file_columns(table)
    assert found.key is not None
    assert found.key.name == "MMSI"


def test_ids_that_pandas_wrote_as_floats_beside_missing_ones_are_no_times() -> None:
    """1000461829.0 could be seconds since 1970."""
    ids = [None if row == 7 else float(1_000_461_829 + row % 9) for row in range(90)]
    found = file_columns(pa.table({"date": pa.array(range(90), pa.timestamp("s")), "sender_id": ids}))
    assert (found.key and found.key.name, found.time and found.time.name) == ("sender_id", "date")


def test_the_time_of_day_is_joined_with_year_month_and_day() -> None:
    frame = pd.DataFrame({"Year": [2002] * 2, "Month": [9, 10], "Day": [1, 12], "Time": ["06:21", "17:05"]})
    line = joined_parts(pa.Table.from_pandas(frame), "Time")
    exec(line, {"df": frame, "pandas": pd})  # noqa: S102  # the line that is shown
    assert frame["at"].tolist() == [pd.Timestamp("2002-09-01 06:21"), pd.Timestamp("2002-10-12 17:05")]


def test_hours_from_one_time_to_another_are_joined_with_the_day() -> None:
    days = [dt.date(2019, 1, 1 + row // 24) for row in range(96)]
    hours = [f"{row % 24}:00-{row % 24}:59" for row in range(96)]
    day, hour, _ = file_columns(pa.table({"date": days, "hour": hours, "count": range(96)})).columns
    frame = pd.DataFrame({"date": days, "hour": hours})
    exec(day.why.partition(": ")[2], {"df": frame, "pandas": pd})  # noqa: S102  # the line that is shown
    assert frame["date"].tolist() == pd.date_range("2019-01-01", periods=96, freq="h").tolist()
    assert (hour.could_be, hour.why) == ("", "times of day")


def test_the_gender_of_a_customer_is_a_guess_of_a_key_at_most() -> None:
    rows = range(90)
    table = pa.table(
        {
            "Customer Gender": [("Male", "Female", "Other")[row % 3] for row in rows],
            "Product Purchased": [f"product {row % 20}" for row in rows],
            "First Response Time": pa.array(rows, pa.timestamp("s")),
        }
    )
    found = file_columns(table)
    assert (found.key and found.key.name, found.key_is_a_guess) == ("Product Purchased", True)


def test_addresses_of_which_the_first_looks_like_a_number_are_keys() -> None:
    """185.222.209.151 could be a number of twelve digits, if it stood alone."""
    hosts = [("185.222.209.151", "195.3.147.49", "5.188.10.7")[row % 3] for row in range(90)]
    found = file_columns(pa.table({"src_ip": hosts, "at": pa.array(range(90), pa.timestamp("s"))}))
    assert (found.key and found.key.name, found.columns[0].why) == ("src_ip", "3 values, 30.0 rows each")


@pytest.mark.parametrize("name", ["sensor", "vehicle", "machine_id", "Room"])
def test_what_a_thing_is_called_is_no_guess(name: str) -> None:
    """`info` said that no name of a column says what a row is about, of a sensor."""
    found = file_columns(pa.table({name: ["a", "b", "c"] * 20, "at": pa.array(SECONDS * 1_000, pa.timestamp("ms"))}))
    assert found.key is not None and found.key.name == name and not found.key_is_a_guess


def test_most_values_of_a_key_may_come_once_or_twice() -> None:
    bikes = [f"B{number % 160}" for number in range(300)]
    at = pa.array((START + np.arange(300)) * 1_000, pa.timestamp("ms"))
    found = file_columns(pa.table({"bike_of": bikes, "at": at}))
    assert found.key is not None and found.key.name == "bike_of" and found.key_is_a_guess
