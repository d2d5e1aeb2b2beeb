"""A look at a cluster as arrays: brokers with their capacities, partitions with their replicas and loads.

The arrays have one entry for each broker or partition, and refer to each other by index, because a cluster may have a
million partitions. `LoadSnapshot` refuses input of which no plan can be made, and says which entry is wrong and why.
A load or capacity that nobody measured is NaN. The arrays of a snapshot cannot be written to."""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.signedinteger[Any]]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

_LARGEST: Final = 1e27
"""Bytes, or bytes a second. No cluster has as many, and a sum of numbers beyond would overflow."""
_END_OF_YEARS_MS: Final = 253_402_300_800_000
"""Milliseconds from 1970 to the year 10000."""
NO_BROKER: Final = -1
"""Fills the row of a partition that has fewer replicas than another, and stands for no leader."""


class InvalidSnapshot(ValueError):
    """An entry of a snapshot that no plan can be made of. The message names the entry and the reason."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Brokers:
    """The brokers of a cluster, those that are down included if they have replicas. All arrays have one entry each."""

    ids: Ints
    racks: tuple[str | None, ...]
    """None: the broker has no rack. It counts as a rack of its own."""
    capacity_disk_bytes: Floats
    capacity_in_bytes_per_second: Floats
    capacity_out_bytes_per_second: Floats
    """NaN: unknown. If one is unknown, the brokers count as equally large in this resource."""
    takes_replicas: Bools
    """False: no replica may be added (cordoned, shutting down, to be removed, or excluded)."""
    is_live: Bools

    def __post_init__(self) -> None:
        shape = (len(self.racks),)
        _set_array(self, "ids", np.int32, shape)
        for name in ("capacity_disk_bytes", "capacity_in_bytes_per_second", "capacity_out_bytes_per_second"):
            _set_array(self, name, np.float64, shape)
        for name in ("takes_replicas", "is_live"):
            _set_array(self, name, np.bool_, shape)
        _refuse(self.ids < 0, lambda at: f"broker id {self.ids[at]} is negative")
        _refuse_duplicates(self.ids, lambda at: f"broker {self.ids[at]} is listed twice")
        for name in ("capacity_disk_bytes", "capacity_in_bytes_per_second", "capacity_out_bytes_per_second"):
            values = getattr(self, name)
            _refuse(
                (values <= 0) | (values > _LARGEST),
                lambda at, name=name, values=values: (  # type: ignore[misc]
                    f"broker {self.ids[at]}: {name} is {values[at]:g}; give a positive number up to {_LARGEST:g}, or"
                    " nothing"
                ),
            )
        for at, rack in enumerate(self.racks):
            if rack == "":
                raise InvalidSnapshot(f"broker {self.ids[at]}: the rack's name is empty; leave it out if it has none")

    def __len__(self) -> int:
        return len(self.racks)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Partitions:
    """The partitions of a cluster. All arrays have one entry, or one row, for each."""

    topics: tuple[str, ...]
    """The names that `topic` points to."""
    topic: Ints
    number: Ints
    replicas: Ints
    """Indexes into the brokers in preferred order; `NO_BROKER` fills the end of a shorter row."""
    leader: Ints
    size_bytes: Floats
    """The leader's log. NaN: unknown."""
    in_bytes_per_second: Floats
    out_bytes_per_second: Floats
    """The traffic of producers and of consumers, without that of followers. NaN: unknown."""
    min_isr: Ints
    in_sync: Bools
    """True for each entry of `replicas` that is in the ISR."""

    def __post_init__(self) -> None:
        shape = np.shape(self.topic)[:1] or (0,)
        rows = (*shape, np.shape(self.replicas)[1] if np.ndim(self.replicas) == 2 else 0)
        for name in ("topic", "number", "leader", "min_isr"):
            _set_array(self, name, np.int32, shape)
        for name in ("size_bytes", "in_bytes_per_second", "out_bytes_per_second"):
            _set_array(self, name, np.float64, shape)
        _set_array(self, "replicas", np.int32, rows)
        _set_array(self, "in_sync", np.bool_, rows)
        self._check_names()
        self._check_loads()
        self._check_replicas()

    def _check_names(self) -> None:
        if len(set(self.topics)) != len(self.topics):
            twice = next(name for at, name in enumerate(self.topics) if name in self.topics[:at])
            raise InvalidSnapshot(f"topic {twice} is listed twice")
        _refuse(
            (self.topic < 0) | (self.topic >= len(self.topics)),
            lambda at: f"partition at row {at}: topic index {self.topic[at]} is none of {len(self.topics)} topics",
        )
        _refuse(self.number < 0, lambda at: f"topic {self.topics[self.topic[at]]}: partition {self.number[at]}")
        _refuse_duplicates(
            self.topic.astype(np.int64) << 32 | self.number, lambda at: f"partition {self.name(at)} is listed twice"
        )

    def _check_loads(self) -> None:
        for name in ("size_bytes", "in_bytes_per_second", "out_bytes_per_second"):
            values = getattr(self, name)
            _refuse(
                (values < 0) | (values > _LARGEST),
                lambda at, name=name, values=values: (  # type: ignore[misc]
                    f"partition {self.name(at)}: {name} is {values[at]:g}; give a number from 0 to {_LARGEST:g}, or nothing"
                ),
            )
        _refuse(self.min_isr < 1, lambda at: f"partition {self.name(at)}: min_isr is {self.min_isr[at]}, less than 1")

    def _check_replicas(self) -> None:
        if not len(self):
            return
        used = self.replicas >= 0
        _refuse(~used.any(axis=1), lambda at: f"partition {self.name(at)} has no replicas")
        _refuse((self.replicas < NO_BROKER).any(axis=1), lambda at: f"partition {self.name(at)}: a negative index")
        _refuse(
            (used[:, 1:] & ~used[:, :-1]).any(axis=1),
            lambda at: f"partition {self.name(at)}: {NO_BROKER} stands before a replica; it may only end the row",
        )
        _refuse(
            (self.in_sync & ~used).any(axis=1), lambda at: f"partition {self.name(at)}: no replica is in sync there"
        )
        ordered = np.sort(self.replicas, axis=1)
        _refuse(
            ((ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] >= 0)).any(axis=1),
            lambda at: f"partition {self.name(at)} has two replicas on one broker",
        )
        _refuse(
            (self.leader != NO_BROKER) & (self.replicas != self.leader[:, None]).all(axis=1),
            lambda at: f"partition {self.name(at)}: the leader is none of its replicas",
        )

    def __len__(self) -> int:
        return len(self.topic)

    def name(self, at: int) -> str:
        """Return the partition's name as Kafka writes it, such as `orders-3`."""
        return f"{self.topics[self.topic[at]]}-{self.number[at]}"

    def count_replicas(self) -> Ints:
        """Return the replication factor of each partition."""
        return np.asarray((self.replicas >= 0).sum(axis=1), dtype=np.int32)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LoadSnapshot:
    """Everything that a plan is made of, from one look at one cluster."""

    cluster_id: str
    taken_at_ms: int
    brokers: Brokers
    partitions: Partitions

    def __post_init__(self) -> None:
        brokers, partitions = self.brokers, self.partitions
        if not 0 <= self.taken_at_ms < _END_OF_YEARS_MS:
            raise InvalidSnapshot(
                f"taken_at_ms is {self.taken_at_ms}, which is in none of the years 1970 to 9999; give milliseconds since"
                " 1970"
            )
        _refuse(
            (partitions.replicas >= len(brokers)).any(axis=1),
            lambda at: (
                f"partition {partitions.name(at)}: a replica is on broker index {partitions.replicas[at].max()},"
                f" and there are {len(brokers)} brokers; list brokers that are down as well"
            ),
        )

    def compute_hash(self) -> str:
        """Return the SHA-256 of the content. It is the same in whatever order brokers, topics and partitions are."""
        brokers, partitions = self.brokers, self.partitions
        by_id = np.argsort(brokers.ids, kind="stable")
        names = sorted(partitions.topics)
        place = {name: at for at, name in enumerate(names)}
        topic = np.array([place[name] for name in partitions.topics], dtype=np.int32)[partitions.topic]
        order = np.lexsort((partitions.number, topic))
        ids = np.append(brokers.ids, np.int32(NO_BROKER))
        width = int(partitions.count_replicas().max(initial=0))
        digest = hashlib.sha256()
        racks = [brokers.racks[at] for at in by_id]
        digest.update(repr((self.cluster_id, self.taken_at_ms, racks, names, width)).encode())
        for array in (
            brokers.ids[by_id],
            brokers.capacity_disk_bytes[by_id],
            brokers.capacity_in_bytes_per_second[by_id],
            brokers.capacity_out_bytes_per_second[by_id],
            brokers.takes_replicas[by_id],
            brokers.is_live[by_id],
            topic[order],
            partitions.number[order],
            ids[partitions.replicas[order, :width]],
            ids[partitions.leader[order]],
            partitions.size_bytes[order],
            partitions.in_bytes_per_second[order],
            partitions.out_bytes_per_second[order],
            partitions.min_isr[order],
            partitions.in_sync[order, :width],
        ):
            digest.update(_make_canonical(array))
        return digest.hexdigest()


