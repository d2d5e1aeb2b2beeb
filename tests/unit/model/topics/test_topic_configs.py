"""Values that a broker would choke on are refused before they reach ZooKeeper, exactly as Kafka's own classes judge
them."""

import subprocess
from functools import cache
from pathlib import Path

import pytest

from controller_core.model.topics.topic_configs import TOPIC_CONFIGS, fill_in_defaults, find_complaints
from devcluster.building.java import tool_command

SEPARATOR = "\x01"

VALUES = (
    *("", " ", "abc", "true", "True ", "yes", "false"),
    *(
        "0",
        "1",
        "-1",
        "-2",
        "-3",
        "+5",
        "3",
        "9",
        "10",
        "13",
        "14",
        "17",
        "18",
        "22",
        "23",
        "-131072",
        "-131073",
        " 7 ",
    ),
    *("1.5", "0.5", "1.1", "-0.1", "1e-3", "1_0", "0x10", "9" * 200),
    *(str(2**31 - 1), str(2**31), str(2**63 - 1), str(2**63), str(-(2**63)), str(-(2**63) - 1)),
    *("delete", "compact", "compact,delete", "delete, compact", "delete,", ",", "DELETE"),
    *("zstd", " zstd", "lz4", "uncompressed", "producer", "none", "brotli"),
    *("CreateTime", "LogAppendTime", "logappendtime"),
    *("*", "* ", "0:1", "0:1,0:2", "0:1, 0:2", "0:1,", "0:1,*", "*,*", "a:b", "0:-1"),
    *("3.0", "3.0-IV1", "3.0-IV9", "0.10.0", "0.10", "0.10.1-IV2", "2.8.1", "3.10", "4.0", "4.0-IV0", "5.0"),
)
"""Tried with every key."""

TOGETHER: tuple[dict[str, str], ...] = (
    {},
    {"no.such.key": "1"},
    {"remote.log.copy.disable": "true"},
    {"remote.log.delete.on.disable": "true"},
    {"min.compaction.lag.ms": "2", "max.compaction.lag.ms": "1"},
    {"min.compaction.lag.ms": "1", "max.compaction.lag.ms": "1"},
    {"remote.storage.enable": "true", "cleanup.policy": "compact"},
    {"remote.storage.enable": "false", "cleanup.policy": "compact"},
    {"remote.storage.enable": "true", "local.retention.ms": "-1"},
    {"remote.storage.enable": "true", "local.retention.ms": "2", "retention.ms": "1"},
    {"remote.storage.enable": "true", "local.retention.ms": "1", "retention.ms": "1"},
    {"remote.storage.enable": "true", "local.retention.bytes": "2", "retention.bytes": "1"},
    {"remote.storage.enable": "true", "local.retention.bytes": "2", "retention.bytes": "-1"},
    {"remote.storage.enable": "true", "local.retention.bytes": "-1", "retention.bytes": "-1"},
    {"remote.storage.enable": "true", "local.retention.bytes": "-1", "retention.bytes": "5"},
)


@cache
def kafka() -> tuple[list[list[str]], list[str]]:
    """Kafka's keys, and its verdicts on every value with every key and on `TOGETHER`."""
    judged = [SEPARATOR.join(word for pair in config.items() for word in pair) for config in configurations()]
    source = Path(__file__).with_name("JudgeTopicConfigs.java")
    output = subprocess.run(
        tool_command(str(source)), input="\n".join(judged) + "\n", capture_output=True, text=True, check=True
    ).stdout
    keys, verdicts = output.split("\n\n", 1)
    return [line.split(SEPARATOR) for line in keys.splitlines()], verdicts.splitlines()


def configurations() -> list[dict[str, str]]:
    return [{key: value} for key in TOPIC_CONFIGS for value in VALUES] + [config for config in TOGETHER if config]


@pytest.mark.real
def test_keys_types_and_defaults_are_those_of_kafka() -> None:
    assert [[key, known.type.value, known.default] for key, known in TOPIC_CONFIGS.items()] == kafka()[0]


@pytest.mark.real
def test_every_verdict_is_that_of_kafka() -> None:
    verdicts = dict(zip(map(str, configurations()), kafka()[1], strict=True))
    ours = {str(config): find_complaints(config) for config in configurations()}
    assert {c: (verdicts[c], o) for c, o in ours.items() if (verdicts[c] == "valid") != (o == [])} == {}
    assert 0 < list(verdicts.values()).count("valid") < len(verdicts)


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
    assert find_complaints({key: value}) == []


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
    (complaint,) = find_complaints({"segment.ms": "1", key: value})
    assert key in complaint


def test_sound_values_that_contradict_each_other_are_named() -> None:
    (complaint,) = find_complaints({"min.compaction.lag.ms": "20", "max.compaction.lag.ms": "10"})
    assert "min.compaction.lag.ms (20) > max.compaction.lag.ms (10)" in complaint
    assert find_complaints({"min.compaction.lag.ms": "10", "max.compaction.lag.ms": "10"}) == []
    assert find_complaints({"remote.storage.enable": "true", "cleanup.policy": "compact"})


def test_the_effective_configuration_has_every_key_and_the_overrides() -> None:
    values = fill_in_defaults({"retention.ms": "5"})
    assert values.keys() == TOPIC_CONFIGS.keys()
    assert values["retention.ms"] == "5"
    assert values["segment.bytes"] == "1073741824"
