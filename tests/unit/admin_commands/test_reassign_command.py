"""`kontroller reassign`: the limits and moves that it leaves or removes, and its output, for every end of a move."""

from collections.abc import Iterator

import pytest
import yaml

from controller_core.client.errors import AdminError, OutcomeUnknown, PartlyRefused, Refused, Unreachable
from controller_core.client.log_dirs.placing import Place, Placement
from controller_core.model.ids import BrokerId, PartitionReplica
from controller_core.wire.messages import ErrorCode
from tests.unit.admin_commands.simulated_admin import (
    ORDERS,
    OTHER,
    SimulatedCluster,
    document,
    kontroller,
    make_move,
    one_line,
    plan,
    replace_cluster,
    replicas,
)

*PLAN, THERE = plan({ORDERS: [2, 3]})


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Iterator[SimulatedCluster]:
    with replace_cluster(monkeypatch) as simulated:
        yield simulated


def refuse_partition(code: ErrorCode = ErrorCode.invalid_replica_assignment) -> PartlyRefused:
    return PartlyRefused((Refused("orders-0", code, "there is no broker 3"),), "nothing moves")


# Throttles


@pytest.mark.parametrize("others", [{OTHER: make_move([1], [2])}, {ORDERS: make_move([1, 2], [1, 3])}])
@pytest.mark.parametrize("command", ["verify", "cancel"])
def test_a_throttle_stays_as_long_as_anything_moves_in_the_cluster(
    cluster: SimulatedCluster, others: dict[object, object], command: str
) -> None:
    """An old plan, or another one on the same brokers, must not take the rates of a live move away."""
    cluster.moves.update(others)  # type: ignore[arg-type]  # partitions and moves
    if command == "cancel":
        cluster.moves |= {ORDERS: make_move([1, 2], [2, 3]), OTHER: make_move([1], [2])}
    cluster.is_throttled = True
    ended = kontroller("reassign", command, *PLAN, stdin=THERE)
    assert cluster.is_throttled
    assert "unthrottle" not in cluster.asked
    assert ended.exit_code == (1 if command == "verify" else 0), ended.output
    assert "moving: verify again when nothing moves" in one_line(ended)


@pytest.mark.parametrize("command", ["verify", "cancel"])
def test_a_throttle_goes_when_nothing_moves_any_more_unless_it_is_to_be_preserved(
    cluster: SimulatedCluster, command: str
) -> None:
    cluster.present[ORDERS] = replicas(2, 3)
    cluster.is_throttled = True
    assert kontroller("reassign", command, *PLAN, "--preserve-throttles", stdin=THERE).exit_code == 0
    assert cluster.is_throttled
    ended = kontroller("reassign", command, *PLAN, stdin=THERE)
    assert (ended.exit_code, cluster.is_throttled, ended.stderr) == (0, False, "")


def test_a_move_in_progress_keeps_its_throttle(cluster: SimulatedCluster) -> None:
    cluster.moves[ORDERS] = make_move([1, 2], [2, 3])
    cluster.is_throttled = True
    ended = kontroller("reassign", "verify", *PLAN, stdin=THERE)
    assert (ended.exit_code, cluster.is_throttled, ended.stderr) == (3, True, "")


@pytest.mark.parametrize("command", ["verify", "cancel"])
def test_what_was_done_is_printed_where_a_throttle_cannot_be_taken_away(
    cluster: SimulatedCluster, command: str
) -> None:
    if command == "verify":
        cluster.present[ORDERS] = replicas(2, 3)
    else:
        cluster.moves[ORDERS] = make_move([1, 2], [2, 3])
    said = "throttles may stay: broker 3: nobody answers"
    cluster.fails["unthrottle"] = [AdminError(said)]
    ended = kontroller("reassign", command, *PLAN, "-o", "json", stdin=THERE)
    assert ended.exit_code == 1
    (found,) = document(ended)
    assert found["result"] == (1 if command == "verify" else "cancelled")
    assert one_line(ended) == f"kontroller: {said}"
    if command == "cancel":
        cluster.moves[ORDERS] = make_move([1, 2], [2, 3])
    cluster.fails["list"] = [Unreachable("nobody answers")]
    ended = kontroller("reassign", command, *PLAN, "-o", "json", stdin=THERE)
    assert (ended.exit_code, len(document(ended))) == (1, 1)
    assert one_line(ended).endswith("the moves could not be listed: nobody answers: verify again")


