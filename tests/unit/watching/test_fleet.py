"""Clusters that are watched together: the alarms of each, their times, and a restart."""

from collections.abc import Sequence

from kontroller.history.alarms.records import Rules
from kontroller.history.watching import checkpoint
from kontroller.history.watching.board import Board, Notice
from kontroller.history.watching.checkpoint import Kept
from kontroller.history.watching.fleet import MOST_CLUSTERS, Fleet
from kontroller.history.watching.journals.journal import Chunk
from tests.unit.watching.lines import Clock, alive, lead, line, snapshot

RULES = Rules(leaderless_after_us=30_000_000, under_min_isr_after_us=30_000_000, min_isr=1)
DOWN = {"topic": "t", "partition": 0, "delta": {"leader": -1, "isr": [1]}}


class Watched:
    """A fleet with two journals, and its alarms."""

    def __init__(self, kept: Kept | None = None) -> None:
        self.clock, self.told = Clock(), list[str]()
        self.board = Board([] if kept is None else kept.alarms())
        self.board.tell(self._note)
        self.fleet = Fleet(RULES, self.board, ["a", "b"], wall=self.clock, monotonic=self.clock)
        for cluster_id, stamp_us in ({} if kept is None else kept.clusters).items():
            self.fleet.expect(cluster_id, stamp_us)

    def _note(self, notice: Notice) -> None:
        self.told.append(f"{notice.key.cluster_id} {notice.alarm.problem} {notice.alarm.state}")

    def read(self, *lines: bytes, journal: str = "a", is_at_end: bool = True) -> None:
        self.fleet.take(journal, Chunk(list(lines), is_at_end))

    def wait(self, seconds: int) -> None:
        for _ in range(seconds):
            self.clock.now_s += 1
            self.fleet.pass_time()

    def new(self) -> list[str]:
        told, self.told = self.told, []
        return told

    def began(self) -> Sequence[int]:
        return [standing.alarm.began_us for standing in self.board.standing.values()]


def live() -> Watched:
    watched = Watched()
    watched.read(journal="b")
    watched.read(alive(0, 0))
    watched.wait(1)
    return watched


def test_trouble_is_told_of_though_nothing_comes_after_it() -> None:
    watched = live()
    watched.read(lead(1, 1, -1))
    watched.wait(30)
    assert watched.new() == []
    watched.wait(1)
    assert watched.new() == ["c1 leaderless raised", "c1 silent raised"]
    watched.read(lead(2, 40, 1))
    assert watched.new() == ["c1 silent cleared", "c1 leaderless cleared"]


def test_time_is_not_counted_by_the_record_and_by_the_clock_as_well() -> None:
    watched = live()
    watched.read(lead(1, 1, -1))
    for second in range(2, 31):
        watched.clock.now_s += 0.9
        watched.read(alive(second, second))
        watched.clock.now_s += 0.1
        watched.fleet.pass_time()
    assert watched.new() == []
    watched.wait(5)
    assert watched.new() == ["c1 leaderless raised"]


def test_what_came_and_went_before_the_watch_began_is_not_told_and_what_stands_is() -> None:
    watched = Watched()
    watched.read(journal="b")
    watched.read(alive(0, 0), lead(1, 5, -1), *(alive(seq, 10.0 * seq) for seq in range(2, 8)), is_at_end=False)
    watched.wait(300)
    assert watched.new() == []
    watched.read(lead(8, 80, 1), lead(9, 90, -1, topic="u"), *(alive(seq, 10.0 * seq) for seq in range(10, 16)))
    assert watched.new() == []
    watched.wait(1)
    assert watched.new() == ["c1 leaderless raised"]
    assert [key.topic for key in watched.board.standing] == ["u"]


