"""Base classes of a development cluster's servers: start, pause, stop, and return of their ports and tokens."""

import signal
from abc import ABC, abstractmethod
from collections.abc import Collection
from types import TracebackType
from typing import ClassVar, Self

from devcluster.running.ports import release_port, reserve_port
from devcluster.running.processes import ManagedProcess, wait_until
from devcluster.running.tokens import Hold, machine_tokens


class Startable(ABC):
    """Something that runs during its context: entering starts it; leaving, or a failed start, closes it."""

    @abstractmethod
    def start(self) -> None:
        """Start it and wait until it is ready."""

    @abstractmethod
    def close(self) -> None:
        """End it for good. Harmless if it does not run."""

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class Server(Startable):
    """A process on loopback ports that stay its own over a restart; subclasses set `process`."""

    process: ManagedProcess
    tokens: ClassVar[int] = 0
    """The number of tokens it holds from its first start until `close`, even while it is stopped for a restart."""

    def __init__(self) -> None:
        self._ports: list[int] = []
        self._hold: Hold | None = None

    @property
    def missing_tokens(self) -> int:
        return self.tokens if self._hold is None else 0

    def take_tokens(self) -> None:
        """Take its tokens, which may wait for other servers; does nothing if it holds them."""
        if self.missing_tokens:
            self._hold = machine_tokens().take(self.tokens)

    def start(self) -> None:
        """Start and wait until ready. Raises `StartError`."""
        self.process.start()

    def stop(self) -> None:
        """Send SIGTERM, and SIGKILL if that is not enough."""
        self.process.stop()

    def kill(self) -> None:
        """Send SIGKILL."""
        self.process.kill()

    def pause(self) -> None:
        """Send SIGSTOP: the process keeps its connections and answers nothing. Returns when the process has stopped."""
        self.process.send_signal(signal.SIGSTOP)
        wait_until(lambda: self.process.is_stopped, f"{self.process.name} stands still")

    def resume(self) -> None:
        """Send SIGCONT, after a pause."""
        self.process.send_signal(signal.SIGCONT)

    def close(self) -> None:
        """Kill the process and give its ports and tokens back."""
        self.kill()
        if self._hold is not None:
            self._hold.give_back()
            self._hold = None
        for port in self._ports:
            release_port(port)

    def _reserve_port(self) -> int:
        port = reserve_port()
        self._ports.append(port)
        return port


def take_tokens_of(servers: Collection[Server]) -> None:
    """Take the tokens of servers that start together, so that they wait once, until all of them fit."""
    if missing := sum(server.missing_tokens for server in servers):
        with machine_tokens().hold(missing):
            for server in servers:
                server.take_tokens()