def test_the_throttle_of_a_wait_goes_at_its_end_whether_that_is_good_or_bad(cluster: SimulatedCluster) -> None:
    ended = kontroller("reassign", "start", *PLAN, "--throttle", "1000", stdin=THERE)
    assert (ended.exit_code, cluster.is_throttled) == (0, False)
    cluster.ends_by_itself = False
    *other, there = plan({ORDERS: [1, 3]})
    ended = kontroller("reassign", "start", *other, "--throttle", "1000", stdin=there)
    assert (ended.exit_code, cluster.is_throttled) == (1, False)
    assert "1 of 1 partitions are not at their target, and do not move there: orders-0" in ended.stderr


def test_the_throttle_of_a_wait_stays_for_what_else_moves(cluster: SimulatedCluster) -> None:
    cluster.moves[OTHER] = make_move([1], [2])
    ended = kontroller("reassign", "start", *PLAN, "--throttle", "1000", "--additional", stdin=THERE)
    assert (ended.exit_code, cluster.is_throttled) == (0, True)
    assert ended.stdout.splitlines()[-1] == "all 1 partitions are at their targets"
    assert "any throttles stay, because other-0 is moving" in ended.stderr


@pytest.mark.parametrize("call", ["throttle", "start"])
def test_a_move_that_cannot_begin_leaves_no_throttle(cluster: SimulatedCluster, call: str) -> None:
    cluster.fails[call] = [refuse_partition()]
    ended = kontroller("reassign", "start", *PLAN, "--throttle", "1000", "-o", "json", stdin=THERE)
    assert (ended.exit_code, cluster.is_throttled) == (1, False)
    assert document(ended)["state"] == "refused"
    assert ended.stderr.splitlines()[-1] == (
        "kontroller: orders-0: there is no broker 3 (INVALID_REPLICA_ASSIGNMENT 39); nothing moves"
    )


def test_a_move_that_may_have_begun_keeps_its_throttle(cluster: SimulatedCluster) -> None:
    cluster.fails["start"] = [OutcomeUnknown("h:9092 did not answer: it may have been done; describe it first")]
    ended = kontroller("reassign", "start", *PLAN, "--throttle", "1000", "-o", "yaml", stdin=THERE)
    assert (ended.exit_code, cluster.is_throttled) == (1, True)
    assert yaml.safe_load(ended.stdout)["state"] == "unknown"
    assert "it may have been done" in ended.stderr
    assert "the move goes on if it has begun: `kontroller reassign verify`" in ended.stderr


@pytest.mark.parametrize("owns_throttles", [True, False])
@pytest.mark.parametrize(
    ("begun", "state", "said"),
    [(1, "begun", "the move goes on without this command"), (None, "unknown", "the move goes on if it has begun")],
)
def test_a_move_that_is_partly_refused_keeps_its_throttle(
    cluster: SimulatedCluster, owns_throttles: bool, begun: int | None, state: str, said: str
) -> None:
    cluster.owns_throttles = owns_throttles
    refused = Refused("other-0", ErrorCode.invalid_replica_assignment, "there is no broker 9")
    cluster.fails["start"] = [PartlyRefused((refused,), "1 of 2 partitions have begun to move", begun=begun)]
    ended = kontroller("reassign", "start", *PLAN, "--throttle", "1000", "-o", "json", stdin=THERE)
    assert (ended.exit_code, cluster.is_throttled) == (1, True)
    assert cluster.asked[-1] == "start"
    assert document(ended)["state"] == state
    assert ended.stderr.splitlines()[-1] == (
        "kontroller: other-0: there is no broker 9 (INVALID_REPLICA_ASSIGNMENT 39); 1 of 2 partitions have begun to "
        f"move; {said}: `kontroller reassign verify` with the same plan shows its progress, and `cancel` reverts it"
    )


