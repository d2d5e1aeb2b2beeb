"""The journal has the configurations that its readers need, and none that might be a secret."""

from pathlib import Path

import pytest

from controller_core.journal import configs
from controller_core.journal.changes import Kind
from controller_core.journal.fold import Image
from controller_core.model.ids import TopicName
from controller_core.model.topics.topic_configs import TOPIC_CONFIGS
from controller_core.zk import codecs, paths
from controller_core.zk.session import Create, CreateMode
from simulation.checks import assert_configs_are_recorded, simulate_cluster
from simulation.cluster import CONTROLLER, Cluster
from simulation.process import ProcessSettings
from tests.unit.journal.memory import MemoryJournal, assert_journal_folds_to
from tests.unit.journal.test_term_journal import lines

MIN_ISR = {"min.insync.replicas": "2"}
UNCLEAN = {"unclean.leader.election.enable": "true"}


async def add_journal(cluster: Cluster) -> MemoryJournal:
    cluster.journal = journal = MemoryJournal()
    cluster.start_brokers(1, 2)
    await cluster.serve()
    return journal


def notify(cluster: Cluster, notification: bytes) -> None:
    cluster.write(Create(path=paths.CONFIG_CHANGE_PREFIX, data=notification, mode=CreateMode.PERSISTENT_SEQUENTIAL))


def image_of(cluster: Cluster, journal: MemoryJournal) -> Image:
    """Return the fold of the journal; assert that it equals the state of the controller and of ZooKeeper."""
    folded = assert_journal_folds_to(cluster.active.term.state, journal)
    assert_configs_are_recorded(cluster)
    assert folded.image is not None
    return folded.image


async def test_a_topic_is_recorded_with_its_configuration_and_with_every_change_of_it() -> None:
    async with simulate_cluster() as cluster:
        journal = await add_journal(cluster)
        topic_id = cluster.create_topic("orders", [1, 2], config=MIN_ISR)
        await cluster.settle()
        cluster.alter_config("topics/orders", {**MIN_ISR, "retention.ms": "1000"})
        await cluster.settle()
        cluster.alter_config("topics/orders", {"retention.ms": "1000"})
        await cluster.settle()
        recorded = lines(journal, Kind.TOPIC_CONFIG)
        assert [line.delta.config for line in recorded if line.delta] == [
            MIN_ISR, {**MIN_ISR, "retention.ms": "1000"}, {"retention.ms": "1000"},
        ]  # fmt: skip
        assert {(line.topic, line.topic_id) for line in recorded} == {("orders", str(topic_id))}
        assert [line.cause for line in recorded] == ["topics_changed", "configs_changed", "configs_changed"]
        assert image_of(cluster, journal).topic_configs == {"orders": {"config": {"retention.ms": "1000"}}}


async def test_a_configuration_that_is_emptied_or_whose_topic_is_deleted_is_recorded_as_removed() -> None:
    async with simulate_cluster() as cluster:
        journal = await add_journal(cluster)
        for name in ("emptied", "deleted", "vanished"):
            cluster.create_topic(name, [1, 2], config=MIN_ISR)
        await cluster.settle()
        cluster.alter_config("topics/emptied", {})
        cluster.request_deletion("deleted")
        cluster.remove_topic("vanished")
        await cluster.settle()
        removed = {line.topic for line in lines(journal, Kind.TOPIC_CONFIG_REMOVED)}
        assert removed == {"emptied", "deleted", "vanished"}
        assert image_of(cluster, journal).topic_configs == {}


async def test_configurations_of_brokers_and_their_default_are_recorded() -> None:
    async with simulate_cluster() as cluster:
        journal = await add_journal(cluster)
        cluster.alter_config("brokers/<default>", MIN_ISR)
        cluster.alter_config("brokers/1", {"leader.replication.throttled.rate": "1000"})
        await cluster.settle()
        rate = {"config": {"leader.replication.throttled.rate": "1000"}}
        assert image_of(cluster, journal).broker_configs == {None: {"config": MIN_ISR}, 1: rate}
        cluster.alter_config("brokers/<default>", {})
        await cluster.settle()
        assert [line.broker for line in lines(journal, Kind.BROKER_CONFIG_REMOVED)] == [None]
        assert image_of(cluster, journal).broker_configs == {1: rate}


async def test_what_may_be_a_secret_is_not_recorded() -> None:
    async with simulate_cluster() as cluster:
        journal = await add_journal(cluster)
        cluster.alter_config(
            "brokers/1", {"ssl.keystore.password": "hunter2", "sasl.jaas.config": "hunter2", **MIN_ISR}
        )
        cluster.alter_config("brokers/<default>", {"listener.name.internal.ssl.key.password": "hunter2"})
        cluster.create_topic("orders", [1, 2], config={"comment": "hunter2"})
        cluster.write(Create(path=paths.USER_CONFIGS))
        cluster.alter_config("users/alice", {"SCRAM-SHA-256": "hunter2"})
        await cluster.settle()
        image = image_of(cluster, journal)
        assert (image.topic_configs, image.broker_configs) == ({}, {1: {"config": MIN_ISR}})
        assert b"hunter2" not in b"".join(journal.lines)


