"""A recorder that follows the log of a quorum: the records, their times, and the place where it resumes."""

from uuid import UUID

import pytest
from kio.schema.errors import ErrorCode
from prometheus_client import CollectorRegistry

from controller_core.model.ids import BrokerId, ControllerEpoch
from controller_core.model.snapshot import Controller
from controller_core.process.recording.metrics import RecorderMetrics
from controller_core.recorder.event_numbers import read_position
from controller_core.recorder.looker import ClusterLost, OutOfSight
from controller_core.recorder.metadata_log.quorum_leader import LogRefused
from controller_core.recorder.observed_journal import AnotherCluster
from tests.unit.journal.memory import MemoryJournal
from tests.unit.recorder.metadata_log import logs
from tests.unit.recorder.metadata_log.followed import Followed, cluster, follow_quorum, make_ended
from tests.unit.recorder.metadata_log.quorums import Quorum, log_of, looker_of, serve
from tests.unit.recorder.watching import list_recorded


async def test_it_begins_with_the_newest_state_where_fenced_brokers_are_no_live_ones() -> None:
    async with follow_quorum(cluster()) as found:
        lines = found.lines()
        assert list_recorded(lines) == [("recorder_started", "recorder_started")]
        assert {(line.controller_id, line.controller_epoch, line.cluster_id) for line in lines} == {(101, 1, "here")}
        image = found.image()
        assert set(image.brokers) == {1, 2}
        assert image.leaderships["orders", 0]["isr"] == [1, 2]
        assert image.assignments["orders", 0]["replicas"] == [1, 2]


async def test_each_event_is_recorded_with_its_own_time_and_no_version_is_missed() -> None:
    quorum = cluster()
    async with follow_quorum(quorum) as found:
        quorum.append(logs.batch(8, logs.partition_change(0, isr=[1]), time_ms=2_000))
        quorum.append(logs.batch(9, logs.partition_change(0, isr=[1, 2]), time_ms=2_500))
        lines = await found.look()
        assert list_recorded(lines) == [("leadership", "alter_partition")] * 2
        assert [line.event_time_us for line in lines] == [2_000_000, 2_500_000]
        assert [read_position(line.correlation_id) for line in lines] == [8, 9]
        assert found.recorder.observed_journal.seen.versions_missed == 0


async def test_a_broker_that_fails_and_what_follows_are_one_event() -> None:
    quorum = cluster()
    async with follow_quorum(quorum) as found:
        died = (logs.registration_change(1, fenced=1), logs.partition_change(0, isr=[2], leader=2))
        quorum.append(logs.batch(8, *died, time_ms=2_000), count=2)
        assert list_recorded(await found.look()) == [
            ("broker_removed", "broker_failed"),
            ("leadership", "broker_failed"),
        ]
        assert found.image().leaderships["orders", 0]["leader_epoch"] == 1
        quorum.append(logs.batch(10, logs.register(1, 10), time_ms=2_100))
        quorum.append(logs.batch(11, logs.unfence(1), time_ms=2_200))
        assert list_recorded(await found.look()) == [("broker", "broker_started")]


async def test_a_broker_that_asks_to_be_relieved_is_the_cause_of_what_it_leaves() -> None:
    quorum = cluster()
    async with follow_quorum(quorum) as found:
        quorum.append(logs.batch(8, logs.registration_change(2, shutting_down=1)))
        quorum.append(logs.batch(9, logs.partition_change(0, isr=[1])))
        assert list_recorded(await found.look()) == [("leadership", "controlled_shutdown")]


async def test_a_log_that_stands_still_has_a_living_leader_as_long_as_it_answers() -> None:
    quorum = cluster()
    async with follow_quorum(quorum) as found:
        found.looker.clock._shown_at_ms -= 12_000  # let that much time pass
        assert list_recorded(await found.look()) == [("controller_alive", "journal_due")]
        assert found.lines()[-1].event_time_us // 1_000_000 == 13


async def test_a_partition_whose_last_replica_in_sync_fails_keeps_it_in_sync_and_has_no_leader() -> None:
    quorum = cluster()
    async with follow_quorum(quorum) as found:
        quorum.append(logs.batch(8, logs.partition_change(0, isr=[1])))
        quorum.append(logs.batch(9, logs.fence(1), logs.partition_change(0, leader=-1)), count=2)
        await found.look()
        state = found.image().leaderships["orders", 0]
        assert (state["leader"], state["isr"], state["leader_epoch"]) == (-1, [1], 1)
        quorum.append(logs.batch(11, logs.partition_change(0, isr=[2], leader=2, recovery_state=1)))
        lines = await found.look()
        assert [line.unclean for line in lines if line.kind == "leadership"] == [True]