def test_a_journal_without_end_holds_up_the_clusters_of_others_at_the_start_alone() -> None:
    watched = Watched()
    watched.read(alive(0, 0, cluster="slow"), journal="b", is_at_end=False)
    watched.read(alive(0, 0), lead(1, 0, -1))
    watched.wait(60)
    assert watched.new() == []
    watched.wait(1)
    assert sorted(watched.new()) == ["c1 leaderless raised", "c1 silent raised"]
    watched.read(lead(2, 70, 1), lead(3, 71, -1))
    watched.wait(31)
    assert watched.new() == [
        "c1 silent cleared",
        "c1 leaderless cleared",
        "c1 leaderless raised",
        "c1 silent raised",
    ]


def test_an_older_term_that_is_read_first_is_not_told_of() -> None:
    watched = Watched()
    watched.read(lead(0, 0, -1), *(alive(seq, 10.0 * seq) for seq in range(1, 6)), journal="a")
    watched.wait(20)
    watched.read(line(0, 70, "controller_elected", epoch=2), *snapshot(1, 70, epoch=2), journal="b")
    watched.wait(10)
    assert watched.new() == []


def test_a_journal_that_cannot_be_read_is_silence() -> None:
    watched = live()
    watched.fleet.cannot_read("a")
    watched.wait(31)
    assert watched.new() == ["c1 silent raised"]


def test_a_controller_that_takes_over_in_another_journal_ends_the_silence() -> None:
    watched = live()
    watched.wait(31)
    watched.read(line(0, -900, "controller_elected", epoch=2), *snapshot(1, -900, DOWN, epoch=2), journal="b")
    assert watched.new() == ["c1 silent raised", "c1 silent cleared"]
    watched.wait(31)
    assert watched.new() == ["c1 leaderless raised", "c1 silent raised"]


def test_a_watch_that_stood_still_for_an_hour_has_waited_one_interval() -> None:
    watched = live()
    watched.read(lead(1, 1, -1))
    watched.clock.now_s += 3600
    watched.fleet.pass_time()
    assert watched.new() == []
    assert watched.fleet.clusters["c1"].time.waited_us == 10_000_000


def test_requests_do_not_hide_the_silence_of_their_controller() -> None:
    watched = live()
    for second in range(1, 32):
        watched.read(line(second, second, "request", request={"api": "CreateTopics", "outcome": "refused"}))
        watched.wait(1)
    assert watched.new() == ["c1 silent raised"]


def test_a_restart_repeats_nothing_forgets_nothing_and_keeps_when_it_began() -> None:
    before = live()
    before.read(lead(1, 1, -1), lead(2, 1, -1, topic="u"))
    before.wait(31)
    assert len(before.new()) == 3
    kept = checkpoint.take_checkpoint(before.fleet, before.board)
    after = Watched(Kept.model_validate_json(kept.model_dump_json()))
    after.read(journal="b")
    # The journal is read from a snapshot that is younger than the trouble, and one of the two topics is well again.
    after.read(*snapshot(90, 600, DOWN), alive(93, 601))
    assert after.new() == []
    began = after.began()
    after.wait(1)
    assert after.new() == ["c1 leaderless cleared", "c1 silent cleared"]
    assert list(after.began()) == [began[0]] == [before.began()[0]]


def test_a_cluster_that_is_known_from_before_and_does_not_come_is_silent_and_its_alarms_stand() -> None:
    before = live()
    before.read(lead(1, 1, -1), *(alive(seq, 10.0 * seq) for seq in range(2, 6)))
    before.wait(1)
    assert before.new() == ["c1 leaderless raised"]
    after = Watched(checkpoint.take_checkpoint(before.fleet, before.board))
    after.fleet.cannot_read("a")
    after.fleet.cannot_read("b")
    after.wait(31)
    assert after.new() == ["c1 silent raised"]
    assert len(after.board.standing) == 2


def test_lines_that_say_nothing_are_counted_and_disturb_no_other() -> None:
    watched = live()
    watched.read(b"no json", b"", line(1, 1, "leadership"), b"\xff\x00", lead(1, 1, -1))
    assert watched.fleet.unreadable == {"a": 4, "b": 0}
    watched.wait(31)
    assert "c1 leaderless raised" in watched.new()


