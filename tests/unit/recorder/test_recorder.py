"""A recorder sees a simulated cluster with Kontroller's controller, and records it."""

import asyncio
import json

import pytest

from controller_core.journal.inference import UNOBSERVED
from controller_core.model.ids import ControllerEpoch, TopicName
from controller_core.recorder.directory import Ended
from controller_core.recorder.looker import ClusterLost, OutOfSight
from controller_core.recorder.observed_journal import AnotherCluster
from controller_core.recorder.recorder import Recorder
from controller_core.recorder.znodes.looking import ZnodesLooker
from controller_core.zk import codecs, paths
from controller_core.zk.session import Delete
from simulation.checks import simulate_cluster
from simulation.cluster import Cluster, tp
from tests.unit.journal.memory import MemoryJournal
from tests.unit.recorder.watching import ReadOnlySession, Settings, Watched, list_recorded


async def serve(cluster: Cluster, *numbers: int, settings: Settings | None = None, timeout_ms: int = 1000) -> Watched:
    """Brokers with one topic, and a recorder that has looked once."""
    cluster.journal = MemoryJournal()  # so that the controller has the configurations to compare with
    cluster.start_brokers(*numbers)
    await cluster.serve()
    cluster.create_topic("orders", [*numbers])
    await cluster.settle()
    await cluster.replicate()
    watched = Watched(cluster, settings, timeout_ms)
    await watched.look()
    return watched


async def pass_time(cluster: Cluster, duration_ms: float) -> None:
    asleep = asyncio.create_task(cluster.clock.sleep_ms(duration_ms))
    while not asleep.done():
        await cluster.settle(duration_ms)


async def test_it_begins_with_a_snapshot_and_says_that_it_only_looks_on() -> None:
    async with simulate_cluster() as cluster:
        watched = await serve(cluster, 1, 2)
        lines = watched.lines()
        assert [line.kind for line in lines][:2] == ["recorder_started", "snapshot_started"]
        assert all(line.inferred for line in lines)
        assert {(line.controller_id, line.controller_epoch) for line in lines} == {(1000, 1)}
        watched.assert_comes_to_the_cluster()


async def test_a_failed_and_a_started_broker_are_recorded_with_what_follows_from_them() -> None:
    async with simulate_cluster() as cluster:
        watched = await serve(cluster, 1, 2)
        cluster.kill_broker(1)
        lines = await watched.look()
        assert list_recorded(lines) == [("broker_removed", "broker_failed"), ("leadership", "broker_failed")]
        assert len({line.correlation_id for line in lines}) == 1
        cluster.start_broker(1)
        await cluster.replicate()
        assert list_recorded(await watched.look()) == [("broker", "broker_started"), ("leadership", "alter_partition")]
        watched.assert_comes_to_the_cluster()


async def test_a_partition_that_waited_for_its_broker_is_led_because_that_started() -> None:
    async with simulate_cluster() as cluster:
        watched = await serve(cluster, 1)
        cluster.kill_broker(1)
        await watched.look()
        cluster.start_broker(1)
        assert list_recorded(await watched.look()) == [("broker", "broker_started"), ("leadership", "broker_started")]


async def test_a_broker_that_is_back_before_anyone_looked_is_a_restart() -> None:
    async with simulate_cluster() as cluster:
        watched = await serve(cluster, 1, 2)
        cluster.bounce_broker(1)
        assert set(list_recorded(await watched.look())) == {
            ("broker", "broker_restarted"),
            ("leadership", "broker_restarted"),
        }
        watched.assert_comes_to_the_cluster()


async def test_a_controlled_shutdown_and_leaders_that_go_back_are_told_apart_from_failures() -> None:
    async with simulate_cluster() as cluster:
        watched = await serve(cluster, 1, 2, 3)
        await cluster.shut_down(1)
        assert list_recorded(await watched.look()) == [("leadership", "controlled_shutdown")]
        cluster.bounce_broker(1)
        await cluster.replicate()
        await watched.look()
        cluster.request_election(tp("orders"))
        assert list_recorded(await watched.look()) == [("leadership", "balance_due")]
        watched.assert_comes_to_the_cluster()


