"""`kontroller history at` and `diff`: a cluster as it was at a moment, by its journals alone."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from controller_core.journal.records import checksum
from kontroller.command_line import main
from kontroller.history.past_state import SeveralClusters, find_differences, read_past
from tests.unit.watching.lines import START_US, alive, line

LED: dict[str, Any] = {
    "leader": 1,
    "isr": [1, 2],
    "leader_epoch": 0,
    "leader_recovery_state": 0,
    "state_controller_epoch": 1,
    "partition_epoch": 0,
}
ASSIGNED: dict[str, Any] = {"replicas": [1, 2], "adding": [], "removing": [], "origin_order": []}
YEAR_S = 366 * 86_400


def make_fields(name: str, partition: int | None = 0, **delta: Any) -> dict[str, Any]:
    return {"topic": name, "topic_id": "id", "delta": delta} | ({} if partition is None else {"partition": partition})


def make_lines(cluster: str = "c1") -> list[bytes]:
    """A topic, its leader's loss at 100 s, its new leader at 110 s, and a topic that is created at 120 s; later silence."""

    def say(seq: int, at: float, kind: str, **fields: Any) -> bytes:
        return line(seq, at, kind, cluster=cluster, **fields)

    texts = [
        "topic|orders|id|7", "assignment|orders|0|1,2|||", "leadership|orders|0|1|1,2|0|0|1|0",
    ]  # fmt: skip
    return [
        say(0, 0, "controller_elected", alive_interval_ms=10_000),
        say(1, 1, "snapshot_started"),
        say(2, 1, "topic", snapshot=True, **make_fields("orders", None, czxid=7)),
        say(3, 1, "assignment", snapshot=True, **make_fields("orders", **ASSIGNED)),
        say(4, 1, "leadership", snapshot=True, **make_fields("orders", **LED)),
        say(5, 1, "snapshot_ended", entries=3, checksum=checksum(texts)),
        *(alive(seq, 10.0 * (seq - 5), cluster=cluster) for seq in range(6, 15)),
        say(15, 100, "leadership", **make_fields("orders", leader=-1, leader_epoch=1)),
        say(16, 105 + 9_000 * YEAR_S, "request", request={"api": "ElectLeaders", "outcome": "refused"}),
        say(17, 110, "leadership", **make_fields("orders", leader=2, isr=[2], leader_epoch=2)),
        say(18, 111 + 5 * YEAR_S, "controller_alive"),  # by a wrong clock
        say(19, 120, "topic", **make_fields("others", None, czxid=9)),
        say(20, 120, "topic_config", **make_fields("others", None, config={"retention.ms": "5"})),
        say(21, 1000, "controller_alive"),
        say(22, 1010, "controller_alive"),
    ]


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    return write(tmp_path / "controller-1", make_lines())


def write(folder: Path, lines: list[bytes]) -> Path:
    folder.mkdir(parents=True)
    (folder / f"{1:020}-{0:020}.jsonl").write_bytes(b"".join(each + b"\n" for each in lines))
    return folder


def count_micros(seconds: float) -> int:
    return START_US + round(seconds * 1_000_000)


@pytest.mark.parametrize(("seconds", "leader"), [(1, 1), (99.9, 1), (100, -1), (109.9, -1), (110, 2), (119, 2)])
def test_the_state_is_that_of_the_last_record_before(journal: Path, seconds: float, leader: int) -> None:
    past = read_past(count_micros(seconds), journal)
    assert past.is_known
    assert past.things is not None
    assert past.things["partition orders-0"]["leader"] == leader


@pytest.mark.parametrize(
    ("seconds", "why"),
    [
        (-1, "these journals have no earlier record, they begin at 2023-11-14 22:13:20 UTC"),
        (0.5, "no snapshot, or records are missing, before 2023-11-14 22:13:20 UTC"),
        (500, "nothing was recorded from 2023-11-14 22:15:20 UTC to 2023-11-14 22:30:00 UTC"),
        (1011, "the journals end at 2023-11-14 22:30:10 UTC"),
    ],
)
def test_what_is_not_known_is_said_with_the_reason(journal: Path, seconds: float, why: str) -> None:
    past = read_past(count_micros(seconds), journal)
    assert not past.is_known
    assert past.why_unknown == why


def leave_out_numbers(lines: list[bytes]) -> list[bytes]:
    return [*lines[:15], *lines[19:]]


def drop_and_say_so(lines: list[bytes]) -> list[bytes]:
    return [*lines[:15], line(15, 112, "gap", dropped=4), *lines[19:]]


def end_the_term(lines: list[bytes]) -> list[bytes]:
    return [*lines[:15], line(0, 120, "controller_elected", epoch=2, alive_interval_ms=10_000)]


def resign(lines: list[bytes]) -> list[bytes]:
    return [*lines[:15], line(15, 90, "controller_resigned", reason="stopped"), *end_the_term(lines)[15:]]


