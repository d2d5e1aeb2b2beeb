"""Limits of the questions that are in memory, and of those that are judged, for each address and in all.

A body counts with the bytes that have arrived, so a client that sends slowly holds little. A question is counted as one
to judge only when its body is complete. The first bytes of every body are free: nobody can keep others from asking
about an object of ordinary size.
"""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

FREE_BYTES: Final = 64 << 10
"""More than two versions of nearly every object."""
MOST_BYTES: Final = 64 << 20
MOST_BYTES_OF_AN_ADDRESS: Final = 32 << 20
MOST_JUDGED: Final = 32
MOST_JUDGED_OF_AN_ADDRESS: Final = 16


class NoRoom(Exception):
    """There is no room for the question now. The text says why."""


@dataclass(slots=True, kw_only=True)
class _Count:
    """A count of each address and in all, with its limits."""

    most: int
    most_of_an_address: int
    what: str
    in_all: int = 0
    of_address: Counter[str] = field(default_factory=Counter)

    def take(self, address: str, amount: int) -> None:
        """Count an amount. Raises `NoRoom` if it exceeds a limit."""
        if self.in_all + amount > self.most:
            raise NoRoom(f"too many {self.what} at once")
        if self.of_address[address] + amount > self.most_of_an_address:
            raise NoRoom(f"too many {self.what} at once from one address")
        self.in_all += amount
        self.of_address[address] += amount

    def give_back(self, address: str, amount: int) -> None:
        self.in_all -= amount
        self.of_address[address] -= amount
        if not self.of_address[address]:
            del self.of_address[address]


class QuestionRoom:
    """The room for all questions."""

    def __init__(self) -> None:
        self._bytes = _Count(most=MOST_BYTES, most_of_an_address=MOST_BYTES_OF_AN_ADDRESS, what="bytes of questions")
        self._judged = _Count(most=MOST_JUDGED, most_of_an_address=MOST_JUDGED_OF_AN_ADDRESS, what="questions")

    @contextmanager
    def enter(self, address: str) -> Iterator["Place"]:
        """Give a question of an address its place, until the end of the block."""
        place = Place(self._bytes, self._judged, address)
        try:
            yield place
        finally:
            place.leave()


class Place:
    """The place of one question."""

    def __init__(self, in_bytes: _Count, judged: _Count, address: str) -> None:
        self._bytes, self._judged, self._address = in_bytes, judged, address
        self._received = self._counted = 0
        self._is_judged = False

    def receive(self, amount: int) -> None:
        """Count bytes of the body that have arrived. Raises `NoRoom`."""
        self._received += amount
        due = max(0, self._received - FREE_BYTES) - self._counted
        if due:
            self._bytes.take(self._address, due)
            self._counted += due

    def begin(self) -> None:
        """Count the complete question as one to judge. Raises `NoRoom`."""
        self._judged.take(self._address, 1)
        self._is_judged = True

    def leave(self) -> None:
        """Make room for other questions."""
        self._bytes.give_back(self._address, self._counted)
        self._judged.give_back(self._address, int(self._is_judged))