def _make_canonical(array: NDArray[Any]) -> bytes:
    """Return bytes that are the same on each machine: little-endian, with one NaN and one zero."""
    if array.dtype.kind == "f":
        array = np.where(np.isnan(array), np.nan, array + 0.0)
    return np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<")).tobytes()


def _set_array(owner: object, name: str, dtype: type[np.generic], shape: Sequence[int]) -> None:
    """Replace a field of a frozen dataclass by a read-only array of this type, or refuse it."""
    given = np.asarray(getattr(owner, name))
    if given.shape != tuple(shape):
        raise InvalidSnapshot(f"{name} has the shape {given.shape}; it must be {tuple(shape)}, as the other fields")
    if given.size and not np.can_cast(given.dtype, dtype, "same_kind"):
        raise InvalidSnapshot(f"{name} has values of type {given.dtype}; it must be {np.dtype(dtype)}")
    array = given.astype(dtype, copy=False)
    if array.dtype.kind == "i" and not np.array_equal(array, given):
        raise InvalidSnapshot(f"{name} has a value that does not fit into {np.dtype(dtype)}")
    array = array.view()
    array.setflags(write=False)
    object.__setattr__(owner, name, array)


def _refuse(wrong: NDArray[np.bool_] | np.bool_, describe: Callable[[int], str]) -> None:
    """Raise InvalidSnapshot for the first entry that is wrong, with the number of the others."""
    if wrong.any():
        at = np.flatnonzero(np.asarray(wrong))
        more = f" (and {len(at) - 1} more of this kind)" if len(at) > 1 else ""
        raise InvalidSnapshot(describe(int(at[0])) + more)


def _refuse_duplicates(values: NDArray[Any], describe: Callable[[int], str]) -> None:
    order = np.argsort(values, kind="stable")
    twice = np.zeros(len(values), dtype=np.bool_)
    twice[order[1:][values[order[1:]] == values[order[:-1]]]] = True
    _refuse(twice, describe)


def name_brokers(ids: Ints, most: int | None = None) -> str:
    """Name brokers in their order: `broker 3`, `brokers 3, 4`. `most`: the number of ids after which come `and 7 more`."""
    numbers = np.sort(ids).tolist()
    noun = "broker" if len(numbers) == 1 else "brokers"
    more = f" and {len(numbers) - most} more" if most is not None and len(numbers) > most else ""
    return f"{noun} {', '.join(map(str, numbers[:most]))}{more}"
