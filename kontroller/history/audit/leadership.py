"""Invariants of a partition's leader and ISR, tested for each `leadership` record of the history."""

from typing import Final

from kontroller.history.audit.invariants import Invariant

_BOTH: Final = ("was_record",)

INVARIANTS: Final = (
    Invariant(
        id="LeaderInIsr",
        broken="now.leader >= 0 AND NOT array_contains(now.isr, now.leader)",
        detail="broker {now.leader} leads but is not in the ISR {now.isr}",
        broker="now.leader",
    ),
    Invariant(
        id="IsrIsNotEmpty", broken="size(now.isr) = 0", detail="no replica is in sync: the last ISR was {was.isr}"
    ),
    Invariant(
        id="IsrNamesEachOnce",
        broken="size(array_distinct(now.isr)) < size(now.isr)",
        detail="the ISR {now.isr} names a broker twice",
    ),
    Invariant(
        id="LeaderEpochRises",
        broken="now.leader <> was.leader AND now.leader_epoch = was.leader_epoch",
        detail="the leader changed from {was.leader} to {now.leader}, but the leader epoch is still {now.leader_epoch}",
        evidence=_BOTH,
        broker="now.leader",
    ),
    Invariant(
        id="LeaderEpochNeverFalls",
        broken="now.leader_epoch < was.leader_epoch",
        detail="the leader epoch fell from {was.leader_epoch} to {now.leader_epoch}",
        evidence=_BOTH,
    ),
    Invariant(
        id="OneLeaderPerEpoch",
        broken="now.leader >= 0 AND now.leader_epoch = last_leader.leader_epoch AND now.leader <> last_leader.leader",
        detail="brokers {last_leader.leader} and {now.leader} both lead in leader epoch {now.leader_epoch}: "
        "both may have taken messages",
        evidence=("last_leader.record",),
        broker="now.leader",
    ),
    Invariant(
        id="PartitionEpochRises",
        broken="now.partition_epoch = was.partition_epoch AND now.partition_epoch >= 0 AND NOT now <=> was",
        detail="partition epoch {now.partition_epoch} says leader {now.leader}, ISR {now.isr}, leader epoch "
        "{now.leader_epoch}; it said leader {was.leader}, ISR {was.isr}, leader epoch {was.leader_epoch} before",
        evidence=_BOTH,
    ),
    Invariant(
        id="PartitionEpochNeverFalls",
        broken="now.partition_epoch < was.partition_epoch AND now.partition_epoch >= 0",
        detail="the partition epoch fell from {was.partition_epoch} to {now.partition_epoch}: somebody created the "
        "state znode again, or ZooKeeper lost what it had",
        evidence=_BOTH,
    ),
    Invariant(
        id="UncleanIsMarked",
        broken="follows AND origin <> 'logs' AND now.leader >= 0 AND now.leader <> was.leader "
        "AND unclean = array_contains(was.isr, now.leader)",
        detail="broker {now.leader} became the leader; the ISR before was {was.isr}; marked as unclean: {unclean}",
        evidence=_BOTH,
        broker="now.leader",
    ),
    Invariant(
        id="RecoveringIsAlone",
        broken="now.leader_recovery_state = 1 AND now.leader >= 0 AND now.isr <> array(now.leader)",
        detail="the leader {now.leader} recovers from an unclean election, but the ISR is {now.isr}",
        broker="now.leader",
    ),
    Invariant(
        id="RecoveringIsUnclean",
        broken="follows AND now.leader_recovery_state = 1 AND was.leader_recovery_state = 0 "
        "AND array_contains(was.isr, now.leader)",
        detail="the leader {now.leader} recovers, although there was no unclean election: the ISR before was {was.isr}",
        evidence=_BOTH,
        broker="now.leader",
    ),
    Invariant(
        id="DecidedByThisEpoch",
        broken="NOT inferred AND now.state_controller_epoch > controller_epoch",
        detail="controller {controller_id} of epoch {controller_epoch} recorded a state that was decided in epoch "
        "{now.state_controller_epoch}: another controller had replaced it, and it did not know",
    ),
    Invariant(
        id="DecidingEpochNeverFalls",
        broken="now.state_controller_epoch < was.state_controller_epoch AND now.state_controller_epoch >= 0",
        detail="a state that was decided in controller epoch {was.state_controller_epoch} was overwritten by one of "
        "epoch {now.state_controller_epoch}: a controller that had been replaced still wrote",
        evidence=_BOTH,
    ),
    Invariant(
        id="NobodyElseWrites",
        broken="NOT inferred AND NOT snapshot AND span <=> was_span AND cause <> 'isr_changes_notified' "
        "AND now.partition_epoch > was.partition_epoch + 1",
        detail="the partition epoch went from {was.partition_epoch} to {now.partition_epoch}: between them somebody "
        "else wrote the state",
        evidence=_BOTH,
    ),
)