async def test_what_is_not_decided_is_not_shown_and_given_up_where_another_leader_has_something_else() -> None:
    quorum = cluster()
    async with follow_quorum(quorum) as found:
        quorum.append(logs.batch(8, logs.partition_change(0, isr=[2], leader=2)), is_decided=False)
        assert await found.look() == []
        quorum.log.pop()
        quorum.leader, quorum.epoch, quorum.diverging = 102, 2, (1, 8)
        quorum.append(logs.leader_change(8, 102, epoch=2, time_ms=3_000))
        with pytest.raises(OutOfSight):
            await found.look()
        lines = await found.look()
        lines += await found.look()
        assert list_recorded(lines) == [
            ("controller_resigned", "controller_failover"), ("controller_elected", "controller_failover"),
        ]  # fmt: skip
        assert [(line.controller_id, line.controller_epoch) for line in lines][:2] == [(101, 1), (102, 2)]
        assert found.image().leaderships["orders", 0]["leader"] == 1
        assert [line.event_time_us for line in lines][:2] == [1_000_000, 3_000_000]


async def test_transactions_hold_whole_from_their_end_on_or_never() -> None:
    quorum = cluster()
    async with follow_quorum(quorum) as found:
        other = UUID(int=9 << 65)
        quorum.append(logs.batch(8, logs.BEGIN, logs.topic("aborted", other)), count=2)
        quorum.append(logs.batch(10, logs.partition(0, [1], topic_id=other)))
        quorum.append(logs.batch(11, logs.ABORT))
        quorum.append(logs.batch(12, logs.BEGIN, logs.topic("whole", other)), count=2)
        assert await found.look() == []
        quorum.append(logs.batch(14, logs.partition(0, [2, 1], topic_id=other)))
        quorum.append(logs.batch(15, logs.END, time_ms=4_000))
        lines = await found.look()
        assert {line.cause for line in lines} == {"topics_changed"}
        assert {(line.event_time_us, read_position(line.correlation_id)) for line in lines} == {(4_000_000, 15)}
        assert set(found.image().topics) == {"orders", "whole"}


async def test_a_topic_that_is_deleted_and_made_anew_is_another_one() -> None:
    quorum = cluster()
    async with follow_quorum(quorum) as found:
        quorum.append(logs.batch(8, logs.config(2, "orders", "min.insync.replicas", "2")))
        quorum.append(logs.batch(9, logs.remove_topic()))
        again = UUID(int=9 << 65)
        quorum.append(logs.batch(10, logs.topic("orders", again), logs.partition(0, [2], topic_id=again)), count=2)
        kinds = [line.kind for line in await found.look()]
        assert kinds[:4] == ["topic_config", "leadership_removed", "topic_config_removed", "topic_removed"]
        assert kinds[4:] == ["topic", "assignment", "leadership"]
        assert found.image().topics["orders"][0] == str(again)


async def test_configurations_features_and_moves_are_recorded() -> None:
    quorum = cluster()
    async with follow_quorum(quorum) as found:
        quorum.append(
            logs.batch(8, logs.config(4, "", "min.insync.replicas", "2"), logs.config(4, "1", "x", "y")), count=2
        )
        quorum.append(logs.batch(10, logs.feature("metadata.version", 25)))
        quorum.append(logs.kraft_version(11, 1))
        quorum.append(logs.batch(12, logs.partition_change(0, replicas=[3, 1, 2], adding=[3], removing=[1, 2])))
        quorum.append(logs.batch(13, logs.unregister(3)))
        assert list_recorded(await found.look()) == [
            ("broker_config", "configs_changed"), ("features", "features_changed"), ("features", "features_changed"),
            ("assignment", "reassignments_requested"), ("leadership", "reassignments_requested"),
        ]  # fmt: skip
        image = found.image()
        assert image.features == {
            "finalized_features": {"kraft.version": 1, "metadata.version": 25},
            "features_epoch": 0,
        }
        assert image.broker_configs == {None: {"config": {"min.insync.replicas": "2"}}}
        assert image.assignments["orders", 0]["removing"] == [1, 2]
        quorum.append(
            logs.batch(14, logs.config(4, "", "min.insync.replicas", None), logs.feature("kraft.version", 0)), count=2
        )
        assert [line.kind for line in await found.look()] == ["features", "broker_config_removed"]


