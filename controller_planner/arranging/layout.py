"""The arrangement that a plan is working on: replicas, the loads that they come to, racks.

A slot is a place in the table of replicas: `partition * width + position`. Position 0 is the preferred leader."""

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from controller_planner.loads import NO_BROKER, Bools, Floats, Ints
from controller_planner.resources import OF_A_REPLICA, RESOURCES, Resources, compute_loads

Slots = NDArray[np.int64]
LARGEST_TOPIC_TABLE: Final = 16_000_000
"""Entries: topics times brokers. Beyond it, replicas are not spread by topic while they are placed."""
LARGEST_TABLE_OF_A_SPREAD: Final = 80_000_000
"""The same for the mode spread, for which the table is worth 300 MB of memory."""


class Layout:
    """Replicas on brokers. Arrays of brokers have one row more, the last, which index -1 reaches: it is no broker."""

    def __init__(
        self,
        replicas: Ints,
        resources: Resources,
        racks: Sequence[str | None],
        takes: Bools,
        topic: Ints,
        topics: int,
        largest_topic_table: int,
    ) -> None:
        self.replicas = np.array(replicas)
        self.resources = resources
        self.takes = np.append(takes, np.False_)
        self.brokers = len(takes)
        names = [rack if rack is not None else (at,) for at, rack in enumerate(racks)]
        index = {name: at for at, name in enumerate(dict.fromkeys(names))}
        self.rack: Ints = np.array([*(index[name] for name in names), NO_BROKER], dtype=np.int32)
        self.racks = len(index)
        self.topic = topic
        self.topic_sizes = np.bincount(topic, minlength=topics)
        self.topic_counts: Ints | None = None
        if 0 < topics * (self.brokers + 1) <= largest_topic_table and self.topic_sizes.max(initial=0) > 1:
            self.topic_counts = np.zeros((topics, self.brokers + 1), dtype=np.int32)
        self.together: Floats | None = None
        """Brokers x brokers: how often they failed together, as a part of the most frequent pair. None: not known."""
        self.recompute()

    @property
    def width(self) -> int:
        """Return the number of columns of the table."""
        return int(self.replicas.shape[1])

    def recompute(self) -> None:
        """Sum the loads afresh, so that they depend on the replicas alone and on no rounding of the way there."""
        self.loads: Floats = compute_loads(
            self.replicas, self.resources.of_replica, self.resources.of_leader, self.brokers
        )
        if self.topic_counts is not None:
            key = (self.topic[:, None].astype(np.int64) * (self.brokers + 1) + self.replicas)[self.replicas >= 0]
            self.topic_counts[:] = 0
            np.add.at(self.topic_counts.reshape(-1), key, 1)

    def compute_relative(self) -> Floats:
        """Return each load as a multiple of the broker's fair share; 0 if the broker or resource is not balanced."""
        return self.loads * self.resources.per_share

    def get_loads_of(self, slots: Slots) -> Floats:
        """Return what each slot costs its broker, in all five resources."""
        loads = np.zeros((len(slots), len(RESOURCES)))
        partitions = slots // self.width
        loads[:, :OF_A_REPLICA] = self.resources.of_replica[partitions]
        leads = slots % self.width == 0
        loads[leads, OF_A_REPLICA:] = self.resources.of_leader[partitions[leads]]
        return loads

    def lift(self, slots: Slots, loads: Floats) -> None:
        """Take the loads of these slots off their brokers. The table keeps the brokers' names, as the way home."""
        on = self.replicas.ravel()[slots]
        self._add(on, -loads)
        if self.topic_counts is not None:
            np.subtract.at(self.topic_counts, (self.topic[slots // self.width], on), 1)

    def put(self, slots: Slots, brokers: Ints, loads: Floats) -> None:
        """Place lifted slots on brokers."""
        self.replicas.reshape(-1)[slots] = brokers
        self._add(brokers, loads)
        if self.topic_counts is not None:
            np.add.at(self.topic_counts, (self.topic[slots // self.width], brokers), 1)

    def _add(self, on: Ints, loads: Floats) -> None:
        if len(on) < 64:
            np.add.at(self.loads, on, loads)
            return
        for column in range(len(RESOURCES)):
            self.loads[:, column] += np.bincount(np.where(on < 0, self.brokers, on), loads[:, column], self.brokers + 1)

    def find_others(self, slots: Slots) -> Ints:
        """Return the replicas of each slot's partition, without the slot itself."""
        others = self.replicas[slots // self.width]
        others[np.arange(len(slots)), slots % self.width] = NO_BROKER
        return others

    def count_in_racks(self, others: Ints, brokers: Ints) -> Ints:
        """Return how many of the other replicas are in the rack of each of these brokers (a row for each slot)."""
        racks, wanted = self.rack[others], self.rack[brokers]
        count = np.zeros(brokers.shape, dtype=np.int32)
        for at in range(others.shape[1]):
            count += racks[:, at, None] == wanted
        return count

    def compute_exposure(self, others: Ints, brokers: Ints) -> Floats:
        """Return how often each of these brokers failed together with those of the other replicas (a row for each slot)."""
        exposure = np.zeros(brokers.shape)
        if self.together is not None:
            for at in range(others.shape[1]):
                exposure += self.together[others[:, at, None], brokers]
        return exposure

    def find_exposure(self, replicas: Ints) -> Floats:
        """Return the exposure of each replica of a table to the others of its partition."""
        return self.compute_exposure(replicas, replicas)
