"""The values of our answers that differ from Kafka's, and why. All other values are the same.

Both values are named. If ours becomes Kafka's, or a third one, a test fails.
"""

from dataclasses import dataclass
from typing import Any, Final


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """A known difference: one value of answers."""

    kafkas: Any
    ours: Any
    why: str
    field: str = "error_message"


_SETTING: Final = {"name": "segment.index.bytes", "read_only": False, "is_sensitive": False}
_NOT_ELECTED: Final = "Failed to elect leader for partition {} under strategy {}"
_PREFERRED: Final = "PreferredReplicaPartitionLeaderElectionStrategy"
_NOT_SUPPORTED: Final = "Could not apply finalized feature update because the provided feature is not supported{}."
_SHOWN_OTHERWISE: Final = {
    "Duplicate replica assignment found: HashMap(0 -> ArrayBuffer(1, 1))":
        "Duplicate replica assignment found: partition 0 on [1, 1]",
    "Duplicate brokers not allowed in replica assignment: 1, 1 for partition id 2.":
        "Duplicate brokers not allowed in replica assignment: [1, 1] for partition id 2.",
    "Duplicate replica ids in partition reassignment replica list: ArrayBuffer(1, 1)":
        "Duplicate replica ids in partition reassignment replica list: [1, 1]",
    "Invalid broker id in replica list: ArrayBuffer(-1)": "Invalid broker id in replica list: [-1]",
    "Replica assignment has brokers that are not alive. Replica list: ArrayBuffer(77), live broker list: Set(1, 2, 3)":
        "Replica assignment has brokers that are not alive. Replica list: [77], live broker list: [1, 2, 3]",
}  # fmt: skip
"""Messages that name brokers: Kafka shows them as its data structures have them, ours in brackets."""

DIFFERENCES: Final = (
    Difference(
        field="configs",
        kafkas={**_SETTING, "value": "131072", "config_source": 4},
        ours={**_SETTING, "value": "10485760", "config_source": 5},
        why="A broker's own settings are defaults of its topics. Only that broker knows them.",
    ),
    Difference(
        kafkas="",
        ours=None,
        why="Kafka answers about credentials and reassignments with an empty message if all is well. We send none.",
    ),
    Difference(
        kafkas="Invalid value [x] for configuration leader.replication.throttled.replicas: "
        "leader.replication.throttled.replicas must be the literal '*' or a list of replicas in the following format: "
        "[partitionId]:[brokerId],[partitionId]:[brokerId],...",
        ours="Invalid value x for configuration leader.replication.throttled.replicas: "
        "must be the literal '*' or a list of replicas in the following format: "
        "[partitionId]:[brokerId],[partitionId]:[brokerId],...",
        why="Kafka's message shows the value as a list, and names the configuration twice.",
    ),
    Difference(
        kafkas=_NOT_ELECTED.format("asked-led-0", _PREFERRED),
        ours="the preferred replica 2 is not live",
        why="Our message says why nobody was elected.",
    ),
    Difference(
        kafkas=_NOT_ELECTED.format("asked-unclean-0", _PREFERRED),
        ours="the preferred replica 2 is not live",
        why="Our message says why nobody was elected.",
    ),
    Difference(
        kafkas=_NOT_ELECTED.format("asked-lonely-0", "OfflinePartitionLeaderElectionStrategy(true)"),
        ours="none of the assigned replicas [2] is live",
        why="Our message says why nobody was elected.",
    ),
    Difference(
        kafkas=_NOT_SUPPORTED.format(""),
        ours=_NOT_SUPPORTED.format(" (live brokers: 1, 2, 3)"),
        why="Our message says which brokers do not support it.",
    ),
    *(
        Difference(
            kafkas=kafkas,
            ours="1000 is the controller, which holds no replicas: name a broker",
            why="Clients see the controller as a node, so tools may place replicas on it.",
        )
        for kafkas in (
            "Replica assignment has brokers that are not alive. Replica list: ArrayBuffer(1000), live broker list: "
            "Set(1, 2, 3)",
            "Unknown broker(s) in replica assignment: 1000.",
        )
    ),
    *(
        Difference(kafkas=kafkas, ours=ours, why="Brokers are shown in brackets.")
        for kafkas, ours in _SHOWN_OTHERWISE.items()
    ),
)


def ours(kafkas: Any, field: str = "") -> Any:
    """Return Kafka's answer, or a value of it, with our values if they differ. `field`: the name of the value."""
    for difference in DIFFERENCES:
        if (field, kafkas) == (difference.field, difference.kafkas):
            return difference.ours
    if isinstance(kafkas, dict):
        return {name: ours(value, name) for name, value in kafkas.items()}
    if isinstance(kafkas, list):
        return [ours(value, field) for value in kafkas]
    return kafkas