async def test_records_of_kinds_that_only_later_releases_know_are_left_out_and_counted() -> None:
    quorum = cluster()
    async with follow_quorum(quorum) as found:
        quorum.append(logs.batch(8, logs.UNKNOWN, logs.partition_change(0, isr=[1]), logs.UNKNOWN), count=3)
        assert list_recorded(await found.look()) == [("leadership", "alter_partition")]
        assert found.looker.events.records_unknown == 2


async def test_where_the_log_begins_later_its_snapshot_comes_first_piece_by_piece() -> None:
    quorum = Quorum(start=100, epoch=4)
    content = logs.batch(0, logs.register(1, 1, is_fenced=False), logs.topic(), logs.partition(0, [1]), time_ms=900)
    quorum.snapshot = (100, 4, content)
    quorum.log = [(100, 100, logs.batch(100, logs.NO_OP, epoch=4))]
    quorum.decided = 101
    async with follow_quorum(quorum) as found:
        assert {(line.controller_id, line.controller_epoch) for line in found.lines()} == {(101, 4)}
        assert set(found.image().topics) == {"orders"}
        assert quorum.fetched_from[:2] == [0, 100]


async def test_what_a_snapshot_has_in_place_of_a_log_that_was_not_read_in_time_is_unobserved() -> None:
    quorum = cluster()
    async with follow_quorum(quorum) as found:
        quorum.snapshot = (
            50,
            1,
            logs.batch(0, logs.register(1, 1, is_fenced=False), logs.topic(), logs.partition(0, [2])),
        )
        quorum.start, quorum.log, quorum.decided = 50, [(50, 50, logs.batch(50, logs.NO_OP))], 51
        assert {cause for _, cause in list_recorded(await found.look())} == {"unobserved"}
        assert set(found.image().brokers) == {1}
        quorum.append(logs.batch(51, logs.fence(1)))
        assert list_recorded(await found.look()) == [("broker_removed", "broker_failed")]


async def test_a_leader_whose_first_record_is_in_a_snapshots_place_is_the_controller() -> None:
    quorum = cluster()
    async with follow_quorum(quorum) as found:
        quorum.leader, quorum.epoch = 102, 2
        quorum.snapshot = (50, 2, logs.batch(0, logs.register(1, 1, is_fenced=False)))
        quorum.start, quorum.log, quorum.decided = 50, [(50, 50, logs.batch(50, logs.NO_OP, epoch=2))], 51
        with pytest.raises(OutOfSight, match="another controller leads the quorum"):
            await found.look()
        lines = await found.look()
        assert [line.kind for line in lines[:2]] == ["controller_resigned", "controller_elected"]
        assert {(line.controller_id, line.controller_epoch) for line in lines[1:]} == {(102, 2)}
        assert await found.looker.read_role() == Controller(id=BrokerId(102), epoch=ControllerEpoch(2))


async def test_a_killed_recorder_goes_on_after_each_record_without_loss_and_without_one_twice() -> None:
    quorum = cluster()
    async with follow_quorum(quorum) as whole:
        began = len(whole.journal.lines)
        quorum.append(logs.batch(8, logs.fence(1), logs.partition_change(0, isr=[2], leader=2), time_ms=2_000), count=2)
        quorum.append(logs.batch(10, logs.unfence(1), time_ms=2_100))
        quorum.append(logs.batch(11, logs.partition_change(0, isr=[2, 1]), time_ms=2_200))
        await whole.look()
        expected = whole.lines()[began:]
        for kept in range(1, len(expected)):
            journal = MemoryJournal()
            journal.lines = whole.journal.lines[: began + kept]
            ended = make_ended(whole.lines()[: began + kept])
            journal._encoder = ended.make_encoder()
            assert ended.last_event is not None
            looker = looker_of(quorum, since=(ended.last_event.position, 101, 1))
            found = Followed(looker, journal, ended)
            await found.look()
            looker.close()
            later = [(line.kind, line.cause, line.event_time_us) for line in found.lines()[began:]]
            wanted = [(line.kind, line.cause, line.event_time_us) for line in expected]
            assert [each for each in later if not each[0].startswith("snapshot") and each[1] != "journal_due"] == wanted
            assert found.image() == whole.image()