def test_a_throttle_of_which_it_is_not_known_whether_it_is_set_begins_no_move(cluster: SimulatedCluster) -> None:
    cluster.fails["throttle"] = [OutcomeUnknown("h:9092 did not answer: it may have been done; describe it first")]
    ended = kontroller("reassign", "start", *PLAN, "--throttle", "1000", "-o", "json", stdin=THERE)
    assert (ended.exit_code, document(ended)["state"]) == (1, "refused")
    assert "the move goes on" not in ended.stderr
    assert cluster.asked == ["list", "current", "throttle", "list", "unthrottle"]


def test_a_throttle_that_the_controller_owns_stays_in_nobody_s_way(cluster: SimulatedCluster) -> None:
    cluster.owns_throttles, cluster.absent = True, replicas(9)
    cluster.moves[OTHER] = make_move([1], [2])
    ended = kontroller("reassign", "start", *PLAN, "--throttle", "1000", "--additional", stdin=THERE)
    assert (ended.exit_code, cluster.is_throttled) == (0, False)
    assert cluster.asked[-1] == "end"
    assert "broker 9 is down: the throttle applies there from the next start" in ended.stderr
    *back, text = plan({ORDERS: [1, 2]})
    ended = kontroller("reassign", "start", *back, "--throttle", "1000", "--additional", "--no-wait", stdin=text)
    assert cluster.is_throttled
    assert "the controller removes the throttle with the move" in ended.stderr
    cluster.fails["start"] = [refuse_partition()]
    kontroller("reassign", "start", *PLAN, "--throttle", "1000", "--additional", stdin=THERE)
    assert not cluster.is_throttled


