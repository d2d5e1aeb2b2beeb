"""The time that a plan takes, from the bytes that the busiest broker of each batch sends or receives."""

import numpy as np

from controller_planner.loads import Floats
from controller_planner.plan import Plan
from controller_planner.resources import DISK, measure_replicas


def compute_busiest(plan: Plan) -> Floats:
    """Return the bytes of the busiest broker of each batch: the most that one receives, or sends as a leader.

    A copy of unknown size counts as the mean of the known ones."""
    size = measure_replicas(plan.snapshot)[plan.partition, DISK]
    before = plan.snapshot.partitions.replicas[plan.partition]
    added = (plan.after >= 0) & ~(plan.after[:, :, None] == before[:, None, :]).any(axis=2)
    leader = plan.snapshot.partitions.leader[plan.partition]
    shape = (plan.batches, len(plan.snapshot.brokers))
    received, sent = np.zeros(shape), np.zeros(shape)
    change = np.nonzero(added)[0]
    np.add.at(received, (plan.batch[change], plan.after[added]), size[change])
    led = leader >= 0
    np.add.at(sent, (plan.batch[led], leader[led]), (size * added.sum(axis=1))[led])
    busiest: Floats = np.maximum(received, sent).max(axis=1, initial=0)
    return busiest


def estimate_seconds(plan: Plan, bytes_per_second: float) -> float:
    """Return the seconds that the copies take if each broker sends, and receives, at most so many bytes a second.

    Batches are one after the other. New data of producers, which is copied as well, is not counted."""
    return float(compute_busiest(plan).sum() / bytes_per_second)
