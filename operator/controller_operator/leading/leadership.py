"""The check before every write of the operator: this process must still be the leader."""

from typing import Protocol


class NotLeading(Exception):
    """This process has lost its Lease, or cannot know that it still has it. Nothing was written. It exits soon."""


class Leadership(Protocol):
    """The right to write."""

    @property
    def lease_uid(self) -> str:
        """The uid of the Lease that gives the right. Raises `NotLeading` if this process has never led."""
        ...

    def require(self) -> None:
        """Raise `NotLeading` unless this process certainly leads at this moment."""
        ...

    async def confirm(self) -> None:
        """Ask the Lease after a sign against this leadership. Raises `NotLeading` if it is lost, or without an
        answer."""
        ...
