"""Faults of a cluster, one each: a change of the records of `story`, and the records that prove it."""

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any, Final

from tests.spark.audit.tables import Record

Proof = list[Record]
"""The records that prove it, the violating one last."""
Mutation = Callable[[list[Record]], Proof]


def one(records: Sequence[Record], nth: int = 0, **fields: Any) -> Record:
    """Return the n-th change that has these fields."""
    found = [r for r in records if not r["snapshot"] and all(r.get(name) == value for name, value in fields.items())]
    return found[nth]


def find_former(records: Sequence[Record], record: Record) -> Record:
    """Return the previous record of the same thing, which may be an entry of a snapshot."""
    same = ("kind", "topic", "partition", "broker")
    earlier = records[: records.index(record)]
    return next(r for r in reversed(earlier) if all(r.get(name) == record.get(name) for name in same))


def change(nth: int = 0, *, proven_by_former: bool = False, wanted: dict[str, Any], **fields: Any) -> Mutation:
    """Return a mutation that sets fields of a record. None: the record does not have the field."""

    def mutate(records: list[Record]) -> Proof:
        record = one(records, nth, **wanted)
        record |= fields
        return [find_former(records, record), record] if proven_by_former else [record]

    return mutate


def prove_change(wanted: dict[str, Any], nth: int = 0, **fields: Any) -> Mutation:
    """Return a mutation as `change` does, which the previous record proves as well."""
    return change(nth, proven_by_former=True, wanted=wanted, **fields)


LED: Final[Record] = {"kind": "leadership", "topic": "orders", "partition": 0}
MOVED: Final[Record] = LED | {"leader": 2}  # because its broker failed
LOGS: Final[Record] = {"kind": "leadership", "topic": "logs"}
UNCLEAN: Final[Record] = LOGS | {"unclean": True}


def _second_leader(records: list[Record]) -> Proof:
    """Give the same epoch to two leaders, with a time without a leader in between."""
    moved = one(records, **MOVED)
    nobody = one(records, kind="leadership", topic="orders", partition=0, isr=[2, 3, 1])
    nobody |= {"leader": -1, "leader_epoch": 1}
    again = one(records, kind="leadership", topic="orders", partition=0, leader=1, leader_epoch=2)
    again |= {"leader_epoch": 1}
    return [moved, again]


def _unseen_write(records: list[Record]) -> Proof:
    lost = one(records, **LED, isr=[2, 3, 1])
    former = find_former(records, lost)
    records.remove(lost)
    return [former, one(records, **LED, leader=1, leader_epoch=2)]


def _early_end(records: list[Record]) -> Proof:
    """A reassignment ends though the new replica is not in sync."""
    joined = one(records, kind="leadership", topic="orders", partition=1, isr=[2, 3, 1, 4])
    joined["isr"] = [2, 3, 1]
    ended = one(records, kind="assignment", topic="orders", partition=1, replicas=[4, 3])
    return [find_former(records, ended), joined, ended]


def _foreign_member(records: list[Record]) -> Proof:
    assigned = one(records, kind="assignment", topic="orders", partition=0)
    assigned["replicas"] = [1, 2]
    return [assigned, one(records, **LED)]


def _foreign_leader(records: list[Record]) -> Proof:
    assigned = one(records, kind="assignment", topic="late")
    assigned["replicas"] = [4, 1]
    return [assigned, one(records, kind="leadership", topic="late")]


def _forbidden(records: list[Record]) -> Proof:
    """Neither the controller's own setting allows it, in its first record, nor the topic's last configuration."""
    configs = [record for record in records if record["kind"] == "topic_config"]
    for record in configs:
        record["config"] = {"unclean.leader.election.enable": "false"}
    elected = one(records, **UNCLEAN)
    return [records[0], [config for config in configs if config["seq"] < elected["seq"]][-1], elected]


def _dead_leader(records: list[Record]) -> Proof:
    elected = one(records, kind="leadership", topic="late", leader=3)
    gone = elected | {
        "kind": "broker_removed",
        "broker": 3,
        "topic": None,
        "partition": None,
        "seq": elected["seq"] - 1,
    }
    records[records.index(one(records, kind="assignment", topic="late"))] = gone
    return [gone, elected]