def start_a_recorder(lines: list[bytes]) -> list[bytes]:
    return [*lines[:15], line(15, 120, "recorder_started", alive_interval_ms=10_000, inferred=True)]


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (leave_out_numbers, "records are missing"),
        (drop_and_say_so, "records are missing"),
        (end_the_term, "between two terms nothing was recorded"),
        (resign, "between two terms nothing was recorded"),
        (start_a_recorder, "no recorder was running"),
    ],
)
def test_nothing_is_known_after_the_last_record_before_one_that_is_missing(
    tmp_path: Path, change: Callable[[list[bytes]], list[bytes]], why: str
) -> None:
    folder = write(tmp_path / "controller-1", change(make_lines()))
    assert read_past(count_micros(89), folder).is_known
    assert read_past(count_micros(90), folder).is_known
    past = read_past(count_micros(105), folder)
    assert not past.is_known
    assert past.why_unknown == f"{why} from 2023-11-14 22:14:50 UTC to 2023-11-14 22:15:20 UTC"
    assert past.things is not None
    assert past.things["partition orders-0"]["leader"] == 1


def test_a_difference_names_the_fields_that_changed(journal: Path) -> None:
    before, after = (read_past(count_micros(seconds), journal).things for seconds in (50, 121))
    assert before is not None
    assert after is not None
    found = {each.name: (each.before, each.after) for each in find_differences(before, after)}
    assert found == {
        "partition orders-0": (
            {"leader": 1, "isr": [1, 2], "leader_epoch": 0},
            {"leader": 2, "isr": [2], "leader_epoch": 2},
        ),
        "topic others": (None, {"topic_id": "id"}),
        "configuration of topic others": (None, {"retention.ms": "5"}),
    }


def test_journals_of_several_clusters_are_refused(journal: Path, tmp_path: Path) -> None:
    other = write(
        tmp_path / "other",
        [each.replace(b'"controller_epoch":1', b'"controller_epoch":2') for each in make_lines("c2")],
    )
    with pytest.raises(SeveralClusters, match="c1 and c2"):
        read_past(count_micros(50), journal, other)


def run_history(journal: Path, *options: str) -> Any:
    return CliRunner().invoke(main, ["history", *options, "--journal", str(journal)])


def test_a_topic_that_never_existed_is_named(journal: Path) -> None:
    shown = run_history(journal, "at", "2023-11-14T22:15:15", "--topic", "ordesr", "--topic", "orders")
    assert shown.exit_code == 1
    assert shown.stderr == "kontroller: no topic ordesr existed at 2023-11-14 22:15:15\n"
    assert "partition orders-0" in shown.stdout
    ended = run_history(journal, "diff", "2023-11-14T22:14:00", "2023-11-14T22:15:15", "--topic", "ordesr")
    assert (ended.exit_code, ended.stderr) == (1, "kontroller: no topic ordesr existed at either moment\n")


def test_a_topic_of_only_one_moment_is_a_difference(journal: Path) -> None:
    ended = run_history(journal, "diff", "2023-11-14T22:14:00", "2023-11-14T22:15:20", "--topic", "others")
    assert ended.exit_code == 0
    assert "topic others" in ended.stdout


def test_differences_of_the_last_known_states_are_shown_with_the_reason(journal: Path) -> None:
    ended = run_history(journal, "diff", "2023-11-14T22:14:00", "2023-11-14T22:20:00")
    assert ended.exit_code == 1
    assert "leader=2 isr=2" in ended.stdout
    assert "the state at 2023-11-14 22:20:00 is not known" in ended.stderr


def test_nothing_is_compared_with_a_moment_before_any_known_state(journal: Path) -> None:
    ended = run_history(journal, "diff", "2023-11-14T22:00:00", "2023-11-14T22:14:00")
    assert (ended.exit_code, "orders" in ended.stdout) == (1, False)


def test_moments_in_the_wrong_order_are_refused(journal: Path) -> None:
    ended = run_history(journal, "diff", "2023-11-15", "2023-11-14")
    assert ended.exit_code == 2
    assert "2023-11-15 00:00:00 is later than 2023-11-14 00:00:00: swap them" in ended.stderr


def test_the_commands_show_it_as_a_table_and_as_json(journal: Path) -> None:
    shown = run_history(journal, "at", "2023-11-14T22:15:15", "--topic", "orders")
    assert shown.exit_code == 0, shown.output
    assert "partition orders-0" in shown.stdout
    assert "leader=2 isr=2" in shown.stdout
    told = json.loads(
        run_history(journal, "diff", "2023-11-14T22:14:00", "2023-11-14T22:15:15", "--output", "json").stdout
    )
    assert told == [
        {
            "name": "partition orders-0",
            "before": {"leader": 1, "isr": [1, 2], "leader_epoch": 0},
            "after": {"leader": 2, "isr": [2], "leader_epoch": 2},
        }
    ]
    late = run_history(journal, "at", "2023-11-14T22:20:00")
    assert late.exit_code == 1
    assert "kontroller: the state at 2023-11-14 22:20:00 is not known: nothing was recorded from" in late.stderr
    assert CliRunner().invoke(main, ["history", "at", "2023-11-14"]).exit_code == 2
