"""The Python interface of the fleet of stub brokers: commands to `Fleet.java`, and its answers as values.

The brokers acknowledge every request at once. Their content is examined only when `look` asks for it, so that it costs
nothing during a measurement.
"""

import json
import subprocess
import threading
from collections.abc import Iterable, Sequence
from concurrent.futures import Future
from types import TracebackType
from typing import Any, Final, Self

from pydantic import BaseModel, ConfigDict

from bench.setup import dataset
from bench.setup.jvm import fleet_classes, java_command
from devcluster.clusters.run_folder import RunFolder
from devcluster.running.ports import release_port, reserve_port
from devcluster.running.processes import spawn

ANSWER_DEADLINE_S: Final = 600.0
_ZNODES_OF_A_MULTI: Final = 500


class FleetError(Exception):
    """The fleet could not perform a command, or ended; the message says which, and names its log."""


class _Answer(BaseModel):
    model_config = ConfigDict(frozen=True)


class Request(_Answer):
    """One request of a controller. `news`: the number of its partitions with a new state for the broker."""

    at_us: int
    """The time when its last byte was read, in microseconds since 1970."""
    broker: int
    api: str
    bytes: int
    controller_id: int
    controller_epoch: int
    partitions: int
    news: int
    is_about_brokers: bool = False
    """True if its live brokers differ from those that the broker knew."""


class Sent(_Answer):
    """The state that one broker was sent since the last `forget`: numbers of partitions, of leaders, and of ISR
    members.
    """

    partitions: int
    leaders: dict[int, int]
    in_sync: dict[int, int]


class BrokerView(_Answer):
    """A broker's state. `known`: from UpdateMetadata. `hosted`: from LeaderAndIsr, without replicas that StopReplica
    deleted.
    """

    known: Sent
    hosted: Sent


class AlterPartitions(_Answer):
    """The leaders' reports. `errors`: answers by their code, -1 if there was none."""

    accepted: int
    errors: dict[int, int]
    pending: int


class Look(_Answer):
    """The requests since the last look, in the order of their arrival at each broker, and the resulting states."""

    requests: tuple[Request, ...]
    brokers: dict[int, BrokerView]
    controller_epoch: int
    alter_partition: AlterPartitions


class Comparison(_Answer):
    """ZooKeeper's content in numbers, and the number of differences from the live brokers' states."""

    topics: int
    partitions: int
    stateless: int
    under_replicated: int
    reassigning: int
    """Replicas that are being added or removed."""
    differences: int
    leaders: dict[int, int]
    in_sync: dict[int, int]
    replicas: dict[int, int]
    examples: tuple[str, ...]


class ShutDown(_Answer):
    """A broker's controlled shutdown, until it led nothing."""

    at_us: int
    answered_us: int
    tries: int


class Latencies(_Answer):
    """One kind of request, sent at a fixed rate. A latency runs from the due time until the request was accepted."""

    latencies_us: tuple[int, ...]
    refusals: dict[str, int]
    """The number of retries, by reason; their time is in the latencies."""


class Probed(_Answer):
    """The measurements of a probe."""

    alter_partition: Latencies
    metadata: Latencies