async def test_a_journal_whose_end_is_in_a_snapshots_place_is_begun_anew() -> None:
    quorum = Quorum(start=100, epoch=4)
    quorum.snapshot = (100, 4, logs.batch(0, logs.register(1, 1, is_fenced=False)))
    quorum.log, quorum.decided = [(100, 100, logs.batch(100, logs.NO_OP, epoch=4))], 101
    async with serve(quorum):
        looker = looker_of(quorum, since=(42, 101, 4))
        found = Followed(looker, MemoryJournal())
        await found.look()
        assert list_recorded(found.lines()) == [("recorder_started", "recorder_started")]
        looker.close()


async def test_a_leader_that_writes_is_alive_by_its_own_time_also_in_what_is_read_late() -> None:
    quorum = cluster()
    async with follow_quorum(quorum) as found:
        for number in range(100):
            quorum.append(logs.batch(8 + number, logs.NO_OP, time_ms=1_500 + number * 500))
        alive = await found.look()
        assert {line.kind for line in alive} == {"controller_alive"}
        assert [line.event_time_us // 1_000_000 for line in alive] == [11, 21, 31, 41, 51]


@pytest.mark.parametrize(
    ("code", "error"),
    [
        (ErrorCode.not_leader_or_follower, OutOfSight),
        (ErrorCode.unknown_server_error, OutOfSight),
        (ErrorCode.cluster_authorization_failed, LogRefused),
        (ErrorCode.inconsistent_cluster_id, AnotherCluster),
    ],
)
async def test_what_a_leader_refuses_says_by_its_type_what_to_do(code: ErrorCode, error: type[Exception]) -> None:
    quorum = cluster()
    async with follow_quorum(quorum) as found:
        quorum.refusals.append(code)
        with pytest.raises(error):
            await found.look()
        quorum.append(logs.batch(8, logs.partition_change(0, isr=[1])))
        if error is OutOfSight:
            assert list_recorded(await found.look()) == [("leadership", "alter_partition")]


async def test_a_quorum_that_forgot_what_it_had_decided_is_read_again() -> None:
    quorum = cluster()
    async with follow_quorum(quorum) as found:
        quorum.log.pop()
        quorum.decided, quorum.diverging = quorum.end, (1, 6)
        lines = await found.look()
        assert {cause for _, cause in list_recorded(lines)} == {"unobserved"}
        assert found.image().topics == {}


async def test_brokers_that_do_not_say_who_leads_or_where_are_told_apart_from_those_that_cannot_now() -> None:
    quorum = cluster()
    async with serve(quorum):
        log = log_of(quorum)
        quorum.leader = -1
        with pytest.raises(OutOfSight):
            await log.fetch(0)
        quorum.leader, quorum.tells_listeners = 101, False
        with pytest.raises(LogRefused, match=r"older than Kafka 3\.9"):
            await log.fetch(0)
        quorum.quorum_code = ErrorCode.cluster_authorization_failed
        with pytest.raises(LogRefused, match="allow the user Describe"):
            await log.fetch(0)


async def test_a_leader_that_votes_no_more_leads_until_another_does() -> None:
    quorum = cluster()
    async with follow_quorum(quorum) as found:
        quorum.refusals.append(ErrorCode.not_leader_or_follower)
        quorum.voters = (102,)
        for _ in range(2):
            with pytest.raises(OutOfSight):
                await found.look()
        quorum.leader, quorum.epoch = 102, 2
        quorum.append(logs.batch(8, logs.partition_change(0, isr=[1])))
        assert list_recorded(await found.look()) == [("leadership", "alter_partition")]


async def test_it_gives_up_when_the_quorum_stays_away() -> None:
    quorum = cluster()
    async with serve(quorum):
        looker = looker_of(quorum, timeout_ms=0)
    with pytest.raises(OutOfSight):
        await looker.look()
    with pytest.raises(ClusterLost, match="--bootstrap-timeout-ms"):
        await looker.regain_sight()


async def test_its_metrics_tell_up_to_where_the_log_is_followed() -> None:
    quorum = cluster()
    async with follow_quorum(quorum) as found:
        registry = CollectorRegistry()
        registry.register(RecorderMetrics(found.recorder))
        assert registry.get_sample_value("kontroller_recorder_polls") == 0
        assert registry.get_sample_value("kontroller_recorder_log_offset") == found.looker.position
