"""The five resources that a plan evens out, and each broker's fair share of them.

A replica costs its broker one replica, the partition's bytes on disk, and its incoming bytes per second. The leader also
costs one leadership, and outgoing bytes: to consumers, and once to each follower. A broker's share of a resource is
proportional to its capacity, or the same for all if a capacity is unknown. An unknown load counts as the mean of the
known ones. If none is known, the resource is not balanced."""

from dataclasses import dataclass
from typing import Final

import numpy as np

from controller_planner.loads import Bools, Brokers, Floats, Ints, LoadSnapshot, name_brokers

RESOURCES: Final = ("replicas", "disk", "in", "out", "leaders")
"""The columns of every load. The first `OF_A_REPLICA` are borne by each replica, the others by leaders alone."""
OF_A_REPLICA: Final = 3
REPLICAS: Final = 0
DISK: Final = 1
IN: Final = 2
LEADERS: Final = 4
_MOST_NAMED: Final = 5


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Resources:
    """The load of each partition, and the shares of each broker. Broker arrays have one row more, for no broker."""

    of_replica: Floats
    """P x 3: replicas, disk, in."""
    of_leader: Floats
    """P x 2: out, leaders."""
    per_share: Floats
    """(B + 1) x 5: a load times this is 1 if it is the broker's fair share. 0: the broker or resource is not balanced."""
    capacity: Floats
    """(B + 1) x 5: infinite if unknown."""
    known: Bools
    """True for each resource that is balanced."""


def describe_unknown(snapshot: LoadSnapshot, bears: Bools) -> tuple[str, ...]:
    """Return a sentence for each kind of load or capacity that nobody measured, in full or in part.

    `bears` is True for the brokers that share the load: the capacities of others do not matter."""
    partitions = snapshot.partitions
    sentences = []
    for name, values in (
        ("sizes", partitions.size_bytes),
        ("write traffic", partitions.in_bytes_per_second),
        ("read traffic", partitions.out_bytes_per_second),
    ):
        number = int(np.isnan(values).sum())
        if number and number == len(values):
            sentences.append(f"{name} unknown")
        elif number:
            sentences.append(f"{name} unknown for {number} of {len(values)} partitions")
    return (*sentences, *describe_unknown_capacities(snapshot.brokers, bears))


def describe_unknown_capacities(brokers: Brokers, bears: Bools) -> tuple[str, ...]:
    """Return a sentence for each capacity that some of these brokers lack, with what holds instead."""
    sentences = []
    for name, values in (
        ("disk", brokers.capacity_disk_bytes),
        ("in", brokers.capacity_in_bytes_per_second),
        ("out", brokers.capacity_out_bytes_per_second),
    ):
        lacks = np.isnan(values) & bears
        if lacks.any() and not lacks[bears].all():
            sentences.append(
                f"{name} capacity unknown for {name_brokers(brokers.ids[lacks], _MOST_NAMED)}: they have no limit, and all"
                " brokers get equal shares"
            )
        elif lacks.any() and name == "disk":
            sentences.append("disk capacities unknown: nothing keeps the plan from filling a disk")
    return tuple(sentences)


def find_unmeasured(snapshot: LoadSnapshot) -> Bools:
    """Return True for each resource of which no load is known at all."""
    partitions = snapshot.partitions
    of_producers = np.isnan(partitions.in_bytes_per_second).all()
    of_consumers = np.isnan(partitions.out_bytes_per_second).all()
    none = [False, np.isnan(partitions.size_bytes).all(), of_producers, of_producers & of_consumers, False]
    return np.array(none, dtype=np.bool_) & (len(partitions) > 0)


def measure(snapshot: LoadSnapshot, factors: Ints, bears: Bools, fixed_replicas: Ints) -> Resources:
    """Return the resources of a snapshot.

    `factors` has the wanted number of replicas of each partition. `bears` is True for the brokers that share the load.
    `fixed_replicas` are the replicas, in the form of the snapshot, that stay on brokers that do not share it."""
    brokers = snapshot.brokers
    of_replica = measure_replicas(snapshot)
    of_leader = measure_leaders(snapshot, factors)
    capacity = np.full((len(brokers) + 1, len(RESOURCES)), np.inf)
    for column, values in (
        (1, brokers.capacity_disk_bytes),
        (2, brokers.capacity_in_bytes_per_second),
        (3, brokers.capacity_out_bytes_per_second),
    ):
        capacity[:-1, column] = np.where(np.isnan(values), np.inf, values)
    total = np.concatenate([factors @ of_replica, of_leader.sum(axis=0)])
    fixed = compute_loads(fixed_replicas, of_replica, of_leader, len(brokers)).sum(axis=0)
    per_share = np.zeros_like(capacity)
    shares = _compute_shares(capacity[:-1], bears)
    to_share = total - fixed
    for column in range(len(RESOURCES)):
        if to_share[column] > 1e-12 * max(total[column], 1.0):
            per_share[:-1, column][bears] = 1 / (to_share[column] * shares[bears, column])
    return Resources(
        of_replica=of_replica,
        of_leader=of_leader,
        per_share=per_share,
        capacity=capacity,
        known=np.asarray(per_share.any(axis=0)),
    )


def measure_replicas(snapshot: LoadSnapshot) -> Floats:
    """Return what each replica of a partition costs its broker: replicas, disk, in."""
    partitions = snapshot.partitions
    loads = [np.ones(len(partitions)), _fill(partitions.size_bytes), _fill(partitions.in_bytes_per_second)]
    return np.stack(loads, axis=1)


def measure_leaders(snapshot: LoadSnapshot, factors: Ints) -> Floats:
    """Return what leading each partition costs: out, leaders."""
    partitions = snapshot.partitions
    to_followers = (factors - 1) * _fill(partitions.in_bytes_per_second)
    return np.stack([_fill(partitions.out_bytes_per_second) + to_followers, np.ones(len(partitions))], axis=1)


def compute_loads(replicas: Ints, of_replica: Floats, of_leader: Floats, brokers: int) -> Floats:
    """Return the load of each broker, and a last row of zeros for no broker. The first replica is the leader."""
    loads = np.zeros((brokers + 1, len(RESOURCES)))
    for at in range(replicas.shape[1]):
        on = replicas[:, at]
        if not (used := on >= 0).all():
            on = np.where(used, on, brokers)  # counted in the last row, which is cleared in the end
        for column in range(OF_A_REPLICA):
            loads[:, column] += np.bincount(on, of_replica[:, column], brokers + 1)
        if at == 0:
            for column in range(len(RESOURCES) - OF_A_REPLICA):
                loads[:, OF_A_REPLICA + column] += np.bincount(on, of_leader[:, column], brokers + 1)
    loads[-1] = 0
    return loads


def _compute_shares(capacity: Floats, bears: Bools) -> Floats:
    """Return each broker's part of each resource. Replicas and leaders follow the first known capacity."""
    shares = np.zeros_like(capacity)
    for column, sources in enumerate(((1, 2, 3), (1,), (2,), (3,), (3, 2, 1))):
        weights = np.ones(len(capacity))
        for source in sources:
            if np.isfinite(capacity[bears, source]).all():
                weights = capacity[:, source]
                break
        shares[bears, column] = weights[bears] / weights[bears].sum()
    return shares


def _fill(values: Floats) -> Floats:
    """Return the values with the mean of the known ones for each unknown one."""
    unknown = np.isnan(values)
    if not unknown.any():
        return values
    return np.where(unknown, 0.0 if unknown.all() else np.nanmean(values), values)
