"""Where a follower cuts its log: all that it has and its leader has not must go, and nothing that is committed.

By leader epochs (KIP-101, KIP-279): the leader says where the last epoch of the follower's log ends in its own log.
Where the leader does not have that epoch, it names the largest one below, and the follower, which may not have *that*
one, asks again from where it has cut. The high watermark is no such place: that of a follower is behind, and what is
between was committed when the leader said so (the seed cuts there; `ReplicaSettings.truncate_to`).
"""

from typing import NamedTuple

from controller_core.model.ids import NO_EPOCH
from replica_broker.log.log import Log
from replica_broker.replicas.requests import EpochEnd


class Cut(NamedTuple):
    """Where to cut, and whether the rest is the leader's."""

    offset: int
    is_complete: bool


def cut_by_epoch(log: Log, leaders: EpochEnd, high_watermark: int) -> Cut:
    """The decision by what the leader says of the latest epoch in the follower's log."""
    if not leaders.is_known:
        return Cut(min(high_watermark, log.log_end_offset), is_complete=True)  # the leader knows no epochs
    if leaders.epoch == NO_EPOCH:
        return Cut(min(leaders.end_offset, log.log_end_offset), is_complete=True)
    own = EpochEnd(*log.end_of_epoch(leaders.epoch))
    if not own.is_known:
        return Cut(min(leaders.end_offset, log.log_end_offset), is_complete=True)
    if own.epoch != leaders.epoch:
        return Cut(min(own.end_offset, log.log_end_offset), is_complete=False)
    return Cut(min(own.end_offset, leaders.end_offset, log.log_end_offset), is_complete=True)
