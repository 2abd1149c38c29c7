"""Topics from Python: made, filled as a Java producer would fill them, and read to their end."""

from __future__ import annotations

from typing import Any, NamedTuple

from examples.kafka.jars import Missing
from sessionkit.base.text import plural
from sessionkit.errors import install

try:
    from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaException, Producer, TopicPartition
    from confluent_kafka.admin import AdminClient, NewTopic
except ImportError:
    raise Missing(f"the Python client is missing: {install('spark,kafka')}") from None

TIMEOUT_S = 30


class Record(NamedTuple):
    """A record of a topic."""

    partition: int
    offset: int
    key: bytes
    value: bytes | None
    timestamp_ms: int


def create_topics(address: str, *names: str, partitions: int) -> None:
    """Makes the topics."""
    with AdminClient({"bootstrap.servers": address}) as admin:
        for future in admin.create_topics([NewTopic(name, partitions) for name in names]).values():
            future.result(TIMEOUT_S)


def producer(address: str) -> Producer:
    """A producer that puts a key where Java's would, and keeps the order."""
    return Producer(
        {"bootstrap.servers": address, "partitioner": "murmur2_random", "enable.idempotence": True, "log_level": 3}
    )


def consumer(address: str, topic: str) -> Consumer:
    """A consumer of all partitions of a topic, from their beginning."""
    settings = {"bootstrap.servers": address, "group.id": f"reads-{topic}", "enable.auto.commit": False}
    reader = Consumer({**settings, "enable.partition.eof": False})
    numbers = reader.list_topics(topic, TIMEOUT_S).topics[topic].partitions
    reader.assign([TopicPartition(topic, number, OFFSET_BEGINNING) for number in numbers])
    return reader


def record_of(message: Any) -> Record:
    """What was polled.

    Raises:
        KafkaException: it is an error.
    """
    if message.error():
        raise KafkaException(message.error())
    return Record(message.partition(), message.offset(), message.key(), message.value(), message.timestamp()[1])


def read_all(address: str, topic: str) -> list[Record]:
    """All records that the topic holds now, partition after partition."""
    reader = consumer(address, topic)
    try:
        waiting = sum(reader.get_watermark_offsets(each, TIMEOUT_S)[1] for each in reader.assignment())
        messages = []
        while len(messages) < waiting:
            got = reader.consume(min(10_000, waiting - len(messages)), timeout=TIMEOUT_S)
            if not got:
                raise TimeoutError(f"{len(messages)} of {plural(waiting, 'record')} of {topic} came")
            messages += got
    finally:
        reader.close()
    return sorted(map(record_of, messages), key=lambda record: record[:2])