class Fleet:
    """Six stub brokers on their own loopback ports. Entering the context starts the process, but not yet the brokers."""

    def __init__(self, folder: RunFolder, zookeeper_connect: str, *, heap_mb: int = 2048) -> None:
        self._ports = {broker: reserve_port() for broker in dataset.BROKERS}
        self._log = folder.log("fleet")
        self._scratch = folder.data("fleet") / "znodes.json"
        ports = [f"{broker}={port}" for broker, port in self._ports.items()]
        options = (f"-Xms{heap_mb // 2}m", f"-Xmx{heap_mb}m", "-XX:+UseParallelGC")
        self._command = java_command("Fleet", zookeeper_connect, *ports, options=options, classes=fleet_classes())
        self._process: subprocess.Popen[str] | None = None
        self._lock = threading.Lock()
        self._last_id = 0
        self._answers: dict[int, Future[dict[str, Any]]] = {}

    def __enter__(self) -> Self:
        with self._log.open("ab") as log:
            self._process = spawn(self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True)
        threading.Thread(target=self._read_answers, daemon=True, name="fleet").start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
        for port in self._ports.values():
            release_port(port)

    @property
    def pid(self) -> int:
        """The process id of a started fleet."""
        assert self._process is not None
        return self._process.pid

    def write(self, znodes: Iterable[dataset.Znode], *, at_once: int = _ZNODES_OF_A_MULTI) -> int:
        """Create znodes, `at_once` in one multi; return the time of the last multi, in microseconds."""
        dataset.write_lines(znodes, self._scratch)
        return int(self._do("write", file=str(self._scratch), at_once=at_once)["at_us"])

    def watch_gone(self, path: str) -> "Future[dict[str, Any]]":
        """Return a future that completes when a znode has no children left: `at_us` of the answer."""
        return self._ask("watch_gone", path=path)

    def start_brokers(self) -> None:
        """Make all brokers listen and register."""
        self._do("start")

    def kill(self, broker: int) -> int:
        """End a broker's session, so that its registration goes at once; return the time just before."""
        return int(self._do("kill", broker=broker)["at_us"])

    def return_broker(self, broker: int) -> int:
        """Make a killed broker register again; return the time just before."""
        return int(self._do("come_back", broker=broker)["at_us"])

    def shut_down(self, broker: int) -> ShutDown:
        """Make a broker request a controlled shutdown until it leads nothing. It stays registered: `kill` ends it."""
        return ShutDown.model_validate(self._do("shut_down", broker=broker))

    def reassign(self, partitions: Sequence[tuple[str, int, tuple[int, ...]]]) -> int:
        """Request a reassignment; return the time of the request. Raises `FleetError` if the controller refuses it."""
        answer = self._do("reassign", partitions=partitions)
        if answer["error_code"] or answer["refused"]:
            raise FleetError(f"the controller refused the reassignment: {answer}")
        return int(answer["at_us"])

    def catch_up(self, *, on: bool) -> None:
        """Set whether followers catch up at once, with reports of the leaders. Turn it on before the change that needs
        it.
        """
        self._do("catch_up", on=on)

    def forget(self) -> None:
        """Forget the brokers' states, so that every later request is news."""
        self._do("forget")

    def last_request_us(self) -> int:
        """Return the time of the last request of a controller; 0 before the first."""
        return int(self._do("pulse")["last_us"])

    def look(self) -> Look:
        """Examine the received requests, which costs processor time."""
        return Look.model_validate(self._do("look"))

    def compare(self, *, leaving: int | None = None) -> Comparison:
        """Compare the live brokers' states with ZooKeeper's content, which costs both processor time.

        `leaving`: a broker that is shut down, whose replicas are stopped.
        """
        return Comparison.model_validate(self._do("compare", leaving=leaving))

    def start_probe(self, *, interval_ms: int) -> None:
        """Begin to request an ISR change and metadata from the controller, once in the interval."""
        self._do("probe", leader=dataset.PROBED_REPLICAS[0], interval_ms=interval_ms)

    def stop_probe(self) -> Probed:
        """End the probe, and return its measurements."""
        return Probed.model_validate(self._do("probe_stop"))

    def _do(self, what: str, **details: object) -> dict[str, Any]:
        return self._ask(what, **details).result(ANSWER_DEADLINE_S)

    def _ask(self, what: str, **details: object) -> "Future[dict[str, Any]]":
        answer: Future[dict[str, Any]] = Future()
        assert self._process is not None
        assert self._process.stdin is not None
        with self._lock:
            self._last_id += 1
            self._answers[self._last_id] = answer
            command = json.dumps({"id": self._last_id, "do": what, **details})
            try:
                self._process.stdin.write(command + "\n")
                self._process.stdin.flush()
            except OSError as error:
                raise FleetError(f"the fleet ended; its log is {self._log}") from error
        return answer

    def _read_answers(self) -> None:
        assert self._process is not None
        assert self._process.stdout is not None
        for line in self._process.stdout:
            answer = json.loads(line)
            future = self._answers.pop(answer["id"])
            if "error" in answer:
                future.set_exception(FleetError(f"{answer['error']}; the fleet's log is {self._log}"))
            else:
                future.set_result(answer)
        for future in list(self._answers.values()):
            future.set_exception(FleetError(f"the fleet ended; its log is {self._log}"))
