"""The seam to the watcher of the objects. The implementation is `watching.kopf_watcher`."""

from collections.abc import Collection
from typing import NoReturn, Protocol

from controller_operator.kubernetes.object_intake import ObjectIntake, Stream


class WatchEnded(Exception):
    """The watches have ended, and only a new process can restart them. The message says why; this process exits."""


class Watcher(Protocol):
    """Watches objects and passes on their events."""

    @property
    def trouble(self) -> str | None:
        """The reason why objects cannot be listed or watched at the moment; None if they can."""
        ...

    async def start(self, intake: ObjectIntake, streams: Collection[Stream]) -> None:
        """Begin to watch these streams. From now on the intake gets the events, in the present event loop."""
        ...

    async def keep(self) -> NoReturn:
        """Supervise the watches. Raises `WatchEnded` if they end, or if the served kinds change."""
        ...

    async def stop(self) -> None:
        """End the watches."""
        ...
