"""The effect of the largest requests on our controller: the longest stall of its event loop, and its memory.

    python -m bench.requests --partitions 10000

A controller leads the benchmark's cluster. Each API gets its costliest requests within the limits, and 8 MiB of the
smallest items. Meanwhile a probe sends an ApiVersions of an unknown version every few milliseconds, which the event
loop answers at once: the slowest answer is the stall. Other processes of the machine lengthen it, so the controller's
processor time between question and answer is also recorded. Memory is the maximum since the request. The result is
printed, and saved in bench/results/requests.json. It fails if a stall or the memory exceeds its bound.
"""

import json
import re
import socket
import struct
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final

import typer
from rich.console import Console

from bench.__main__ import settings_for
from bench.setup import dataset
from bench.setup.machine import machine
from bench.stage import on_stage, wait_for_controller, wait_until_idle
from controller_core.wire.codecs.entries import encode_unsigned_varint
from devcluster.clusters.kontroller import ControllerProcess
from devcluster.clusters.run_folder import run_folder
from devcluster.running.processes import exit_on_sigterm

RESULTS: Final = Path(__file__).parent / "results" / "requests.json"
MOST_STALL_MS: Final = 100.0
MOST_MEMORY_MB: Final = 512.0
_MB: Final = 1024 * 1024
_PROBE_INTERVAL_S: Final = 0.002
_ANSWER_TIMEOUT_S: Final = 300
_TAGS: Final = b"\0"
_UNKNOWN_VERSION: Final = 99
_CPUCLOCK_SCHED: Final = 2
"""Linux's clock of all processor time of another process (clock_getcpuclockid)."""

