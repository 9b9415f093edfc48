"""Sends messages that hold the time of sending, and prints how old each is when it arrives: `latency_load ADDRESS IN OUT RATE COUNT WARM`.

It is a process of its own, so that it does not wait for the driver's.
"""

from __future__ import annotations

import json
import sys
import threading
import time

from confluent_kafka import Consumer, Producer

_SECONDS = 90


def main(address: str, source: str, target: str, rate: float, count: int, warm: int) -> None:
    group = {"group.id": f"bench-{target}", "auto.offset.reset": "earliest", "isolation.level": "read_committed"}
    consumer = Consumer({"bootstrap.servers": address, "fetch.wait.max.ms": 5, **group})
    consumer.subscribe([target])
    producer = Producer({"bootstrap.servers": address, "linger.ms": 0, "partitioner": "murmur2_random"})
    _send(producer, source, 0)
    _age(consumer)  # the pipeline has started
    sender = threading.Thread(target=_send_all, args=(producer, source, rate, warm + count), daemon=True)
    sender.start()
    ages = [_age(consumer) for _ in range(warm + count)]
    consumer.close()
    print(json.dumps(ages[warm:]))


def _send_all(producer: Producer, topic: str, rate: float, count: int) -> None:
    began = time.monotonic()
    for number in range(count):
        time.sleep(max(0.0, began + number / rate - time.monotonic()))
        _send(producer, topic, number + 1)


def _send(producer: Producer, topic: str, number: int) -> None:
    producer.produce(topic, json.dumps({"id": number, "sent": time.time()}), str(number))
    producer.poll(0)


def _age(consumer: Consumer) -> float:
    deadline = time.monotonic() + _SECONDS
    while time.monotonic() < deadline:
        message = consumer.poll(1)
        if message is not None and message.error() is None:
            return time.time() - float(json.loads(message.value() or b"")["sent"])
    raise RuntimeError("no more messages arrive")


if __name__ == "__main__":
    name, source, target, rate, count, warm = sys.argv[1:]
    main(name, source, target, float(rate), int(count), int(warm))
