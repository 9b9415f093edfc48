"""`millstream dev kafka`: a broker that answers when its address is printed, and that never outlives the command."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator

import psutil
import pytest
from confluent_kafka.admin import AdminClient

from millstream.dev.broker_jars import BROKER_JARS
from millstream.dev.kafka import start_broker
from millstream.errors import SetupError
from millstream.jvm.jars import locate

_ABSENT = any(found.path is None for found in locate(BROKER_JARS))
pytestmark = [pytest.mark.spark, pytest.mark.server, pytest.mark.skipif(_ABSENT, reason="the broker's jars are not in the cache")]


@pytest.fixture
def command() -> Iterator[Callable[..., subprocess.Popen[str]]]:
    started: list[subprocess.Popen[str]] = []

    def go(*arguments: str) -> subprocess.Popen[str]:
        words = [sys.executable, "-m", "millstream.cli", "dev", "kafka", *arguments]
        started.append(subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
        return started[-1]

    yield go
    for process in started:
        process.kill()
        process.communicate()


def test_the_address_is_all_that_stdout_gets_and_ctrl_c_stops_it(command: Callable[..., subprocess.Popen[str]]) -> None:
    process = command("--port", "0")
    assert process.stdout
    address = process.stdout.readline().strip()
    assert AdminClient({"bootstrap.servers": address}).list_topics(timeout=10).brokers
    (jvm,) = psutil.Process(process.pid).children()
    process.send_signal(signal.SIGINT)
    rest, narration = process.communicate(timeout=200)
    assert (rest, process.returncode) == ("", 0)
    assert "Ctrl-C" in narration
    assert not jvm.is_running()


def test_a_command_that_is_killed_takes_its_broker_along(command: Callable[..., subprocess.Popen[str]]) -> None:
    process = command("--port", "0")
    assert process.stdout
    process.stdout.readline()
    (jvm,) = psutil.Process(process.pid).children()
    process.kill()
    process.wait()
    psutil.wait_procs([jvm], timeout=200)
    assert not jvm.is_running()


def test_a_port_that_is_taken_is_told_before_anything_starts() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(SetupError, match="cannot listen on port"):
            start_broker(taken.getsockname()[1])


def test_messages_survive_a_kill() -> None:
    from tests.servers.kafka import Cluster

    with start_broker() as broker:
        cluster = Cluster(broker)
        topic = cluster.topic()
        cluster.send(topic, ["a", "b"])
        broker.kill()
        broker.start()
        assert cluster.read(topic, 2) == [b"a", b"b"]


def test_the_jars_are_known_byte_for_byte() -> None:
    assert len({jar.file for jar in BROKER_JARS}) == len(BROKER_JARS) == 46
    assert all(len(jar.sha256) == 64 and jar.size > 0 for jar in BROKER_JARS)