def _other_id(records: list[Record]) -> Proof:
    told = [record for record in records if record["kind"] == "topic" and record["topic"] == "orders"]
    told[-1]["topic_id"] = "another"
    return told[-2:]


def _second_controller(records: list[Record]) -> Proof:
    usurped = one(records, kind="leadership", topic="late")
    usurped["controller_id"] = 7
    return [next(record for record in records if record["controller_epoch"] == 2), usurped]


def _zombie(records: list[Record]) -> Proof:
    late = [r for r in records if r["controller_epoch"] == 1 and r["kind"] == "leadership" and not r["snapshot"]][-1]
    late["event_time"] += timedelta(days=1)
    return [late, next(record for record in records if record["controller_epoch"] == 2)]


MUTATIONS: Final[dict[str, tuple[str, Mutation]]] = {
    "a leader from outside the ISR": ("LeaderInIsr", change(wanted=MOVED, isr=[3])),
    "an ISR of nobody": ("IsrIsNotEmpty", change(wanted=LOGS | {"leader": -1}, isr=[])),
    "a member twice": ("IsrNamesEachOnce", change(wanted=MOVED, isr=[2, 3, 2])),
    "another leader under the same epoch": ("LeaderEpochRises", prove_change(MOVED, leader_epoch=None)),
    "two leaders of one epoch, and nobody between": ("OneLeaderPerEpoch", _second_leader),
    "a leader epoch that falls": ("LeaderEpochNeverFalls", prove_change(LED | {"leader": 1}, 1, leader_epoch=0)),
    "another state of the same version": ("PartitionEpochRises", prove_change(MOVED, partition_epoch=None)),
    "a version that falls": ("PartitionEpochNeverFalls", prove_change(LED | {"leader": 1}, 1, partition_epoch=0)),
    "a version that nobody recorded": ("NobodyElseWrites", _unseen_write),
    "an unclean election that is not called so": ("UncleanIsMarked", prove_change(UNCLEAN, unclean=False)),
    "a clean election that is called unclean": ("UncleanIsMarked", prove_change(MOVED, unclean=True)),
    "an unclean election that is forbidden": ("UncleanIsAllowed", _forbidden),
    "a leader that recovers in company": ("RecoveringIsAlone", change(wanted=UNCLEAN, isr=[1, 2])),
    "a leader that recovers from nothing": (
        "RecoveringIsUnclean", prove_change(LOGS | {"leader": 2}, leader_recovery_state=1),
    ),
    "a state of a later controller": ("DecidedByThisEpoch", change(wanted=MOVED, state_controller_epoch=9)),
    "a state of an earlier controller": (
        "DecidingEpochNeverFalls", prove_change(LED | {"controller_epoch": 2}, state_controller_epoch=0),
    ),
    "a replica assigned twice": (
        "AssignmentNamesEachOnce", change(wanted={"kind": "assignment", "topic": "late"}, replicas=[3, 4, 3]),
    ),
    "a reassignment without its new replica": (
        "AssignmentHoldsBoth", prove_change({"kind": "assignment", "adding": [4]}, replicas=[3, 2, 1]),
    ),
    "a reassignment that ends too early": ("TargetIsInSync", _early_end),
    "a member that is not assigned": ("IsrIsAssigned", _foreign_member),
    "a leader that is not assigned": ("LeaderIsAssigned", _foreign_leader),
    "a member that never registered": ("ChosenAreRegistered", change(wanted=MOVED, isr=[2, 3, 9])),
    "a leader that is gone": ("ChosenAreRegistered", _dead_leader),
    "a broker epoch that falls": (
        "BrokerEpochNeverFalls", prove_change({"kind": "broker", "broker": 2}, broker_epoch=1),
    ),
    "a topic with another id": ("TopicKeepsItsId", _other_id),
    "two controllers of one epoch": ("OneControllerPerEpoch", _second_controller),
    "a controller that goes on after its time": ("NoneActsAfterItsTime", _zombie),
}  # fmt: skip
"""Each fault: the invariant that it breaks, and the mutation that makes it."""