def test_there_is_an_end_to_the_clusters_that_lines_can_make() -> None:
    watched = live()
    watched.read(*(alive(0, 0, cluster=f"made-up-{number}") for number in range(2 * MOST_CLUSTERS)))
    assert len(watched.fleet.clusters) == MOST_CLUSTERS
    watched.read(lead(1, 1, -1))
    watched.wait(31)
    assert "c1 leaderless raised" in watched.new()


def test_a_configuration_of_one_broker_is_not_that_of_all() -> None:
    watched = live()
    two = {"config": {"min.insync.replicas": "2"}}
    watched.read(lead(1, 1, 1), line(2, 2, "broker_config", broker=2, delta=two))
    watched.wait(29)
    assert watched.new() == []
    watched.read(line(3, 32, "broker_config", delta=two))
    watched.wait(31)
    assert "c1 under_min_isr raised" in watched.new()


def test_a_new_cluster_is_the_one_that_its_journal_names_later() -> None:
    watched = Watched()
    watched.read(journal="b")
    watched.read(line(0, 0, "controller_elected", cluster=None))
    watched.wait(31)
    assert watched.new() == [" silent raised"]
    watched.read(alive(1, 40))
    assert watched.new() == [" silent cleared"]
    assert list(checkpoint.take_checkpoint(watched.fleet, watched.board).clusters) == ["c1"]
    watched.wait(31)
    assert watched.new() == ["c1 silent raised"]


def test_a_later_controller_in_another_journal_names_a_new_cluster() -> None:
    watched = Watched()
    watched.read(line(0, 0, "controller_elected", cluster=None))
    watched.read(alive(0, 10, epoch=2), journal="b")
    watched.wait(31)
    assert watched.new() == ["c1 silent raised"]


def test_a_new_cluster_that_got_its_id_during_a_restart_has_no_alarm_of_its_own() -> None:
    before = Watched()
    before.read(journal="b")
    before.read(line(0, 0, "controller_elected", cluster=None))
    before.wait(31)
    after = Watched(checkpoint.take_checkpoint(before.fleet, before.board))
    after.read(*snapshot(1, 40), journal="a")
    assert after.new() == [" silent cleared"]
    assert list(after.fleet.clusters) == ["c1"]


def test_a_recorder_that_lost_its_directory_is_followed_from_its_new_beginning() -> None:
    watched = live()
    gone, config = DOWN | {"topic": "gone"}, {"config": {"min.insync.replicas": "2"}}
    watched.read(*snapshot(5000, 1, DOWN, gone, {"topic": "u", "partition": 0, "delta": {"leader": 1, "isr": [1]}}))
    watched.read(line(5010, 2, "broker_config", delta=config), alive(5011, 2))
    watched.wait(31)
    assert sorted(watched.new()) == [
        "c1 leaderless raised",
        "c1 leaderless raised",
        "c1 silent raised",
        "c1 under_min_isr raised",
    ]
    begun = [line(0, 40, "recorder_started"), *snapshot(1, 40, DOWN)]
    watched.read(begun[0])
    assert watched.new() == ["c1 silent cleared"]
    watched.read(*begun[1:])
    assert sorted(watched.new()) == ["c1 leaderless cleared", "c1 under_min_isr cleared"]
    assert [key.topic for key in watched.board.standing] == ["t"]
    watched.read(lead(4, 45, 1), *begun, lead(4, 45, 1))
    assert watched.new() == ["c1 leaderless cleared"]
    watched.wait(30)
    assert watched.new() == []


def test_a_recorder_that_started_before_the_newest_record_is_not_a_new_beginning() -> None:
    watched = live()
    watched.read(line(1, 1, "recorder_started"), *snapshot(2, 1), lead(4, 5, 1))
    watched.read(line(1, 1, "recorder_started"), *snapshot(2, 1, DOWN))
    watched.wait(31)
    assert watched.new() == ["c1 silent raised"]
