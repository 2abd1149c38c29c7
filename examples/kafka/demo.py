"""`make kafka-demo`: flights through a topic, Spark and back, with the sessions in the terminal as they come."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import sys
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import sessionkit as sk
from examples.kafka.broker import BrokerFailed, broker
from examples.kafka.jars import Missing, connector_jars
from sessionkit.base.moments import show_time
from sessionkit.base.text import plural
from sessionkit.errors import SessionkitError
from sessionkit.report.job import Progress
from sessionkit.spark.session import QUICK_START, start_spark
from sessionkit.spark.types import readable_errors

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming import StreamingQuery

FLIGHTS, SESSIONS, PARTITIONS = "flights", "sessions", 4
OUT = Path("out") / "kafka"
SPEED = 24 * 3600  # a day a second: the month takes half a minute
LINES_AT_ONCE = 3

PLAN = (
    sk.group_by_key("key", timestamp="timestamp", partition="partition", offset="offset")
    .windowed_by(sk.SessionWindows(inactivity_gap="1h", grace="30m"))
    .aggregate(flights=sk.count(), delay=sk.sum("dep_delay"))
)


def play(address: str) -> int:
    """Sends the flights as they departed: key airline@airport, timestamp the scheduled departure; how many."""
    from examples.kafka.topics import producer

    flights = sk.load_sample("flights")
    keys = flights["carrier"] + "@" + flights["origin"]
    arrived_s = flights["departed"].to_numpy().astype("datetime64[ms]").astype(np.int64) / 1_000
    due_s = np.maximum.accumulate(arrived_s - arrived_s[0]) / SPEED
    times_ms = flights["scheduled"].to_numpy().astype("datetime64[ms]").astype(np.int64)
    rows = zip(keys, times_ms.tolist(), flights["dep_delay"].tolist(), due_s.tolist(), strict=True)
    began = time.monotonic()
    with producer(address) as writer:
        for key, ms, delay, due in rows:
            if (early := due - (time.monotonic() - began)) > 0.01:
                writer.poll(0)
                time.sleep(early)
            writer.produce(FLIGHTS, key=key, value=json.dumps({"dep_delay": delay}), timestamp=ms)
    return len(flights)


def start_query(spark: SparkSession, address: str, out: Path) -> StreamingQuery:
    """From the topic to sessions; each micro-batch goes to the other topic and to a folder of Parquet of its own."""
    kafka = {"kafka.bootstrap.servers": address}
    loaded = spark.readStream.format("kafka").options(**kafka, subscribe=FLIGHTS, startingOffsets="earliest").load()
    run = PLAN.stream(sk.from_kafka(loaded, value="dep_delay bigint"))

    def to_topic(changelog: DataFrame, _: int) -> None:
        records = sk.to_kafka(run, partitions=PARTITIONS, changelog=changelog)
        records.write.format("kafka").options(**kafka, topic=SESSIONS).save()

    return run.write(checkpoint=out / "checkpoint", changelog=to_topic, events=out / "events")


class Shown:
    """What came from the topic of sessions, a few lines of it a second."""

    def __init__(self, say: Progress) -> None:
        self.counts: Counter[str] = Counter()
        self._say, self._next = say, 0.0

    def take(self, messages: list[Any]) -> None:
        """Counts them, and shows the largest of the sessions if it is time."""
        from examples.kafka.topics import record_of

        records = [record_of(message) for message in messages]
        sessions = [record for record in records if record.value is not None]
        self.counts.update(results=len(records), withdrawn=len(records) - len(sessions))
        if not sessions or time.monotonic() < self._next:
            return
        self._next = time.monotonic() + 1
        lines = []
        for record in sessions[-LINES_AT_ONCE:]:
            key, end, start = record.key[:-16].decode(), record.key[-16:-8], record.key[-8:]
            found = json.loads(record.value or b"{}")
            first, last = (show_time(int.from_bytes(raw, "big")) for raw in (start, end))
            delay = found["delay"] / found["flights"]
            flights = plural(found["flights"], "flight")
            lines.append(f"{key}  {first} to {last}  {flights:>11}, {delay:.0f} min late on average")
        self._say("\n          ".join(lines))


def demo(out: Path) -> None:
    """Runs it all and says what is where."""
    from examples.kafka.topics import consumer, create_topics

    say = Progress()
    for part in ("events", "checkpoint"):
        shutil.rmtree(out / part, ignore_errors=True)
    say("starting a Kafka broker (the first time Maven fetches 53 MB of jars)")
    with _errors_to(out / "log"), broker() as address, _spark() as spark, ThreadPoolExecutor(1) as pool:
        create_topics(address, FLIGHTS, SESSIONS, partitions=PARTITIONS)
        say(f"playing July 2013 into topic {FLIGHTS!r} of {address}, a day a second; first sessions in some seconds")
        query, shown = start_query(spark, address, out), Shown(say)
        reader = consumer(address, SESSIONS)
        try:
            done: Future[int] = pool.submit(lambda: (play(address), query.processAllAvailable())[0])
            while (messages := reader.consume(10_000, timeout=0.5)) or not done.done():
                shown.take(messages)
            with readable_errors():
                records = done.result()
        finally:
            query.stop()
            reader.close()
        results, withdrawn = shown.counts["results"], shown.counts["withdrawn"]
        came, sent = plural(records, "flight"), plural(results, "result")
        say(f"{came} in, {sent} out, {withdrawn:,} of them null: a session was withdrawn")
        assert spark.read.parquet(str(out / "events")).where("what <> 'dropped'").count() == results
    print(
        f"{out / 'events'}: the same and what was dropped, as Parquet, a folder for each micro-batch\n"
        f"The topics {FLIGHTS!r} and {SESSIONS!r} went with the broker; `make kafka` runs one until Ctrl-C."
    )


@contextlib.contextmanager
def _errors_to(log: Path) -> Iterator[None]:
    """What Spark's workers say on stderr goes into a file: it is much, and not for the reader of a demo."""
    log.parent.mkdir(parents=True, exist_ok=True)
    terminal = os.dup(2)
    with log.open("wb") as file:
        os.dup2(file.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(terminal, 2)
        os.close(terminal)


@contextlib.contextmanager
def _spark() -> Iterator[SparkSession]:
    jars = ",".join(map(str, connector_jars()))
    session = start_spark({**QUICK_START, "spark.jars": jars})
    session.conf.set("spark.sql.shuffle.partitions", str(PARTITIONS))
    try:
        yield session
    finally:
        session.stop()


def main() -> int:
    """Runs the demo; 2 and a line where something is missing."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # the broker is stopped then, too
    try:
        demo(OUT)
    except (Missing, BrokerFailed, SessionkitError) as error:
        print(f"make kafka-demo: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
