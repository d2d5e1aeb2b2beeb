"""What all servers of a development cluster have in common: how they start, pause, end, and give their ports back."""

import signal
from abc import ABC, abstractmethod
from types import TracebackType
from typing import Self

from devcluster.running.ports import release_port, reserve_port
from devcluster.running.processes import ManagedProcess


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

    def __init__(self) -> None:
        self._ports: list[int] = []

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
        """SIGSTOP: the process keeps its connections and answers nothing."""
        self.process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        """SIGCONT, after a pause."""
        self.process.send_signal(signal.SIGCONT)

    def close(self) -> None:
        """Kills the process and gives its ports back."""
        self.kill()
        for port in self._ports:
            release_port(port)

    def _reserve_port(self) -> int:
        port = reserve_port()
        self._ports.append(port)
        return port
