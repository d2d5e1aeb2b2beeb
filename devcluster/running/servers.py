"""What all servers of a development cluster have in common: how they start, pause, end, and give their ports back."""

import signal
from abc import ABC, abstractmethod
from collections.abc import Collection
from types import TracebackType
from typing import ClassVar, Self

from devcluster.running.ports import release_port, reserve_port
from devcluster.running.processes import ManagedProcess, wait_until
from devcluster.running.tokens import Hold, machine_tokens


class Startable(ABC):
    """Something that runs for as long as its context: entering starts it, leaving closes it, and so does a failed start."""

    @abstractmethod
    def start(self) -> None:
        """Starts it and waits until it is ready."""

    @abstractmethod
    def close(self) -> None:
        """Ends it for good. Harmless when it does not run."""

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
    """One process on loopback ports that stay its own over a restart; subclasses set `process`."""

    process: ManagedProcess
    tokens: ClassVar[int] = 0
    """How many tokens it holds from its first start until `close`, also while it is stopped for a restart."""

    def __init__(self) -> None:
        self._ports: list[int] = []
        self._hold: Hold | None = None

    @property
    def missing_tokens(self) -> int:
        return self.tokens if self._hold is None else 0

    def take_tokens(self) -> None:
        """Takes its tokens, which may wait for other servers; does nothing if it holds them."""
        if self.missing_tokens:
            self._hold = machine_tokens().take(self.tokens)

    def start(self) -> None:
        """Starts and waits until ready. Raises `StartError`."""
        self.process.start()

    def stop(self) -> None:
        """SIGTERM, and SIGKILL where that is not enough."""
        self.process.stop()

    def kill(self) -> None:
        """SIGKILL."""
        self.process.kill()

    def pause(self) -> None:
        """SIGSTOP: the process keeps its connections and answers nothing. Returns when it stands still."""
        self.process.send_signal(signal.SIGSTOP)
        wait_until(lambda: self.process.is_stopped, f"{self.process.name} stands still")

    def resume(self) -> None:
        """SIGCONT, after a pause."""
        self.process.send_signal(signal.SIGCONT)

    def close(self) -> None:
        """Kills the process and gives its ports and tokens back."""
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
    """Takes the tokens of servers that start together, so that they wait once, until all of them fit."""
    if missing := sum(server.missing_tokens for server in servers):
        with machine_tokens().holding(missing):
            for server in servers:
                server.take_tokens()
