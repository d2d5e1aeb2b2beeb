"""What every write of the operator asks first: whether this process is still the one that works."""

from typing import Protocol


class NotLeading(Exception):
    """This process has lost its Lease, or cannot know that it still has it. Nothing was written. It ends soon."""


class Leadership(Protocol):
    """The right to write."""

    @property
    def lease_uid(self) -> str:
        """Which Lease it comes from. Raises `NotLeading` where it was never had."""
        ...

    def require(self) -> None:
        """Raises `NotLeading` unless this process leads for certain at this moment."""
        ...

    async def confirm(self) -> None:
        """Asks whether it does, where something speaks against it. Raises `NotLeading` where not, or without an answer."""
        ...
