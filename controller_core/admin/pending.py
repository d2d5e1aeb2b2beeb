"""The unfinished items of a waiting request. They are checked after every event, so a check must be cheap.

One unfinished item is enough to keep waiting. So only one item is checked until it is done.
"""

from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

from controller_core.controller.term.term import Term

Item = TypeVar("Item")


class Pending(Generic[Item]):
    """Items that later events will complete."""

    def __init__(self, items: Iterable[Item], is_done: Callable[[Term, Item], bool]) -> None:
        self._items = list(items)
        self._is_done = is_done

    def is_over(self, term: Term) -> bool:
        """Return True if every item was seen done."""
        while self._items and self._is_done(term, self._items[-1]):
            self._items.pop()
        return not self._items

    def list_unfinished(self, term: Term) -> list[Item]:
        """Return the items that are not done now."""
        return [item for item in self._items if not self._is_done(term, item)]
