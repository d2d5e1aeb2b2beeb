"""What a broker would choke on is refused before it is in ZooKeeper."""

import pytest

from controller_core.model.topic_configs import complaints


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("retention.ms", "-1"),
        ("cleanup.policy", "compact,delete"),
        ("min.cleanable.dirty.ratio", "0.5"),
        ("compression.type", "zstd"),
        ("preallocate", "True"),
        ("leader.replication.throttled.replicas", "0:1,0:2"),
        ("leader.replication.throttled.replicas", "*"),
        ("message.timestamp.type", "LogAppendTime"),
    ],
)
def test_what_brokers_accept_is_accepted(key: str, value: str) -> None:
    assert complaints({key: value}) == []


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("retention.ms", "-2"),
        ("retention.ms", "1.5"),
        ("retention.ms", ""),
        ("retention.ms", str(2**63)),
        ("segment.bytes", "13"),
        ("cleanup.policy", "keep"),
        ("min.cleanable.dirty.ratio", "nan"),
        ("min.cleanable.dirty.ratio", "1.1"),
        ("compression.type", "brotli"),
        ("preallocate", "yes"),
        ("min.insync.replicas", "0"),
        ("message.timestamp.type", "logappendtime"),
        ("retention", "1"),
        ("compression.gzip.level", "0"),
        ("remote.log.copy.disable", "no"),
    ],
)
def test_what_brokers_would_refuse_is_named(key: str, value: str) -> None:
    (complaint,) = complaints({"segment.ms": "1", key: value})
    assert complaint.startswith(f"{key}: ")


def test_sound_values_that_contradict_each_other_are_named() -> None:
    (complaint,) = complaints({"min.compaction.lag.ms": "20", "max.compaction.lag.ms": "10"})
    assert complaint.startswith("min.compaction.lag.ms: ")
    assert complaints({"min.compaction.lag.ms": "10", "max.compaction.lag.ms": "10"}) == []
