"""The configuration of topics, from the four places that say something about it."""

import asyncio

import pytest

from controller_core.model.ids import TopicName
from controller_core.model.topics.topic_configs import TOPIC_CONFIGS
from controller_core.zk import codecs, paths
from controller_core.zk.session import Create, CreateMode, SetData
from replica_broker.log.config import TimestampType
from replica_broker.log.record_batches import Compression
from replica_broker.membership.heeded_configs import TREATMENTS, find_refusal
from replica_broker.membership.topic_configs import ZkTopicConfigs
from tests.unit.replica_broker.membership.clusters import Joining

ORDERS = TopicName("orders")
DEADLINE_S = 10


async def configure(joining: Joining, path: str, config: dict[str, str], entity: str | None = None) -> None:
    data = codecs.encode_config(config)
    present = await joining.read(path)
    await joining.zk.transact([Create(path=path, data=data) if present is None else SetData(path=path, data=data)])
    if entity is not None:
        change = codecs.encode_config_change(entity)
        await joining.zk.transact(
            [Create(path=paths.CONFIG_CHANGE_PREFIX, data=change, mode=CreateMode.PERSISTENT_SEQUENTIAL)]
        )


async def load(joining: Joining) -> ZkTopicConfigs:
    configs = ZkTopicConfigs(joining.zk, {"min.insync.replicas": "2", "log.segment.bytes": "1000"})
    await configs.load()
    return configs


async def test_a_topic_says_it_before_all_brokers_and_they_before_this_process(joining: Joining) -> None:
    await configure(joining, paths.broker_config(None), {"log.segment.bytes": "2000", "log.retention.ms": "-1"})
    await configure(
        joining, paths.topic_config(ORDERS), {"segment.bytes": "3000", "message.timestamp.type": "LogAppendTime"}
    )
    configs = await load(joining)
    orders, others = configs.log_config(ORDERS), configs.log_config(TopicName("others"))
    assert (orders.segment_bytes, orders.retention_ms) == (3000, None)
    assert orders.message_timestamp_type is TimestampType.LOG_APPEND_TIME
    assert (others.segment_bytes, others.max_message_bytes) == (2000, 1_048_588)
    assert configs.min_insync_replicas(ORDERS) == 2


@pytest.mark.parametrize(
    ("policy", "is_deleted"), [("delete", True), ("compact", False), ("compact, delete", True), ("", False)]
)
async def test_only_what_the_cleanup_policy_has_deleted_is_deleted(
    joining: Joining, policy: str, is_deleted: bool
) -> None:
    await configure(joining, paths.topic_config(ORDERS), {"cleanup.policy": policy})
    assert (await load(joining)).log_config(ORDERS).is_deleted is is_deleted


@pytest.mark.parametrize(("policy", "is_compacted"), [("delete", False), ("compact", True), ("compact,delete", True)])
async def test_a_topic_that_is_compacted_is_known_as_such(joining: Joining, policy: str, is_compacted: bool) -> None:
    await configure(joining, paths.topic_config(ORDERS), {"cleanup.policy": policy})
    assert (await load(joining)).log_config(ORDERS).is_compacted is is_compacted


async def test_limits_of_producers_times_are_known_by_their_newer_and_their_older_name(joining: Joining) -> None:
    newer = {"message.timestamp.before.max.ms": "7000", "message.timestamp.after.max.ms": "9000"}
    await configure(joining, paths.topic_config(ORDERS), {**newer, "message.timestamp.difference.max.ms": "8000"})
    configs = await load(joining)
    orders, others = configs.log_config(ORDERS), configs.log_config(TopicName("others"))
    assert (orders.message_timestamp_before_max_ms, orders.message_timestamp_after_max_ms) == (7000, 8000)
    assert (others.message_timestamp_before_max_ms, others.message_timestamp_after_max_ms) == (None, None)


@pytest.mark.parametrize("value", ["producer", "uncompressed", *(each.name.lower() for each in Compression if each)])
async def test_how_records_are_compressed_is_known(joining: Joining, value: str) -> None:
    await configure(joining, paths.topic_config(ORDERS), {"compression.type": value})
    expected = {"producer": None, "uncompressed": Compression.NONE}
    wanted = expected[value] if value in expected else Compression[value.upper()]
    assert (await load(joining)).log_config(ORDERS).compression is wanted


@pytest.mark.parametrize(
    ("name", "value"), [("flush.messages", "1"), ("flush.ms", "50"), ("remote.storage.enable", "true")]
)
async def test_producers_of_a_topic_that_asks_for_what_is_not_done_here_are_refused_in_words(
    joining: Joining, name: str, value: str
) -> None:
    await configure(joining, paths.topic_config(ORDERS), {name: value, "segment.jitter.ms": "5"})
    configs = await load(joining)
    unsupported = configs.log_config(ORDERS).unsupported
    assert unsupported is not None
    assert unsupported.startswith(f"the topic's {name} is {value}: ")
    assert configs.log_config(TopicName("others")).unsupported is None


def test_the_table_says_of_every_configuration_what_is_made_of_it() -> None:
    assert [*TREATMENTS] == [*TOPIC_CONFIGS]
    assert all(find_refusal({name: known.default}) is None for name, known in TOPIC_CONFIGS.items())


async def test_an_impossible_value_is_passed_over(joining: Joining) -> None:
    await configure(joining, paths.topic_config(ORDERS), {"segment.bytes": "many", "min.insync.replicas": "0"})
    configs = await load(joining)
    assert configs.log_config(ORDERS).segment_bytes == 1000
    assert configs.min_insync_replicas(ORDERS) == 2


async def test_changes_are_followed_and_told(joining: Joining) -> None:
    configs = await load(joining)
    told: asyncio.Queue[TopicName] = asyncio.Queue()
    keeping = asyncio.create_task(configs.keep(told.put))
    try:
        await configure(joining, paths.topic_config(ORDERS), {"min.insync.replicas": "3"}, "topics/orders")
        async with asyncio.timeout(DEADLINE_S):
            assert await told.get() == ORDERS
        assert configs.min_insync_replicas(ORDERS) == 3
        await configure(joining, paths.broker_config(None), {"log.segment.bytes": "4000"}, "brokers/<default>")
        async with asyncio.timeout(DEADLINE_S):
            assert await told.get() == ORDERS
        assert configs.log_config(ORDERS).segment_bytes == 4000
    finally:
        keeping.cancel()


async def test_a_topic_that_is_created_later_is_read_before_its_replicas_start(joining: Joining) -> None:
    configs = await load(joining)
    await configure(joining, paths.topic_config(ORDERS), {"segment.bytes": "3000"})
    assert configs.log_config(ORDERS).segment_bytes == 1000
    await configs.load_topics([ORDERS])
    assert configs.log_config(ORDERS).segment_bytes == 3000