console = Console(highlight=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A request: its API, a description, and the frame."""

    api: str
    what: str
    frame: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """The effect of a request."""

    seconds: float
    """The seconds until the answer, or until the connection was closed."""
    is_answered: bool
    stall_ms: float
    processor_ms: float
    """The most processor time of the whole process between a probe's question and answer; not always that of the stall.
    """
    memory_mb: float


# Requests


def _frame(api_key: int, version: int, *parts: bytes) -> bytes:
    content = struct.pack(">hhih", api_key, version, 5, -1) + _TAGS + b"".join(parts) + _TAGS
    return struct.pack(">i", len(content)) + content


def _array(items: list[bytes]) -> bytes:
    return encode_unsigned_varint(len(items) + 1) + b"".join(items)


def _repeat(item: bytes, limit: int = 8 * _MB - 100) -> list[bytes]:
    return [item] * (limit // len(item))


def _string(text: str) -> bytes:
    return encode_unsigned_varint(len(text) + 1) + text.encode()


def _int32(*numbers: int) -> bytes:
    return struct.pack(f">{len(numbers)}i", *numbers)


_TIMEOUT: Final = _int32(1000)


def _names(count: int, length: int = 12) -> list[str]:
    return [f"absent-{number:06}".ljust(length, "x") for number in range(count)]


def _list_existing(partitions: int) -> Iterator[tuple[str, list[int]]]:
    for number in range(partitions // dataset.PARTITIONS_OF_A_TOPIC):
        yield dataset.topic_name(number), list(range(dataset.PARTITIONS_OF_A_TOPIC))


def cases(partitions: int, own_id: int) -> Iterator[Case]:
    """Yield requests of every API of the controller, at its limits and beyond them."""
    yield from _topics()
    yield from _partitions(partitions)
    yield from _configurations(str(own_id))
    yield from _brokers()
    yield from _local()


def _topics() -> Iterator[Case]:
    yield Case(
        api="DeleteTopics",
        what="20,000 unknown topics",
        frame=_frame(20, 5, _array([_string(name) for name in _names(20_000)]), _TIMEOUT),
    )
    yield Case(
        api="DeleteTopics",
        what="20,000 names of 410 bytes",
        frame=_frame(20, 5, _array([_string(name) for name in _names(20_000, 410)]), _TIMEOUT),
    )
    yield Case(api="DeleteTopics", what="8 MiB of empty names", frame=_frame(20, 5, _array(_repeat(b"\1")), _TIMEOUT))
    empty = b"\1" + struct.pack(">ih", 1, 1) + b"\1\1" + _TAGS
    new = [_string(name) + struct.pack(">ih", 1, 3) + b"\1\1" + _TAGS for name in _names(5_000)]
    for version in (5, 7):
        yield Case(
            api="CreateTopics",
            what=f"5,000 topics, validate only, v{version}",
            frame=_frame(19, version, _array(new), _TIMEOUT, b"\1"),
        )
    assignments = [_int32(number) + b"\4" + _int32(1, 2, 3) + _TAGS for number in range(10_000)]
    wide = _string("absent") + struct.pack(">ih", -1, -1) + _array(assignments) + b"\1" + _TAGS
    yield Case(
        api="CreateTopics",
        what="10,000 assignments, validate only",
        frame=_frame(19, 7, _array([wide]), _TIMEOUT, b"\1"),
    )
    many = _string("absent") + struct.pack(">ih", 100_000, 3) + b"\1\1" + _TAGS
    yield Case(
        api="CreateTopics",
        what="100,000 partitions, validate only",
        frame=_frame(19, 7, _array([many]), _TIMEOUT, b"\1"),
    )
    text = _string("retention.ms") + _string("9" * 160) + _TAGS
    config = _string("absent") + struct.pack(">ih", 1, 1) + b"\1" + _array(_repeat(text)) + _TAGS
    yield Case(
        api="CreateTopics",
        what="8 MiB of configurations, validate only",
        frame=_frame(19, 7, _array([config]), _TIMEOUT, b"\1"),
    )
    yield Case(
        api="CreateTopics", what="8 MiB of empty topics", frame=_frame(19, 7, _array(_repeat(empty)), _TIMEOUT, b"\1")
    )
    grown = [_string(name) + _int32(3) + b"\0" + _TAGS for name in _names(5_000)]
    yield Case(api="CreatePartitions", what="5,000 unknown topics", frame=_frame(37, 3, _array(grown), _TIMEOUT, b"\1"))
    widened = _string(dataset.topic_name(0)) + _int32(100_000) + b"\0" + _TAGS
    yield Case(
        api="CreatePartitions",
        what="a topic to 100,000 partitions, validate only",
        frame=_frame(37, 3, _array([widened]), _TIMEOUT, b"\1"),
    )
    smallest = b"\1" + _int32(3) + b"\0" + _TAGS
    yield Case(
        api="CreatePartitions",
        what="8 MiB of empty topics",
        frame=_frame(37, 3, _array(_repeat(smallest)), _TIMEOUT, b"\1"),
    )


def _partitions(partitions: int) -> Iterator[Case]:
    known = [
        _string(topic) + _array([_int32(number) for number in numbers]) + _TAGS
        for topic, numbers in _list_existing(partitions)
    ]
    unknown = _string("absent") + _array([_int32(number) for number in range(140_000)]) + _TAGS
    smallest = _string("absent") + _array(_repeat(_int32(0))) + _TAGS
    for api, key, version, before, after in (
        ("ElectLeaders", 43, 2, b"\0", _TIMEOUT),
        ("ListPartitionReassignments", 46, 0, _TIMEOUT, b""),
    ):
        for what, topics in (
            ("all partitions", known),
            ("140,000 unknown partitions", [unknown]),
            ("8 MiB of partitions", [smallest]),
        ):
            yield Case(api=api, what=what, frame=_frame(key, version, before, _array(topics), after))
    stay = [
        _string(topic)
        + _array(
            [
                _int32(number) + b"\4" + _int32(*dataset.replicas_of(at * len(numbers) + number)) + _TAGS
                for number in numbers
            ]
        )
        + _TAGS
        for at, (topic, numbers) in enumerate(_list_existing(partitions))
    ]
    yield Case(
        api="AlterPartitionReassignments",
        what="all partitions, to where they are",
        frame=_frame(45, 0, _TIMEOUT, _array(stay)),
    )
    for what, targets in (
        ("100,000 unknown partitions", [_int32(n) + b"\4" + _int32(1, 2, 3) + _TAGS for n in range(100_000)]),
        ("100,000 unknown partitions cancelled", [_int32(n) + b"\0" + _TAGS for n in range(100_000)]),
        ("8 MiB of partitions", _repeat(_int32(0) + b"\1" + _TAGS)),
    ):
        absent = _string("absent") + _array(targets) + _TAGS
        yield Case(api="AlterPartitionReassignments", what=what, frame=_frame(45, 0, _TIMEOUT, _array([absent])))


def _configurations(own: str) -> Iterator[Case]:
    def upsertion(name: str, size: int) -> bytes:
        salt = encode_unsigned_varint(size + 1) + b"s" * size
        return _string(name) + struct.pack(">bi", 9, 8192) + salt + salt + _TAGS

    users = [upsertion(name, 750) for name in _names(5_000)]
    yield Case(
        api="AlterUserScramCredentials",
        what="5,000 users of an unknown mechanism",
        frame=_frame(51, 0, b"\1", _array(users)),
    )
    yield Case(
        api="AlterUserScramCredentials",
        what="8 MiB of empty users",
        frame=_frame(51, 0, b"\1", _array(_repeat(upsertion("", 0)))),
    )
    update = _string("f") + struct.pack(">hb", 1, 1) + _TAGS
    yield Case(api="UpdateFeatures", what="64 KiB", frame=_frame(57, 1, _TIMEOUT, _array([update] * 900), b"\0"))
    keys = [_string(name) + b"\0" + _string("v" * 700) + _TAGS for name in _names(9_900)]
    altered = b"\4" + _string(own) + _array(keys) + _TAGS
    yield Case(
        api="IncrementalAlterConfigs",
        what="9,900 entries of its own",
        frame=_frame(44, 1, _array([altered]), b"\1"),
    )
    described = b"\4" + _string(own) + b"\0" + _TAGS
    yield Case(
        api="DescribeConfigs",
        what="9,900 times itself",
        frame=_frame(32, 4, _array([described] * 9_900), b"\0\0"),
    )


def _brokers() -> Iterator[Case]:
    member = struct.pack(">iq", 1, -1) + _TAGS
    asked = [_int32(n, 0) + _array([member] * 3) + b"\0" + _int32(0) + _TAGS for n in range(140_000)]
    for what, epoch in (("140,000 partitions of an old epoch", 1), ("140,000 unknown partitions", 1 << 40)):
        topic = b"\7" * 16 + _array(asked) + _TAGS
        yield Case(
            api="AlterPartition",
            what=what,
            frame=_frame(56, 3, struct.pack(">iq", 3, epoch), _array([topic])),
        )
    for api, key, version in (("ControlledShutdown", 7, 3), ("AllocateProducerIds", 67, 0)):
        yield Case(api=api, what="8 MiB", frame=_frame(key, version, struct.pack(">iq", 99, 5), bytes(8 * _MB - 100)))


def _local() -> Iterator[Case]:
    metadata = [b"\0" * 16 + _string(name) + _TAGS for name in _names(9_900, 80)]
    yield Case(api="Metadata", what="9,900 unknown topics", frame=_frame(3, 12, _array(metadata), b"\0\0"))
    yield Case(api="Metadata", what="all topics", frame=_frame(3, 12, b"\0", b"\0\0"))
    for api, key, version in (("ApiVersions", 18, 3), ("DescribeCluster", 60, 1)):
        yield Case(api=api, what="8 MiB", frame=_frame(key, version, bytes(8 * _MB - 100)))


# The effects of requests


class Probe:
    """Sends requests to a process on its own connection, and keeps the slowest answer and the most processor time."""

    _REQUEST: Final = struct.pack(">ihhih", 10, 18, _UNKNOWN_VERSION, 9, -1)

    def __init__(self, port: int, pid: int) -> None:
        self._processor_clock = ~pid << 3 | _CPUCLOCK_SCHED
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=_ANSWER_TIMEOUT_S)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.slowest_s = 0.0
        self.dearest_s = 0.0

    def __enter__(self) -> "Probe":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._thread.join()
        self._socket.close()

    def _run(self) -> None:
        while not self._is_over.wait(_PROBE_INTERVAL_S):
            began_s, processor_s = time.monotonic(), time.clock_gettime(self._processor_clock)
            self._socket.sendall(self._REQUEST)
            _read_frame(self._socket)
            self.slowest_s = max(self.slowest_s, time.monotonic() - began_s)
            self.dearest_s = max(self.dearest_s, time.clock_gettime(self._processor_clock) - processor_s)


def _read_frame(connection: socket.socket) -> bytes | None:
    """Return a frame's content; None if the other end has closed the connection."""
    try:
        head = connection.recv(4, socket.MSG_WAITALL)
        if len(head) < 4:
            return None
        return connection.recv(struct.unpack(">i", head)[0], socket.MSG_WAITALL)
    except ConnectionError:
        return None


def measure(case: Case, port: int, pid: int) -> Effect:
    """Send a request, wait for its end, and return its effect."""
    Path(f"/proc/{pid}/clear_refs").write_text("5")
    connection = socket.create_connection(("127.0.0.1", port), timeout=_ANSWER_TIMEOUT_S)
    with connection, Probe(port, pid) as probe:
        time.sleep(0.05)
        began_s = time.monotonic()
        try:
            connection.sendall(case.frame)
        except ConnectionError:
            answer = None
        else:
            answer = _read_frame(connection)
        seconds = time.monotonic() - began_s
        time.sleep(0.2)
    status = Path(f"/proc/{pid}/status").read_text()
    peak = re.search(r"VmHWM:\s+(\d+) kB", status)
    assert peak is not None
    return Effect(
        seconds=seconds,
        is_answered=answer is not None,
        stall_ms=probe.slowest_s * 1000,
        processor_ms=probe.dearest_s * 1000,
        memory_mb=int(peak[1]) / 1024,
    )


def _row(case: Case, effect: Effect) -> str:
    became = "answered" if effect.is_answered else "closed"
    size = f"{len(case.frame) / _MB:.1f}"
    return (
        f"| {case.api} | {case.what} | {size} | {became} | {effect.seconds:.2f} | {effect.stall_ms:.0f} "
        f"| {effect.processor_ms:.0f} | {effect.memory_mb:.0f} |"
    )


def main(
    partitions: Annotated[int, typer.Option(help="Number of partitions of the cluster, in topics of 50.")] = 10_000,
    only: Annotated[str | None, typer.Option(help="Measure only APIs whose names contain this.")] = None,
    output: Annotated[Path, typer.Option(help="File for the results.")] = RESULTS,
) -> None:
    """Measure the effects of the largest requests on a controller."""
    found: list[dict[str, Any]] = []
    console.print("| API | request | MiB | is | seconds | longest stall (ms) | processor (ms) | most memory (MB) |")
    console.print("| --- | --- | ---: | --- | ---: | ---: | ---: | ---: |")
    with (
        exit_on_sigterm(),
        run_folder("bench-requests") as folder,
        on_stage(folder, "kontroller", settings_for(partitions)) as stage,
    ):
        stage.controller.spawn()
        wait_for_controller(stage, after_us=0)
        wait_until_idle(stage.controller)
        process = stage.controller.server
        assert isinstance(process, ControllerProcess)
        for case in cases(partitions, process.controller_id):
            if only is None or only.lower() in case.api.lower():
                effect = measure(case, process.port, stage.controller.pid)
                console.print(_row(case, effect), soft_wrap=True)
                found.append({"api": case.api, "what": case.what, "bytes": len(case.frame)} | _make_record(effect))
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(json.dumps({"machine": machine(), "partitions": partitions, "requests": found}, indent=1) + "\n")
    stall, processor, memory = (
        max(record[name] for record in found) for name in ("stall_ms", "processor_ms", "memory_mb")
    )
    console.print(
        f"longest stall {stall:.0f} ms, most processor time in one {processor:.0f} ms, most memory {memory:.0f} MB",
        soft_wrap=True,
    )
    if stall > MOST_STALL_MS or memory > MOST_MEMORY_MB:
        raise typer.Exit(1)


def _make_record(effect: Effect) -> dict[str, Any]:
    return {
        "seconds": round(effect.seconds, 3),
        "is_answered": effect.is_answered,
        "stall_ms": round(effect.stall_ms, 1),
        "processor_ms": round(effect.processor_ms, 1),
        "memory_mb": round(effect.memory_mb, 1),
    }


if __name__ == "__main__":
    typer.run(main)
