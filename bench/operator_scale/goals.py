"""The operator's goals on an idle machine of two cores, and the goals that a run missed."""

from collections.abc import Iterable, Iterator
from typing import Final

from bench.operator_scale.phases import FROM_NOTHING, OUTAGE, RESYNC, Phase

_TOPICS_PER_S: Final = 33.0
_LEAST_S: Final = 10.0
"""A start takes this time even with few topics."""
_RESYNC_S: Final = 60.0
_CHANGE_S: Final = 1.0
_OLDEST_STATUS_S: Final = 5.0
_MEMORY_MB: Final = 300.0
_TOPIC_STATUSES: Final = "PATCH kafkatopics/status"


def find_missed(phases: Iterable[Phase], topics: int) -> list[str]:
    """Return each missed goal as a sentence with both numbers."""
    return [words for phase in phases for words in _find_missed_in(phase, topics)]


def _find_missed_in(phase: Phase, topics: int) -> Iterator[str]:
    within_s = max(_LEAST_S, topics / _TOPICS_PER_S)
    if phase.name == FROM_NOTHING and phase.seconds > within_s:
        yield f"{phase.name}: {phase.seconds:.0f} s; the goal is {within_s:.0f} s, {_TOPICS_PER_S:.0f} topics a second"
    if phase.name == RESYNC and phase.seconds > _RESYNC_S:
        yield f"{phase.name}: {phase.seconds:.0f} s; the goal is {_RESYNC_S:.0f} s"
    late = [seconds for seconds in phase.changes_s if seconds > _CHANGE_S]
    if late:
        many = f"{len(late)} of {len(phase.changes_s)} changes of a user"
        yield f"{phase.name}: {many} took longer than {_CHANGE_S:.0f} s, the worst {max(late):.2f} s"
    oldest_s = phase.oldest_status_s or 0.0
    if oldest_s > _OLDEST_STATUS_S:
        yield f"{phase.name}: a KafkaCluster's status was {oldest_s:.1f} s old; the goal is {_OLDEST_STATUS_S:.0f} s"
    if phase.most_memory_mb > _MEMORY_MB:
        yield f"{phase.name}: {phase.most_memory_mb:.0f} MB; the goal is {_MEMORY_MB:.0f} MB"
    if phase.name == OUTAGE and (number := phase.kubernetes_writes.get(_TOPIC_STATUSES, 0)):
        yield f"{phase.name}: {number} statuses of KafkaTopics were written; the goal is none"
