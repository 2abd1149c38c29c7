"""One Kafka node on this machine, for as long as it is needed; `make kafka` runs it until Ctrl-C."""

from __future__ import annotations

import base64
import contextlib
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

from examples.kafka.jars import Missing, broker_jars
from sessionkit.errors import SparkUnavailable
from sessionkit.spark.environment.java_home import find_java

HOST = "127.0.0.1"
START_TIMEOUT_S = 60
STOP_TIMEOUT_S = 20
FLAGS = (
    *("-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData"),
    "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
)


class BrokerFailed(Exception):
    """The broker did not start; the message ends with its own last words."""


@contextlib.contextmanager
def broker() -> Iterator[str]:
    """Runs a broker, KRaft's controller in it, with its data in a temporary folder; gives its address.

    Whatever ends the block, the broker is stopped and its data is gone.

    Raises:
        Missing: there is no Java or no Maven.
        BrokerFailed: it did not start.
    """
    try:
        java = find_java().home / "bin" / "java"
    except SparkUnavailable as error:
        raise Missing(str(error)) from None
    command = [str(java), *FLAGS, "-cp", os.pathsep.join(map(str, broker_jars()))]
    with tempfile.TemporaryDirectory(prefix="sessionkit-kafka-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        port, controller = _free_ports(2)
        settings = folder / "server.properties"
        settings.write_text(_settings(port, controller, folder / "data"), encoding="utf-8")
        _format([*command, "kafka.tools.StorageTool", "format", f"--cluster-id={_cluster_id()}", "-c", str(settings)])
        with _process([*command, "kafka.Kafka", str(settings)], folder / "log") as process:
            _wait(process, port, folder / "log")
            yield f"{HOST}:{port}"


def _settings(port: int, controller: int, data: Path) -> str:
    lines = {
        "process.roles": "broker,controller",
        "node.id": 1,
        "controller.quorum.voters": f"1@{HOST}:{controller}",
        "listeners": f"PLAINTEXT://{HOST}:{port},CONTROLLER://{HOST}:{controller}",
        "advertised.listeners": f"PLAINTEXT://{HOST}:{port}",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "controller.listener.names": "CONTROLLER",
        "log.dirs": data,
        # by default records from before last week are deleted, by their own timestamps: the flights are of 2013
        "log.retention.ms": -1,
        "auto.create.topics.enable": "false",
        "offsets.topic.num.partitions": 1,
        "offsets.topic.replication.factor": 1,
        "transaction.state.log.replication.factor": 1,
        "transaction.state.log.min.isr": 1,
        "share.coordinator.state.topic.replication.factor": 1,
        "share.coordinator.state.topic.min.isr": 1,
        "group.initial.rebalance.delay.ms": 0,
    }
    return "".join(f"{name}={value}\n" for name, value in lines.items())


def _cluster_id() -> str:
    return base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")


def _free_ports(count: int) -> list[int]:
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.create_server((HOST, 0))) for _ in range(count)]
        return [each.getsockname()[1] for each in sockets]


def _format(command: list[str]) -> None:
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode:
        raise BrokerFailed(f"its folder could not be formatted: {(done.stdout + done.stderr).strip()[-2000:]}")


@contextlib.contextmanager
def _process(command: list[str], log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Runs it, out of reach of the terminal's Ctrl-C: we stop it ourselves, when nobody needs it any more."""
    with log.open("wb") as out:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT, start_new_session=True
        )
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _wait(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    deadline = time.monotonic() + START_TIMEOUT_S
    while time.monotonic() < deadline and process.poll() is None:
        with contextlib.suppress(OSError), socket.create_connection((HOST, port), timeout=1):
            return
        time.sleep(0.05)
    how = "did not answer in time" if process.poll() is None else f"ended with status {process.poll()}"
    raise BrokerFailed(f"the broker {how}: {log.read_text(errors='replace').strip()[-2000:]}")


def main() -> int:
    """Runs a broker until Ctrl-C."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))  # so that it is stopped then, too
    try:
        print("starting a Kafka broker (the first time Maven fetches 53 MB of jars)", flush=True)
        with broker() as address, contextlib.suppress(KeyboardInterrupt):
            print(f"Kafka listens on {address}; its data goes when it stops. Ctrl-C stops it.", flush=True)
            signal.pause()
    except (Missing, BrokerFailed) as error:
        print(f"make kafka: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
    print("stopped")
    return 0


if __name__ == "__main__":
    sys.exit(main())