async def test_a_new_term_begins_with_the_configurations_as_they_are() -> None:
    async with simulate_cluster() as cluster:
        journal = await add_journal(cluster)
        cluster.create_topic("orders", [1, 2], config=MIN_ISR)
        await cluster.settle()
        # this writes no notification
        cluster.put(paths.topic_config(TopicName("orders")), codecs.encode_config(UNCLEAN))
        cluster.put(paths.broker_config(None), codecs.encode_config(MIN_ISR))
        await cluster.processes[-1].kill()
        await cluster.serve()
        image = image_of(cluster, journal)
        assert image.topic_configs == {"orders": {"config": UNCLEAN}}
        assert image.broker_configs == {None: {"config": MIN_ISR}}


async def test_what_an_election_was_decided_from_is_recorded_before_it() -> None:
    async with simulate_cluster() as cluster:
        journal = await add_journal(cluster)
        cluster.create_topic("orders", [1, 2])
        await cluster.settle()
        cluster.kill_broker(2)
        await cluster.settle()
        cluster.put(paths.topic_config(TopicName("orders")), codecs.encode_config(UNCLEAN))  # without a notification
        cluster.kill_broker(1)
        cluster.start_broker(2)
        await cluster.settle()
        (allowed,) = lines(journal, Kind.TOPIC_CONFIG)
        (unclean,) = [line for line in lines(journal, Kind.LEADERSHIP) if line.unclean]
        assert allowed.correlation_id == unclean.correlation_id
        assert allowed.seq < unclean.seq
        image_of(cluster, journal)


@pytest.mark.parametrize(
    "notification",
    [
        b'{"version":1,"entity_type":"topics","entity_name":"orders"}',
        b'{"version":2,"entity_path":"topics/orders"}',
    ],
    ids=["version 1", "version 2"],
)
async def test_both_formats_of_notifications_are_understood(notification: bytes) -> None:
    async with simulate_cluster() as cluster:
        journal = await add_journal(cluster)
        cluster.create_topic("orders", [1, 2])
        await cluster.settle()
        cluster.put(paths.topic_config(TopicName("orders")), codecs.encode_config(MIN_ISR))
        notify(cluster, notification)
        await cluster.settle()
        assert image_of(cluster, journal).topic_configs == {"orders": {"config": MIN_ISR}}


@pytest.mark.parametrize("entity", ["topics/unknown", "topics/", "brokers/01", "brokers/x", f"brokers/{10**30}", "x"])
async def test_notifications_of_what_is_not_there_change_nothing(entity: str) -> None:
    async with simulate_cluster() as cluster:
        journal = await add_journal(cluster)
        cluster.alter_config("brokers/1", MIN_ISR)
        await cluster.settle()
        notify(cluster, codecs.encode_config_change(entity))
        await cluster.settle()
        assert image_of(cluster, journal).broker_configs == {1: {"config": MIN_ISR}}
        assert [line.broker for line in lines(journal, Kind.BROKER_CONFIG)] == [1]


async def test_an_unreadable_configuration_stays_as_it_was() -> None:
    async with simulate_cluster() as cluster:
        journal = await add_journal(cluster)
        cluster.create_topic("orders", [1, 2], config=MIN_ISR)
        await cluster.settle()
        cluster.put(paths.topic_config(TopicName("orders")), b"garbage")
        notify(cluster, codecs.encode_config_change("topics/orders"))
        await cluster.settle()
        folded = assert_journal_folds_to(cluster.active.term.state, journal)
        assert folded.image is not None
        assert folded.image.topic_configs == {"orders": {"config": MIN_ISR}}


@pytest.mark.parametrize("is_allowed", [True, False])
async def test_a_term_begins_with_what_the_controllers_own_settings_say(is_allowed: bool) -> None:
    async with simulate_cluster() as cluster:
        cluster.settings = ProcessSettings(unclean_leader_election_enable=is_allowed)
        journal = await add_journal(cluster)
        (elected,) = lines(journal, Kind.CONTROLLER_ELECTED)
        assert elected.delta is not None
        assert (elected.delta.config or {})["unclean.leader.election.enable"] == str(is_allowed).lower()


async def test_without_a_journal_no_configuration_is_kept() -> None:
    async with simulate_cluster() as cluster:
        cluster.start_brokers(1, 2)
        await cluster.serve()
        cluster.create_topic("orders", [1, 2], config=UNCLEAN)
        cluster.alter_config("brokers/<default>", MIN_ISR)
        await cluster.settle()
        cluster.kill_broker(1)
        cluster.kill_broker(2)
        await cluster.settle()
        state = cluster.active.term.state
        assert (state.topic_configs, state.broker_configs) == ({}, {})


async def test_a_snapshot_proves_configurations_too() -> None:
    async with simulate_cluster() as cluster:
        journal = await add_journal(cluster)
        cluster.create_topic("orders", [1, 2], config=MIN_ISR)
        cluster.alter_config(f"brokers/{CONTROLLER}", UNCLEAN)
        await cluster.settle()
        image = image_of(cluster, journal)
        texts = set(image.texts())
        assert "topic_config|orders|min.insync.replicas=2" in texts
        assert f"broker_config|{CONTROLLER}|unclean.leader.election.enable=true" in texts
        image.topic_configs["orders"] = {"config": {"min.insync.replicas": "1"}}
        assert image.checksum() != image_of(cluster, journal).checksum()


def test_the_description_names_every_override_that_is_recorded() -> None:
    description = (Path(__file__).resolve().parents[3] / "docs" / "journal.md").read_text()
    assert [name for name in configs.TOPIC_CONFIGS | configs.BROKER_CONFIGS if f"`{name}`" not in description] == []


def test_every_override_of_a_topic_that_is_recorded_is_one_of_kafkas() -> None:
    assert TOPIC_CONFIGS.keys() >= configs.TOPIC_CONFIGS
