"""A mapping that everybody can read, and that only its own class changes."""

from collections.abc import Iterator, Mapping
from typing import Any, TypeVar, overload

K = TypeVar("K")
V = TypeVar("V")
D = TypeVar("D")


class Entries(Mapping[K, V]):
    """A `Mapping` to others. Subclasses change its entries by their own methods."""

    def __init__(self) -> None:
        self._entries: dict[K, V] = {}

    @overload
    def get(self, key: K, /) -> V | None: ...
    @overload
    def get(self, key: K, /, default: V | D) -> V | D: ...
    def get(self, key: K, /, default: Any = None) -> Any:
        return self._entries.get(key, default)

    def __getitem__(self, key: K) -> V:
        return self._entries[key]

    def __contains__(self, key: object) -> bool:
        return key in self._entries

    def __iter__(self) -> Iterator[K]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)
