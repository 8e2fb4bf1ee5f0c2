"""A producer or a reader of one client library, run in an environment that has it.

    python clients.py LIBRARY produce BOOTSTRAP TOPIC PREFIX COUNT ACKS [PARTITION]
    python clients.py LIBRARY consume BOOTSTRAP TOPIC [PARTITION]

`produce` prints the value of each record that was acknowledged, a line each, some 100 a second; `consume`
those of a partition, 0 when none is named, from the first to the last that was there when it began. Nothing
of ours is imported.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from importlib import import_module
from typing import Any

PAUSE_S = 0.01
PATIENCE_S = 60.0


def tell(value: bytes) -> None:
    """Print what was acknowledged, or read."""
    print(value.decode(), flush=True)


def kafka_python_produce(bootstrap: str, topic: str, partition: int, values: list[bytes], acks: str) -> None:
    """By kafka-python."""
    kafka = import_module("kafka")
    producer = kafka.KafkaProducer(
        bootstrap_servers=bootstrap.split(","),
        acks=acks if acks == "all" else int(acks),
        enable_idempotence=False,
        retries=100,
        retry_backoff_ms=200,
        # Else a batch that is sent again may come behind later ones.
        max_in_flight_requests_per_connection=1,
    )
    for value in values:
        producer.send(topic, value, partition=partition).add_callback(lambda _, sent=value: tell(sent))
        time.sleep(PAUSE_S)
    producer.flush(PATIENCE_S)
    producer.close()


def kafka_python_consume(bootstrap: str, topic: str, partition: int) -> None:
    """By kafka-python."""
    kafka = import_module("kafka")
    consumer = kafka.KafkaConsumer(bootstrap_servers=bootstrap.split(","), enable_auto_commit=False)
    place = kafka.TopicPartition(topic, partition)
    consumer.assign([place])
    end = consumer.end_offsets([place])[place]
    consumer.seek(place, 0)
    until_s = time.monotonic() + PATIENCE_S
    while consumer.position(place) < end and time.monotonic() < until_s:
        for records in consumer.poll(timeout_ms=500).values():
            for record in records:
                tell(record.value)
    consumer.close()


def librdkafka_produce(bootstrap: str, topic: str, partition: int, values: list[bytes], acks: str) -> None:
    """By confluent-kafka, which is librdkafka."""
    library = import_module("confluent_kafka")
    producer = library.Producer(
        {"bootstrap.servers": bootstrap, "acks": acks, "enable.idempotence": False, "retries": 100}
    )

    def told(error: Any, message: Any) -> None:
        if error is None:
            tell(message.value())

    for value in values:
        producer.produce(topic, value, partition=partition, on_delivery=told)
        producer.poll(PAUSE_S)
    producer.flush(PATIENCE_S)


def librdkafka_consume(bootstrap: str, topic: str, partition: int) -> None:
    """By confluent-kafka."""
    library = import_module("confluent_kafka")
    consumer = library.Consumer(
        {"bootstrap.servers": bootstrap, "group.id": "nobody", "enable.auto.commit": False}
    )
    place = library.TopicPartition(topic, partition, 0)
    _, end = consumer.get_watermark_offsets(place, timeout=PATIENCE_S)
    consumer.assign([place])
    until_s, at = time.monotonic() + PATIENCE_S, 0
    while at < end and time.monotonic() < until_s:
        message = consumer.poll(0.5)
        if message is not None and message.error() is None:
            tell(message.value())
            at = message.offset() + 1
    consumer.close()


def aiokafka_produce(bootstrap: str, topic: str, partition: int, values: list[bytes], acks: str) -> None:
    """By aiokafka, which needs a loop of its own kind."""
    library, asyncio = import_module("aiokafka"), import_module("asyncio")

    async def produce() -> None:
        producer = library.AIOKafkaProducer(
            bootstrap_servers=bootstrap, acks=acks if acks == "all" else int(acks), retry_backoff_ms=200
        )
        await producer.start()
        sent = []

        def done(one: Any, value: bytes) -> None:
            # Whatever else it says, it was not acknowledged.
            if not one.cancelled() and one.exception() is None:
                tell(value)

        for value in values:
            one = await producer.send(topic, value, partition=partition)
            one.add_done_callback(lambda one, value=value: done(one, value))
            sent.append(one)
            await asyncio.sleep(PAUSE_S)
        await asyncio.gather(*sent, return_exceptions=True)
        await producer.stop()

    asyncio.run(produce())


def aiokafka_consume(bootstrap: str, topic: str, partition: int) -> None:
    """By aiokafka, which needs a loop of its own kind."""
    library, asyncio = import_module("aiokafka"), import_module("asyncio")

    async def consume() -> None:
        consumer = library.AIOKafkaConsumer(
            bootstrap_servers=bootstrap, enable_auto_commit=False, group_id=None
        )
        await consumer.start()
        place = library.TopicPartition(topic, partition)
        consumer.assign([place])
        end = (await consumer.end_offsets([place]))[place]
        consumer.seek(place, 0)
        at = 0
        while at < end:
            record = await asyncio.wait_for(consumer.getone(), PATIENCE_S)
            tell(record.value)
            at = record.offset + 1
        await consumer.stop()

    asyncio.run(consume())


Produce = Callable[[str, str, int, list[bytes], str], None]
Consume = Callable[[str, str, int], None]
BY_NAME: dict[str, tuple[Produce, Consume]] = {
    "aiokafka": (aiokafka_produce, aiokafka_consume),
    "kafka-python": (kafka_python_produce, kafka_python_consume),
    "librdkafka": (librdkafka_produce, librdkafka_consume),
}


def main() -> None:
    """See the module."""
    library, act, bootstrap, topic, *more = sys.argv[1:]
    produce, consume = BY_NAME[library]
    if act == "consume":
        consume(bootstrap, topic, int(more[0]) if more else 0)
        return
    prefix, count, acks, *named = more
    partition = int(named[0]) if named else 0
    produce(
        bootstrap, topic, partition, [f"{prefix}-{number}".encode() for number in range(int(count))], acks
    )


if __name__ == "__main__":
    main()
