"""A field of a message that stays encoded until it is read.

Full requests and their answers have an item for every partition, and are hardly ever read.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Generic, TypeVar, overload

T = TypeVar("T")


class Undecoded(ABC, Generic[T]):
    """Stands for a tuple of messages, and decodes it on first access."""

    __slots__ = ("_decoded",)

    def __init__(self) -> None:
        self._decoded: tuple[T, ...] | None = None

    @abstractmethod
    def decode(self) -> tuple[T, ...]:
        """Return the tuple. Raises `Undecodable`."""

    def __len__(self) -> int:
        return len(self._tuple())

    def __iter__(self) -> Iterator[T]:
        return iter(self._tuple())

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[T, ...]: ...
    def __getitem__(self, index: int | slice) -> T | tuple[T, ...]:
        return self._tuple()[index]

    def __eq__(self, other: object) -> bool:
        return self._tuple() == (other._tuple() if isinstance(other, Undecoded) else other)

    def __hash__(self) -> int:
        return hash(self._tuple())

    def _tuple(self) -> tuple[T, ...]:
        if self._decoded is None:
            self._decoded = self.decode()
        return self._decoded
