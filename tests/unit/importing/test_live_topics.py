"""Topics of a cluster as KafkaTopics: equal to the cluster, and settings that no KafkaTopic can express are
reported."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import orjson
import pytest
import yaml

from controller_core.model.ids import BrokerId
from controller_core.model.snapshot import TopicSnapshot
from controller_core.zk import codecs, paths
from controller_core.zk.session import Create, ZkSession
from controller_operator.plans.outcome import Context, Plan
from controller_operator.plans.topic.differences import differences
from controller_operator.plans.topic.planner import decide
from controller_operator.resources import KafkaTopic
from kontroller.importing.documents import Imported, LeftOut, Target, format_yaml, list_remarks
from kontroller.importing.live_topics import Choice, NoTopics, import_seen_topics, import_topics
from kontroller.importing.object_names import ObjectNames
from simulation.zookeeper import SimulatedZooKeeper
from tests.unit.operator.clusters import NOW, healthy, ready, view

PARENTS = ("/admin", paths.DELETE_TOPICS, "/brokers", paths.TOPICS, "/config", paths.TOPIC_CONFIGS)
TARGET = Target(cluster="demo", namespace="shop")


async def cluster(topics: Mapping[str, Any], configs: Mapping[str, Any] | None = None) -> ZkSession:
    """A ZooKeeper with these topics, each as its partitions' replicas or as raw bytes."""
    session = SimulatedZooKeeper().session()
    ops = [Create(path=path) for path in PARENTS]
    for name, said_ in topics.items():
        data = said_ if isinstance(said_, bytes) else codecs.encode_topic(healthy(*said_, name=name).assignment)
        ops.append(Create(path=f"{paths.TOPICS}/{name}", data=data))
    for name, config in (configs or {}).items():
        ops.append(Create(path=f"{paths.TOPIC_CONFIGS}/{name}", data=codecs.encode_config(config)))
    await session.transact(ops)
    return session


async def import_all(
    session: ZkSession,
    *,
    choice: Choice | None = None,
    left_out: LeftOut | None = None,
    names: ObjectNames | None = None,
) -> list[Imported]:
    choice, left_out = choice or Choice(), LeftOut() if left_out is None else left_out
    return [each async for each in import_topics(session, choice, TARGET, names or ObjectNames(), left_out)]


def apply_yaml(each: Imported) -> KafkaTopic:
    """The object that comes of it, by way of its YAML."""
    return KafkaTopic.model_validate(yaml.safe_load(format_yaml(each)))


async def test_a_topic_is_written_with_what_it_has_and_nothing_else() -> None:
    config = {"retention.ms": "604800000", "cleanup.policy": "compact"}
    (found,) = await import_all(await cluster({"orders": [[1, 2], [2, 3]]}, {"orders": config}))
    assert format_yaml(found) == (
        "---\napiVersion: kontroller.dev/v1alpha1\nkind: KafkaTopic\nmetadata:\n  name: orders\n  namespace: shop\n"
        "spec:\n  clusterRef:\n    name: demo\n  partitions: 2\n  replicationFactor: 2\n  config:\n"
        "    cleanup.policy: compact\n    retention.ms: '604800000'\n"
    )
    assert list(list_remarks(found)) == []


@pytest.mark.parametrize("pins_replicas", [False, True])
@pytest.mark.parametrize("name", ["orders", "Orders_2", "__x"])
async def test_the_operator_finds_no_difference_between_the_object_and_the_topic(
    name: str, pins_replicas: bool
) -> None:
    replicas: list[Sequence[int]] = [[3, 1], [1, 2], [2, 3]]
    config = {"retention.ms": "1", "cleanup.policy": "compact, delete", "preallocate": "true"}
    (found,) = await import_all(
        await cluster({name: replicas}, {name: config}), choice=Choice(pins_replicas=pins_replicas)
    )
    resource = apply_yaml(found)
    assert resource.topic_name == name
    assert differences(resource, healthy(*replicas, name=name, config=config)).all == ()
    assert (resource.spec.replica_assignment is not None) == pins_replicas
    assert resource.spec.config == config


async def test_a_partition_that_moves_counts_as_being_where_it_goes_and_its_throttle_is_left_out() -> None:
    moving = b'{"version":3,"partitions":{"0":[3,4,1,2]},"adding_replicas":{"0":[3,4]},"removing_replicas":{"0":[1,2]}}'
    throttle = {"leader.replication.throttled.replicas": "0:1", "retention.ms": "1"}
    (found,) = await import_all(await cluster({"orders": moving}, {"orders": throttle}))
    assert apply_yaml(found).spec.replication_factor == 2
    assert apply_yaml(found).spec.config == {"retention.ms": "1"}
    assert [line.split(": ")[1] for line in list_remarks(found)] == [
        "1 partitions are moving",
        "config leaves out leader.replication.throttled.replicas, which the topic keeps",
    ]