async def test_what_happens_during_a_look_is_seen_with_what_it_followed_from() -> None:
    async with simulate_cluster() as cluster:
        watched = await serve(cluster, 1, 2, 3)

        async def fail() -> None:
            cluster.kill_broker(1)
            await cluster.settle()

        watched.read_only.meanwhile = fail
        await cluster.alter_isr(tp("orders"), [1, 2])
        assert list_recorded(await watched.look()) == [
            ("broker_removed", "broker_failed"),
            ("leadership", "broker_failed"),
        ]
        assert watched.read_only.meanwhile is None


async def test_topics_partitions_and_configurations_come_and_go() -> None:
    async with simulate_cluster() as cluster:
        watched = await serve(cluster, 1, 2)
        cluster.create_topic("bills", [1, 2], config={"min.insync.replicas": "2"})
        assert set(list_recorded(await watched.look())) == {
            (kind, "topics_changed") for kind in ("topic", "assignment", "topic_config", "leadership")
        }
        cluster.add_partitions("bills", [2, 1])
        assert set(list_recorded(await watched.look())) == {
            ("assignment", "topic_modified"),
            ("leadership", "topic_modified"),
        }
        cluster.alter_config("topics/bills", {"min.insync.replicas": "1"})
        cluster.alter_config("brokers/1", {"ssl.keystore.password": "hunter2", "min.insync.replicas": "1"})
        assert set(list_recorded(await watched.look())) == {
            ("topic_config", "configs_changed"), ("broker_config", "configs_changed"),
        }  # fmt: skip
        cluster.request_deletion("bills")
        assert set(list_recorded(await watched.look())) == {
            (f"{kind}_removed", "topic_deletions_requested") for kind in ("leadership", "topic_config", "topic")
        }
        watched.assert_comes_to_the_cluster()
        assert b"hunter2" not in b"".join(watched.journal.lines)


async def test_a_topic_that_is_replaced_between_two_looks_is_recorded_as_another() -> None:
    async with simulate_cluster() as cluster:
        watched = await serve(cluster, 1, 2)
        cluster.remove_topic("orders")
        for broker in cluster.brokers.values():
            broker.logs.clear()  # otherwise no broker could serve the next topic
        cluster.create_topic("orders", [2, 1], [1, 2])
        kinds = {line.kind for line in await watched.look()}
        assert kinds == {"leadership_removed", "topic_removed", "topic", "assignment", "leadership"}
        watched.assert_comes_to_the_cluster()


async def test_a_reassignment_is_recorded_from_its_request_to_its_end() -> None:
    async with simulate_cluster() as cluster:
        watched = await serve(cluster, 1, 2, 3)
        cluster.create_topic("bills", [1, 2])
        await watched.look()
        cluster.request_reassignment({tp("bills"): [3, 2]})
        begun = await watched.look()
        assert set(list_recorded(begun)) == {
            ("assignment", "reassignments_requested"),
            ("leadership", "reassignments_requested"),
        }
        await cluster.replicate()
        ended = await watched.look()
        assert ("assignment", "reassignments_requested") in list_recorded(ended)
        assert [line.delta.removing for line in ended if line.kind == "assignment" and line.delta] == [[]]
        watched.assert_comes_to_the_cluster()


async def test_an_unclean_election_is_recorded_as_such_where_no_version_was_missed() -> None:
    async with simulate_cluster() as cluster:
        watched = await serve(cluster, 1, 2)
        cluster.put(
            paths.topic_config(TopicName("orders")), codecs.encode_config({"unclean.leader.election.enable": "true"})
        )
        cluster.kill_broker(2)
        await watched.look()
        cluster.kill_broker(1)
        await watched.look()
        cluster.start_broker(2)
        lines = await watched.look()
        assert [line.unclean for line in lines if line.kind == "leadership"] == [True]
        assert watched.recorder.observed_journal.seen.versions_missed == 0


async def test_versions_that_were_missed_are_counted() -> None:
    async with simulate_cluster() as cluster:
        watched = await serve(cluster, 1, 2)
        before = cluster.state(tp("orders")).partition_epoch
        cluster.kill_broker(2)
        await cluster.settle()
        cluster.start_broker(2)
        await cluster.replicate()
        await watched.look()
        missed = cluster.state(tp("orders")).partition_epoch - before - 1
        assert missed > 0
        assert watched.recorder.observed_journal.seen.versions_missed == missed
        watched.assert_comes_to_the_cluster()