def test_a_throttle_without_an_owner_names_the_brokers_that_it_does_not_reach(
    cluster: SimulatedCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kontroller.cli.administering.reassign._RETURNS_S", 0.0)
    cluster.absent = replicas(8, 9)
    ended = kontroller("reassign", "start", *PLAN, "--throttle", "1000", stdin=THERE)
    assert (ended.exit_code, cluster.is_throttled) == (0, False)
    assert "brokers 8, 9 are down, and only the other brokers are throttled; it applies there when" in ended.stderr
    assert cluster.throttled_later in ([], [8, 9])
    *back, text = plan({ORDERS: [1, 2]})
    ended = kontroller("reassign", "start", *back, "--throttle", "1000", "--no-wait", stdin=text)
    assert "the throttle stays after the move: `kontroller reassign verify`" in ended.stderr


# Moves


def test_nothing_begins_while_something_moves_unless_it_is_to_be_additional(cluster: SimulatedCluster) -> None:
    cluster.moves |= {ORDERS: make_move([1, 2], [1, 3]), OTHER: make_move([1], [2])}
    ended = kontroller("reassign", "start", *PLAN, "--throttle", "1", stdin=THERE)
    assert ended.exit_code == 1
    assert one_line(ended) == (
        "kontroller: orders-0, other-0 are moving already: wait for that, cancel it, or give --additional to start "
        "more; nothing has begun"
    )
    assert cluster.asked == ["list"]
    assert kontroller("reassign", "start", *PLAN, "--additional", stdin=THERE).exit_code == 0
    assert "start" in cluster.asked


@pytest.mark.parametrize("trouble", ["nobody answers", "it did not happen within 500 ms: nobody answers"])
def test_a_wait_that_ends_before_its_move_says_that_the_move_goes_on(cluster: SimulatedCluster, trouble: str) -> None:
    cluster.fails["wait"] = [Unreachable(trouble)]
    ended = kontroller("reassign", "start", *PLAN, "--throttle", "1000", "-o", "json", stdin=THERE)
    assert (ended.exit_code, cluster.is_throttled) == (1, True)
    assert (document(ended)["state"], document(ended)["error"]) == ("begun", trouble)
    assert ended.stderr.splitlines()[-1] == (
        f"kontroller: {trouble}; the move goes on without this command: `kontroller reassign verify` with the same plan "
        "shows its progress, and `cancel` reverts it"
    )


def test_a_program_is_given_one_document_and_a_person_the_plan_that_takes_it_back(cluster: SimulatedCluster) -> None:
    ended = kontroller("reassign", "start", *PLAN, "-o", "json", stdin=THERE)
    assert document(ended) == {
        "state": "ended",
        "error": None,
        "before": {
            "version": 1,
            "partitions": [{"topic": "orders", "partition": 0, "replicas": [1, 2], "log_dirs": ["any", "any"]}],
        },
        "partitions": [{"topic": "orders", "partition": 0, "result": 1, "meaning": "completed"}],
    }
    assert '"replicas":[1,2]' in ended.stderr, "whatever becomes of the document, the way back is told before it begins"
    *back, text = plan({ORDERS: [1, 2]})
    ended = kontroller("reassign", "start", *back, "--no-wait", stdin=text)
    assert '"replicas":[2,3]' in ended.stdout
    assert ended.stdout.splitlines()[-1] == "the move has begun"
    assert "Current partition replica assignment" in ended.stderr
    assert "Current partition" not in ended.stdout


def test_a_cancellation_says_what_of_a_plan_moved(cluster: SimulatedCluster) -> None:
    cluster.moves[ORDERS] = make_move([1, 2], [2, 3])
    *both, text = plan({ORDERS: [2, 3], OTHER: [2]})
    ended = kontroller("reassign", "cancel", *both, "-o", "json", stdin=text)
    assert document(ended) == [
        {"topic": "orders", "partition": 0, "result": "cancelled"},
        {"topic": "other", "partition": 0, "result": "not moving"},
    ]
    assert kontroller("reassign", "cancel", *both, stdin=text).stdout == "none of these partitions moved\n"


def test_verify_shows_where_each_replica_with_a_log_directory_is(cluster: SimulatedCluster) -> None:
    cluster.present[ORDERS] = replicas(2, 3)
    found = {
        2: Placement(place=Place.COPYING, directory="/b", bytes_left=120_000_000, offset_lag=9, present="/a"),
        3: Placement(place=Place.THERE, directory="/b", present="/b"),
    }
    cluster.placements = {PartitionReplica(ORDERS, BrokerId(broker)): each for broker, each in found.items()}
    table = kontroller("reassign", "verify", *PLAN, stdin=THERE).stdout
    assert "/b on broker 2: 120.0 MB left; /b on broker 3" in table
    (entry,) = document(kontroller("reassign", "verify", *PLAN, "-o", "json", stdin=THERE))
    assert entry["log_dirs"] == [
        {"broker": 2, "log_dir": "/b", "place": "copying", "bytes_left": 120_000_000, "offset_lag": 9},
        {"broker": 3, "log_dir": "/b", "place": "there", "bytes_left": 0, "offset_lag": 0},
    ]


def test_a_plan_that_is_none_is_a_wrong_command_and_nothing_is_asked(cluster: SimulatedCluster) -> None:
    for command in ("start", "verify", "cancel"):
        ended = kontroller("reassign", command, *PLAN, stdin="{}")
        assert (ended.exit_code, cluster.asked) == (2, [])
        assert "write it as" in one_line(ended)


def test_a_command_has_its_time_for_all_that_it_asks_and_waits_as_long_as_it_takes(cluster: SimulatedCluster) -> None:
    kontroller("reassign", "start", *PLAN, "--timeout-ms", "5000", "--throttle", "9", stdin=THERE)
    given = [each for each in cluster.timeouts_ms if each is not None]
    assert len(given) == len(cluster.asked) == 7
    assert given == sorted(given, reverse=True)
    assert given[0] == 5000
    cluster.timeouts_ms.clear()
    *back, text = plan({ORDERS: [1, 2]})
    kontroller("reassign", "start", *back, stdin=text)
    assert dict(zip(cluster.asked[7:], cluster.timeouts_ms, strict=True))["wait"] is None
    assert cluster.timeouts_ms[0] == 60_000


# Files


@pytest.mark.parametrize("file", ["/dev/zero", "-"])
def test_a_file_without_an_end_is_no_plan(
    cluster: SimulatedCluster, file: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kontroller.cli.administering.connection.MAX_FILE_CHARACTERS", 1000)
    ended = kontroller("reassign", "verify", "--reassignment-json-file", file, stdin="0" * 1001)
    assert (ended.exit_code, one_line(ended)) == (
        2,
        f"kontroller: {file} has more than 1000 characters: give the partitions in several files",
    )
    assert cluster.asked == []
