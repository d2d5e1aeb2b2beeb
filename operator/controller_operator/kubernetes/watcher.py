"""The seam to whoever watches the objects. The real thing is `watching.kopf_watcher`."""

from collections.abc import Collection
from typing import NoReturn, Protocol

from controller_operator.kubernetes.object_intake import ObjectIntake, Stream


class WatchEnded(Exception):
    """The objects are watched no more, and only a new process will. It says why, and this process ends in good order."""


class Watcher(Protocol):
    """Watches objects and hands over what it sees."""

    @property
    def trouble(self) -> str | None:
        """Why objects cannot be listed or watched at the moment; None if they can."""
        ...

    async def start(self, intake: ObjectIntake, streams: Collection[Stream]) -> None:
        """Begins to watch these streams. From now on the intake is handed what is seen, in the present event loop."""
        ...

    async def keep(self) -> NoReturn:
        """Sees to it that they are watched. Raises `WatchEnded` as soon as they are not, or another kind is served."""
        ...

    async def stop(self) -> None:
        """Ends the watches."""
        ...
