"""The fleet of stub brokers as Python sees it: commands to `Fleet.java`, and what it answers, as values.

The brokers acknowledge every request at once. What the requests say is examined only when `look` asks for it, so that it
costs nothing while a controller is measured.
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
    """The fleet could not do what was asked, or ended; the message says which, and where its log is."""


class _Answer(BaseModel):
    model_config = ConfigDict(frozen=True)


class Request(_Answer):
    """One request of a controller. `news`: how many of its partitions were new to the broker."""

    at_us: int
    """When its last byte was read, in microseconds since 1970."""
    broker: int
    api: str
    bytes: int
    controller_id: int
    controller_epoch: int
    partitions: int
    news: int
    is_about_brokers: bool = False
    """Whether the live brokers that it lists are not those that the broker knew."""


class Sent(_Answer):
    """What one broker was sent since the last `forget`, counted: partitions, their leaders, members of their ISRs."""

    partitions: int
    leaders: dict[int, int]
    in_sync: dict[int, int]


class BrokerView(_Answer):
    """`known`: from UpdateMetadata. `hosted`: from LeaderAndIsr, without what StopReplica deleted."""

    known: Sent
    hosted: Sent


class AlterPartitions(_Answer):
    """What the leaders reported. `errors`: answers by their code, -1 where there was none."""

    accepted: int
    errors: dict[int, int]
    pending: int


class Look(_Answer):
    """The requests since the last look, in the order of their arrival at each broker, and what they came to."""

    requests: tuple[Request, ...]
    brokers: dict[int, BrokerView]
    controller_epoch: int
    alter_partition: AlterPartitions


class Comparison(_Answer):
    """ZooKeeper's content, counted, and how many times a live broker was sent something else."""

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
    """A broker that asked for a controlled shutdown, until it led nothing."""

    at_us: int
    answered_us: int
    tries: int


class Latencies(_Answer):
    """One kind of request, sent at a fixed rate. A latency runs from when the request was due until it was accepted."""

    latencies_us: tuple[int, ...]
    refusals: dict[str, int]
    """How many times it was sent again, by reason; all of it is in the latencies."""


class Probed(_Answer):
    """What a probe measured."""

    alter_partition: Latencies
    metadata: Latencies


class Fleet:
    """Six stub brokers on loopback ports of their own. Entering the context starts the process, not yet the brokers."""

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
        """Its process id, of a fleet that was started."""
        assert self._process is not None
        return self._process.pid

    def write(self, znodes: Iterable[dataset.Znode], *, at_once: int = _ZNODES_OF_A_MULTI) -> int:
        """Creates znodes, so many in one multi; when the last multi was sent, in microseconds."""
        dataset.write_lines(znodes, self._scratch)
        return int(self._do("write", file=str(self._scratch), at_once=at_once)["at_us"])

    def watch_gone(self, path: str) -> "Future[dict[str, Any]]":
        """When a znode has no children any more: `at_us` of the answer."""
        return self._ask("watch_gone", path=path)

    def start_brokers(self) -> None:
        """All brokers listen, and register."""
        self._do("start")

    def kill(self, broker: int) -> int:
        """Ends a broker's session, so that its registration goes at once; the time just before."""
        return int(self._do("kill", broker=broker)["at_us"])

    def come_back(self, broker: int) -> int:
        """Has a killed broker register again; the time just before."""
        return int(self._do("come_back", broker=broker)["at_us"])

    def shut_down(self, broker: int) -> ShutDown:
        """Has a broker ask for a controlled shutdown until it leads nothing. It stays registered: `kill` ends it."""
        return ShutDown.model_validate(self._do("shut_down", broker=broker))

    def reassign(self, partitions: Sequence[tuple[str, int, tuple[int, ...]]]) -> int:
        """Asks the controller for a reassignment; when the request was sent. Raises `FleetError` where it refuses one."""
        answer = self._do("reassign", partitions=partitions)
        if answer["error_code"] or answer["refused"]:
            raise FleetError(f"the controller refused the reassignment: {answer}")
        return int(answer["at_us"])

    def catch_up(self, *, on: bool) -> None:
        """Whether followers catch up at once, and leaders report it. Turn it on before what it is meant for."""
        self._do("catch_up", on=on)

    def forget(self) -> None:
        """From now on everything that brokers are sent is news."""
        self._do("forget")

    def last_request_us(self) -> int:
        """When the last request of a controller came in; 0 before the first."""
        return int(self._do("pulse")["last_us"])

    def look(self) -> Look:
        """Examines what came in, which costs processor time."""
        return Look.model_validate(self._do("look"))

    def compare(self, *, leaving: int | None = None) -> Comparison:
        """Holds what the live brokers were sent against ZooKeeper's content, which costs both processor time.

        `leaving`: a broker that is shut down, whose replicas are stopped."""
        return Comparison.model_validate(self._do("compare", leaving=leaving))

    def start_probe(self, *, interval_ms: int) -> None:
        """Begins to ask the controller for an ISR change, and for metadata, once in the interval."""
        self._do("probe", leader=dataset.PROBED_REPLICAS[0], interval_ms=interval_ms)

    def stop_probe(self) -> Probed:
        """Ends the probe."""
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
