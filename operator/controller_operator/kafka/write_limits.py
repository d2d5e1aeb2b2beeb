"""Checks that a plan's writes fit into ZooKeeper's limit, before anything is begun.

A server closes the connection of a client that sends more than its `jute.maxbuffer`, and all objects of a cluster share
one connection. So `ZkSession` refuses to send larger requests, and a planner learns of it here before it records an
intent. The whole transaction is measured, and for a reassignment also the controller's later writes of the topics'
znodes.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Final, TypeVar

from controller_core.model.ids import BrokerId, TopicName, TopicPartition, group_by_topic
from controller_core.model.reassignment import begin_reassignment
from controller_core.model.snapshot import Snapshot
from controller_core.zk import codecs, paths
from controller_core.zk.request_size import DEFAULT_JUTE_MAXBUFFER_BYTES, transaction_bytes
from controller_core.zk.session import Create, SetData, WriteOp, ZkSession
from controller_operator.kafka.actions import (
    Action,
    AddPartitions,
    AlterTopicConfig,
    CreateTopic,
    SubmitReassignment,
    make_operations,
)
from controller_operator.kafka.throttle_steps import SetThrottle, ThrottleStep

Targets = Mapping[TopicPartition, tuple[BrokerId, ...]]
T = TypeVar("T")

_AROUND_AN_ANSWER: Final = 88
"""Bytes beside the data in the answer to a read. Clients have the same limit for answers, so data that they could not
read must not be written. Kafka's own controller and tools are such clients."""
_LARGER: Final = "or raise jute.maxbuffer of ZooKeeper, of the brokers and of the operator"
_REMEDIES: Final[dict[type[Action | ThrottleStep], str]] = {
    CreateTopic: f"ask for fewer partitions or replicas, or a smaller config, {_LARGER}",
    AddPartitions: f"ask for fewer partitions, {_LARGER}",
    AlterTopicConfig: f"make config smaller, {_LARGER}",
    SubmitReassignment: f"divide it among several objects, {_LARGER}",
    SetThrottle: f"move fewer partitions at a time (maxConcurrentPartitions), do without throttle, {_LARGER}",
}


def find_remedy(steps: Iterable[object]) -> str:
    """Return the change to make if one of the steps did not fit."""
    known = (words for step in steps for kind, words in _REMEDIES.items() if isinstance(step, kind))
    return next(known, _LARGER)


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteLimits:
    """ZooKeeper's limits for one write."""

    max_bytes: int = DEFAULT_JUTE_MAXBUFFER_BYTES
    transaction_bytes: Callable[[Sequence[WriteOp]], int] = transaction_bytes

    @staticmethod
    def read_limits(session: ZkSession) -> "WriteLimits":
        return WriteLimits(max_bytes=session.max_request_bytes, transaction_bytes=session.request_bytes)

    def why_too_large(self, action: Action) -> str | None:
        """Return why an action cannot be carried out, and the change to make; None if it fits."""
        size_bytes = self._bytes(make_operations(action))
        if size_bytes <= self.max_bytes:
            return None
        too_large = f"it is a write of {size_bytes} bytes, and ZooKeeper takes {self.max_bytes} (its jute.maxbuffer)"
        return f"{too_large}: {find_remedy([action])}"

    def why_no_reassignment(self, targets: Targets, view: Snapshot, *, is_by_znode: bool = True) -> str | None:
        """Like `why_too_large`, for a reassignment. The topics' znodes must have room too, because each names the old
        and the new replicas during the move. A reassignment by request (not `is_by_znode`) needs no other znode."""
        for topic, of_topic in group_by_topic(targets):
            size_bytes = self._bytes([_make_begin_write(topic, {each: targets[each] for each in of_topic}, view)])
            if size_bytes > self.max_bytes:
                return (
                    f"the znode of topic {topic} would take {size_bytes} bytes while its partitions move, and ZooKeeper "
                    f"takes {self.max_bytes} (its jute.maxbuffer): move fewer of them at a time, {_LARGER}"
                )
        return self.why_too_large(SubmitReassignment(partitions=targets)) if is_by_znode else None

    def choose_fitting_targets(self, targets: Targets, view: Snapshot, *, most: int) -> Targets:
        """Return as many of the first targets as one reassignment may have; at least one."""

        def has_room(number: int) -> bool:
            return self.why_no_reassignment(dict(islice(targets.items(), number)), view) is None

        return dict(islice(targets.items(), _find_largest(has_room, min(len(targets), most))))

    def choose_fitting(self, items: Sequence[T], action: Callable[[tuple[T, ...]], Action]) -> tuple[T, ...]:
        """Return as many of the first items as one action may have; at least one."""

        def fits(number: int) -> bool:
            return self.why_too_large(action(tuple(items[:number]))) is None

        return tuple(items[: _find_largest(fits, len(items))])

    def _bytes(self, ops: Sequence[WriteOp]) -> int:
        answers = (len(op.data) + _AROUND_AN_ANSWER for op in ops if isinstance(op, Create | SetData))
        return max(self.transaction_bytes(ops), *answers)


def _find_largest(is_possible: Callable[[int], bool], most: int) -> int:
    """Return the largest number up to `most` for which it is possible; 1 if it is possible for none."""
    if most <= 1 or is_possible(most):
        return most
    # The size rises with the number, so bisection finds the last number that is possible.
    return max(1, bisect_right(range(1, most), False, key=lambda number: not is_possible(number)))


def _make_begin_write(topic: TopicName, targets: Targets, view: Snapshot) -> WriteOp:
    """Return the controller's write that begins the reassignment of a topic's partitions."""
    known = view.topics.get(topic)
    if known is None:
        return SetData(path=paths.topic(topic), data=b"")
    begun = {
        partition.partition: begin_reassignment(known.partitions[partition.partition], replicas)
        for partition, replicas in targets.items()
        if partition.partition in known.partitions
    }
    assignment = replace(known.assignment, partitions={**known.partitions, **begun})
    return SetData(path=paths.topic(topic), data=codecs.encode_topic(assignment))