@pytest.mark.parametrize(
    ("config", "left_out"),
    [
        ({"message.format": "ü: 'yes'\n", "off": "no"}, ["message.format", "off"]),
        ({"retention.ms": "x" * 40_000}, ["retention.ms"]),
        ({"min.insync.replicas": "3"}, ["min.insync.replicas"]),
        ({"max.compaction.lag.ms": "10", "min.compaction.lag.ms": "20"}, ["min.compaction.lag.ms"]),
    ],
)
async def test_what_the_operator_would_refuse_stays_on_the_topic_and_out_of_the_spec(
    config: dict[str, str], left_out: list[str]
) -> None:
    live = healthy([1, 2], config={"flush.ms": "5", **config})
    (found,) = await import_all(await cluster({"orders": [[1, 2]]}, {"orders": live.config}))
    resource = apply_yaml(found)
    assert (resource.spec.config or {}).keys() == live.config.keys() - set(left_out)
    assert [line.split(", which")[0].rpartition(" ")[2] for line in list_remarks(found)] == left_out
    assert all(len(line) < 1_000 for line in list_remarks(found))
    adopted: Plan[Any] = decide(resource, view(live), Context(now=NOW))
    assert (adopted.steps, ready(adopted).status) == ((), "True")
    assert [each.key for each in adopted.status.undeclared_config.keys] == left_out


def import_views(*topics: TopicSnapshot) -> dict[str, Imported]:
    """The topics of a cluster without ZooKeeper."""
    found = import_seen_topics(view(*topics, voters=(BrokerId(1),)), Choice(), TARGET, ObjectNames(), LeftOut())
    return {each.name: each for each in found}


def test_topics_of_a_cluster_without_zookeeper_are_adopted_without_a_change() -> None:
    """Kafka 4 has keys that 3.9 does not know."""
    config = {"remote.copy.lag.ms": "5", "retention.ms": "1", "min.insync.replicas": "3"}
    live = healthy([1, 2], [2, 1], config=config)
    found = import_views(healthy([1], name="__consumer_offsets"), live)["orders"]
    resource = apply_yaml(found)
    assert resource.spec.config == {"remote.copy.lag.ms": "5", "retention.ms": "1"}
    cluster_seen = view(live, voters=(BrokerId(1),))
    adopted = decide(resource, cluster_seen, Context(now=NOW))
    assert (adopted.steps, ready(adopted).status) == ((), "True")


def test_a_topic_whose_configuration_the_brokers_do_not_tell_is_a_comment() -> None:
    found = import_views(replace(healthy([1]), is_config_known=False), healthy([1], name="other"))
    assert found["orders"].document is None
    assert "DescribeConfigs" in next(iter(list_remarks(found["orders"])))
    assert found["other"].document is not None


async def test_managed_internal_and_vanishing_topics_are_left_out_and_counted() -> None:
    session = await cluster({name: [[1]] for name in ("a", "b", "c", "__consumer_offsets", "__transaction_state")})
    await session.transact([Create(path=f"{paths.DELETE_TOPICS}/c")])
    left_out = LeftOut()
    found = await import_all(session, choice=Choice(managed={"a"}), left_out=left_out)
    assert [each.name for each in found] == ["b"]
    assert str(left_out) == "2 internal to Kafka, 1 that have a KafkaTopic, 1 being deleted"
    asked_for = await import_all(session, choice=Choice(with_internal=True))
    assert [each.name for each in asked_for] == ["__consumer_offsets", "__transaction_state", "a", "b"]


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"{", "/brokers/topics/orders"),
        (b'{"version":1,"partitions":{"0":[1,2],"1":[1]}}', "1, 2 replicas"),
        (b'{"version":1,"partitions":{"0":[1],"2":[1]}}', "without a gap"),
        (b'{"version":1,"partitions":{}}', "no replicas"),
        (orjson.dumps({"version": 1, "partitions": {"0": list(range(1, 22))}}), "replicationFactor"),
    ],
)
async def test_what_no_kafka_topic_can_say_is_a_comment_and_disturbs_no_other(data: bytes, reason: str) -> None:
    found = await import_all(await cluster({"orders": data, "other": [[1]]}, {"orders": {"retention.ms": "77"}}))
    assert [each.document is not None for each in found] == [False, True]
    assert reason in next(iter(list_remarks(found[0])))
    told = format_yaml(found[0])
    assert all(line.startswith("#") for line in told.splitlines())
    assert "77" in told
    assert [each for each in yaml.safe_load_all(told + format_yaml(found[1])) if each] == [found[1].document]


async def test_values_that_the_schema_does_not_take_are_told_by_their_field() -> None:
    config = {"cleanup.policy": ",".join(["delete"] * 10_000)}
    (found,) = await import_all(await cluster({"orders": [[1]]}, {"orders": config}))
    assert "spec.config.cleanup.policy" in next(iter(list_remarks(found)))


async def test_an_object_of_the_namespace_keeps_its_name() -> None:
    (found,) = await import_all(await cluster({"orders": [[1]]}), names=ObjectNames({"orders"}))
    assert apply_yaml(found).metadata.name.startswith("orders-")
    assert apply_yaml(found).topic_name == "orders"


async def test_more_topics_than_are_read_at_once_all_come_in_order() -> None:
    names = [f"t-{number:04}" for number in range(1001)]
    found = await import_all(await cluster({name: [[1]] for name in names}))
    assert [each.name for each in found] == names


async def test_an_address_without_a_cluster_is_an_error() -> None:
    with pytest.raises(NoTopics, match="chroot"):
        await import_all(SimulatedZooKeeper().session())
