"""Finds the offset at which a follower truncates its log.

It must lose all that the leader lacks, and nothing committed. By leader epochs (KIP-101, KIP-279), the leader answers
where the follower's last epoch ends in the leader's log. If the leader lacks that epoch, it names the largest smaller
one. The follower may lack *that* one, so it truncates and asks again. The high watermark is not a safe offset: a
follower's is behind, and messages above it may be committed. The seed truncates there nevertheless
(`ReplicaSettings.truncate_to`).
"""

from typing import NamedTuple

from controller_core.model.ids import NO_EPOCH
from replica_broker.log.log import Log
from replica_broker.replicas.requests import EpochEnd


class Cut(NamedTuple):
    """The offset to truncate at, and True if the rest then matches the leader's log."""

    offset: int
    is_complete: bool


def cut_by_epoch(log: Log, leaders: EpochEnd, high_watermark: int) -> Cut:
    """Return the cut that follows from the leader's answer about the last epoch of the follower's log."""
    if not leaders.is_known:
        return Cut(min(high_watermark, log.log_end_offset), is_complete=True)  # the leader knows no epochs
    if leaders.epoch == NO_EPOCH:
        return Cut(min(leaders.end_offset, log.log_end_offset), is_complete=True)
    own = EpochEnd(*log.find_epoch_end(leaders.epoch))
    if not own.is_known:
        return Cut(min(leaders.end_offset, log.log_end_offset), is_complete=True)
    if own.epoch != leaders.epoch:
        return Cut(min(own.end_offset, log.log_end_offset), is_complete=False)
    return Cut(min(own.end_offset, leaders.end_offset, log.log_end_offset), is_complete=True)
