"""A server in the soak: its operations run one after another beside everything else, and it must not exit by itself."""

import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Final

from devcluster.clusters.kontroller import ControllerProcess
from devcluster.running.ports import accepts
from devcluster.running.processes import StartError, wait_until
from devcluster.running.servers import Server

_START_DEADLINE_S: Final = 150.0
_SESSION_LOST: Final = "ZooKeeperClientExpiredException"
"""Kafka logs this before it exits because its session expired during its start; it is then started again."""


class Impossible(Exception):
    """The cluster's present state does not allow an operation; the message says why."""


class Wanted(Enum):
    """The state that the operations on a server lead to."""

    UP = auto()
    PAUSED = auto()
    DOWN = auto()


@dataclass(slots=True)
class SoakServer:
    """A running server. Submitted operations wait for earlier ones; the futures have their outcomes."""

    name: str
    server: Server
    wanted: Wanted = Wanted.UP
    deaths: list[str] = field(default_factory=list)
    """The findings about its unexpected exits."""
    _thread: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(max_workers=1))

    def submit(self, act: Callable[["SoakServer"], None]) -> Future[None]:
        return self._thread.submit(act, self)

    def close(self) -> None:
        """Wait until nothing that was submitted is left."""
        self._thread.shutdown(cancel_futures=True)

    def start(self) -> None:
        self._require(Wanted.DOWN)
        self._start()

    def stop(self) -> None:
        self._require(Wanted.UP)
        self.wanted = Wanted.DOWN
        self.server.stop()

    def kill(self) -> None:
        self._require(Wanted.UP)
        self.wanted = Wanted.DOWN
        self.server.process.kill()  # its session lasts until it expires, as after a crash

    def pause(self) -> None:
        self._require(Wanted.UP)
        self.wanted = Wanted.PAUSED
        self.server.pause()

    def resume(self) -> None:
        self._require(Wanted.PAUSED)
        self.wanted = Wanted.UP
        self.server.resume()

    def heal(self) -> None:
        """Make the server run, whatever happened to it."""
        if self.wanted is Wanted.PAUSED:
            self.resume()
        self.record_death()
        self._start()

    def record_death(self) -> None:
        """Record a death if the server should run and does not."""
        if self.wanted is not Wanted.DOWN and not self.server.process.is_running:
            self.deaths.append(f"{self.name} ended by itself, see {self.server.process.log_path}")
            self.wanted = Wanted.DOWN

    def _require(self, wanted: Wanted) -> None:
        self.record_death()
        if self.wanted is not wanted:
            raise Impossible(f"{self.name} is {self.wanted.name.lower()}")

    def _start(self) -> None:
        """Start the server; retry while ZooKeeper is away, which will be back."""
        deadline = time.monotonic() + _START_DEADLINE_S
        while True:
            log_begins_at = self._log_size()
            try:
                self.server.start()
            except (ConnectionError, StartError) as error:
                is_zookeepers = isinstance(error, ConnectionError) or self._has_lost_session(log_begins_at)
                if not is_zookeepers or time.monotonic() > deadline:
                    raise
            else:
                self.wanted = Wanted.UP
                return

    def _log_size(self) -> int:
        log = self.server.process.log_path
        return log.stat().st_size if log.exists() else 0

    def _has_lost_session(self, log_begins_at: int) -> bool:
        """Return True if the log from this offset says so; a `StartError` only has its last lines."""
        with self.server.process.log_path.open(errors="replace") as log:
            log.seek(log_begins_at)
            return any(_SESSION_LOST in line for line in log)


class StandbyController(ControllerProcess):
    """A controller that counts as started when it listens, because another one may have the role."""

    def start(self) -> None:
        self.process.spawn()
        wait_until(
            lambda: accepts(self.port) or not self.process.is_running,
            f"{self.process.name} listens",
        )