async def test_a_new_controller_takes_over_the_state_that_was_recorded_and_then_what_changed() -> None:
    async with simulate_cluster() as cluster:
        watched = await serve(cluster, 1, 2)
        await cluster.processes[-1].stop()
        assert list_recorded(await watched.look()) == [("controller_resigned", "controller_failover")]
        cluster.kill_broker(1)
        assert await watched.look() == []
        await cluster.serve()
        lines = await watched.look()
        assert list_recorded(lines) == [
            ("controller_elected", "controller_failover"),
            ("broker_removed", "broker_failed"),
            ("leadership", "broker_failed"),
        ]  # fmt: skip
        assert (lines[0].seq, lines[0].controller_epoch) == (0, 2)
        watched.assert_comes_to_the_cluster()


async def test_a_snapshot_that_is_due_when_the_role_is_given_up_is_that_of_the_next_term() -> None:
    async with simulate_cluster() as cluster:
        watched = await serve(cluster, 1, 2, settings=Settings(journal_snapshot_interval_seconds=0))
        await cluster.processes[-1].stop()
        assert [line.kind for line in await watched.look()] == ["controller_resigned"]
        await cluster.serve()
        lines = await watched.look()
        assert (lines[0].kind, lines[-1].kind) == ("controller_elected", "snapshot_ended")
        watched.assert_comes_to_the_cluster()


async def test_a_role_that_changes_hands_between_two_looks_ends_one_term_and_begins_another() -> None:
    async with simulate_cluster() as cluster:
        watched = await serve(cluster, 1, 2)
        await cluster.processes[-1].stop()
        cluster.make_kafka_controller(2)
        lines = await watched.look()
        assert list_recorded(lines)[:2] == [
            ("controller_resigned", "controller_failover"), ("controller_elected", "controller_failover"),
        ]  # fmt: skip
        assert [(line.controller_id, line.controller_epoch) for line in lines[:2]] == [(1000, 1), (2, 2)]


async def test_without_a_controller_nothing_is_recorded_before_there_is_one() -> None:
    async with simulate_cluster() as cluster:
        cluster.start_brokers(1)
        watched = Watched(cluster)
        assert await watched.look() == []
        await cluster.serve()
        assert list_recorded(await watched.look()) == [("recorder_started", "recorder_started")]


async def test_what_changed_without_a_connection_is_unobserved() -> None:
    async with simulate_cluster() as cluster:
        watched = await serve(cluster, 1, 2)
        cluster.zk.disconnect(watched.session)
        cluster.kill_broker(1)
        await cluster.settle()
        with pytest.raises(OutOfSight):
            await watched.recorder.look()
        cluster.zk.reconnect(watched.session)
        lines = await watched.look()
        assert list_recorded(lines) == [("broker_removed", UNOBSERVED), ("leadership", UNOBSERVED)]
        cluster.start_broker(1)
        assert ("broker", "broker_started") in list_recorded(await watched.look())
        watched.assert_comes_to_the_cluster()


async def test_an_expired_session_is_a_time_without_a_connection() -> None:
    async with simulate_cluster() as cluster:
        watched = await serve(cluster, 1, 2)
        cluster.zk.expire(watched.session)
        cluster.kill_broker(1)
        assert list_recorded(await watched.look()) == [("broker_removed", UNOBSERVED), ("leadership", UNOBSERVED)]


async def test_every_snapshot_is_of_what_zookeeper_says_and_proves_what_was_recorded() -> None:
    async with simulate_cluster() as cluster:
        watched = await serve(cluster, 1, 2, settings=Settings(journal_snapshot_interval_seconds=0))
        for _ in range(3):
            cluster.bounce_broker(2)
            await cluster.replicate()
            lines = await watched.look()
            assert lines[-1].kind == "snapshot_ended"
            assert UNOBSERVED not in {line.cause for line in lines}
        assert watched.assert_comes_to_the_cluster().proven == 3


async def test_a_change_that_no_watch_fired_for_is_found_with_the_next_snapshot() -> None:
    async with simulate_cluster() as cluster:
        watched = await serve(cluster, 1, 2, settings=Settings(journal_snapshot_interval_seconds=0))
        watched.session._data_watches.clear()  # a fault that ZooKeeper excludes, and that is looked for all the same
        cluster.move_broker(2, 9999)
        cluster.kill_broker(1)
        assert set(list_recorded(await watched.look())) == {
            ("broker", UNOBSERVED), ("broker_removed", "broker_failed"), ("leadership", UNOBSERVED),
        }  # fmt: skip
        watched.assert_comes_to_the_cluster()


