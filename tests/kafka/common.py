"""What the tests on a broker share: the broker, Spark that reads from it, how far an application has committed."""

import contextlib
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import ConsumerGroupTopicPartitions, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient

from examples.kafka.broker import broker
from examples.kafka.jars import Missing, connector_jars

NO_COORDINATOR_YET = (
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.NOT_COORDINATOR,
)


@contextlib.contextmanager
def broker_for(spark: Any = None) -> Iterator[str]:
    """The address of a broker, for a session of Spark if one is given; where one is missing the test is skipped."""
    with contextlib.ExitStack() as stack:
        try:
            jars = [] if spark is None else connector_jars()
            address = stack.enter_context(broker())
        except Missing as missing:
            pytest.skip(str(missing))
        for jar in jars:
            spark.sql(f"ADD JAR '{jar}'")
        yield address


def read_up_to(admin: AdminClient, application: str, topic: str, partitions: int = 1) -> int:
    """How far the application has committed, and so written all that came of it."""
    places = [TopicPartition(topic, number) for number in range(partitions)]
    asked = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(application, places)])
    try:
        found = asked[application].result(120)
    except KafkaException as error:
        if error.args[0].code() not in NO_COORDINATOR_YET:
            raise
        return 0
    return sum(max(0, each.offset) for each in found.topic_partitions)