async def test_a_controller_that_changes_nothing_is_alive() -> None:
    async with simulate_cluster() as cluster:
        watched = await serve(cluster, 1, 2)
        await pass_time(cluster, 2_000)
        assert list_recorded(await watched.look()) == []
        await pass_time(cluster, 8_000)
        alive = await watched.look()
        assert list_recorded(alive) == [("controller_alive", "journal_due")]
        assert {line.alive_interval_ms for line in (watched.lines()[0], *alive)} == {10_000}
        assert list_recorded(await watched.look()) == []


async def test_nobody_is_said_to_be_alive_whom_zookeeper_does_not_name() -> None:
    async with simulate_cluster() as cluster:
        watched = await serve(cluster, 1, 2)
        watched.session._data_watches.clear()
        cluster.write(Delete(path=paths.CONTROLLER))
        await pass_time(cluster, 10_000)
        assert list_recorded(await watched.look()) == []


async def test_a_look_reads_what_has_changed_and_nothing_else() -> None:
    async with simulate_cluster() as cluster:
        watched = await serve(cluster, 1, 2)
        for number in range(20):
            cluster.create_topic(f"quiet-{number}", [1, 2])
        await watched.look()
        read, armed = watched.recorder.looker.reads, watched.session.armed_watches
        await cluster.alter_isr(tp("orders"), [1])
        assert list_recorded(await watched.look()) == [("leadership", "alter_partition")]
        assert watched.recorder.looker.reads == read + 1
        assert watched.session.armed_watches == armed, "one watch for each znode"


async def test_an_unreadable_znode_stays_what_it_was() -> None:
    async with simulate_cluster() as cluster:
        watched = await serve(cluster, 1, 2)
        await cluster.processes[-1].stop()
        await watched.look()
        cluster.make_kafka_controller(1)
        await watched.look()
        for path in (paths.topic(TopicName("orders")), paths.partition_state(tp("orders")), paths.FEATURE):
            cluster.put(path, b"garbage")
        assert list_recorded(await watched.look()) == []


async def test_an_entry_of_a_topic_that_makes_no_sense_stays_what_it_was() -> None:
    async with simulate_cluster() as cluster:
        watched = await serve(cluster, 1, 2)
        cluster.create_topic("two", [1, 2], [2, 1])
        await cluster.settle()
        await watched.look()
        content = json.loads(cluster.data(paths.topic(TopicName("two"))) or b"")
        content["partitions"]["1"] = [2**31]
        cluster.put(paths.topic(TopicName("two")), json.dumps(content).encode())
        assert list_recorded(await watched.look()) == []


async def test_another_cluster_behind_the_same_address_ends_the_recording() -> None:
    async with simulate_cluster() as cluster:
        watched = await serve(cluster, 1, 2)
        await cluster.processes[-1].stop()
        cluster.put(paths.CONTROLLER_EPOCH, b"0")
        cluster.make_kafka_controller(1)
        cluster.put(paths.CONTROLLER_EPOCH, b"0")
        with pytest.raises(AnotherCluster, match="controller epoch 1, and the cluster is at 0"):
            await watched.look()


async def test_a_journal_of_a_later_epoch_is_not_gone_on_with() -> None:
    async with simulate_cluster() as cluster:
        await serve(cluster, 1)
        journal = MemoryJournal()
        session = ReadOnlySession(cluster.zk.session())
        looker, ended = ZnodesLooker(session, timeout_ms=1000), Ended(epoch=ControllerEpoch(7))
        recorder = Recorder(looker, journal, cluster.clock, Settings(), ended=ended)
        with pytest.raises(AnotherCluster):
            await recorder.look()
        assert journal.lines == []


async def test_it_gives_up_when_zookeeper_stays_away() -> None:
    async with simulate_cluster() as cluster:
        watched = await serve(cluster, 1, 2, timeout_ms=10)
        running = asyncio.create_task(watched.recorder.run())
        await cluster.settle()
        cluster.zk.disconnect(watched.session)
        await cluster.settle()
        with pytest.raises(ClusterLost, match="--zookeeper-timeout-ms"):
            await running
