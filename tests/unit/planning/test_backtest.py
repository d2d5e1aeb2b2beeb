"""`kontroller plan --backtest`: losses from a list, from a history or made up, and each refusal in one line."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from controller_planner.losses import Loss
from kontroller.command_line import main
from kontroller.planning.losses import find_losses
from kontroller.planning.snapshot_file import StoredLoads, write_snapshot
from tests.unit.planning.snapshots import make_snapshot


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Six partitions on brokers 1, 2 and 3, which need two replicas in sync. Broker 4 is empty."""
    path = tmp_path / "loads.parquet"
    write_snapshot(path, StoredLoads(snapshot=make_snapshot()))
    return path


def run(file: Path, losses: object, *arguments: str, code: int = 0) -> Any:
    asked = ["plan", "drain", "--broker", "1", "--snapshot", str(file), "--backtest", str(losses), *arguments]
    ended = CliRunner().invoke(main, asked)
    assert ended.exit_code == code, ended.output
    return ended


def write_intervals(path: Path, *rows: tuple[str, int, int, int]) -> Path:
    """Write registrations (cluster, broker, beginning and end in seconds) as a report's table."""
    times = [
        [datetime.fromtimestamp(each, UTC) for each in column]
        for column in zip(*(row[2:] for row in rows), strict=True)
    ]
    moment = pa.timestamp("us", tz="UTC")
    columns = {
        "cluster_id": pa.array([row[0] for row in rows]),
        "broker": pa.array([row[1] for row in rows], pa.int32()),
        "began": pa.array(times[0], moment),
        "ended": pa.array(times[1], moment),
    }
    pq.write_table(pa.table(columns), path)
    return path


def test_losses_of_a_list_are_shown_before_and_after_the_plan_the_worst_first(file: Path, tmp_path: Path) -> None:
    (tmp_path / "losses.json").write_text('[[4], {"brokers": [2, 1], "times": 3}]')
    lines = run(file, tmp_path / "losses.json").stdout.splitlines()
    assert [line.split("   ")[0] for line in lines[2:]] == ["LOST", "none", "1, 2", "4", "", lines[-2], lines[-1]]
    assert lines[4].split()[2:6] == ["3", "0", "6", "->"]
    assert lines[-2:] == [
        "0 -> 0 of 2 losses leave partitions without a leader",
        "1 -> 0 of 2 losses leave partitions below min.insync.replicas",
    ]


def test_the_json_has_the_figures_of_each_loss(file: Path, tmp_path: Path) -> None:
    (tmp_path / "losses.json").write_text("[[1, 2]]")
    found = json.loads(run(file, tmp_path / "losses.json", "-o", "json").stdout)
    assert found["withoutLoss"]["before"]["belowMinIsr"] == 0
    [loss] = found["losses"]
    assert (loss["brokers"], loss["times"]) == ([1, 2], 1)
    assert loss["before"] == {"leaderless": 0, "belowMinIsr": 6, "oneReplica": 6, "leadersShare": 1.0, "inShare": 1.0}
    assert loss["after"]["belowMinIsr"] == 0


def test_a_number_means_each_broker_each_rack_and_random_pairs(file: Path) -> None:
    found = json.loads(run(file, 2, "-o", "json").stdout)
    assert [each["brokers"] for each in found["losses"]][:5] == [[1], [2], [3], [4], [1, 4]]
    assert len(found["losses"]) == 7
    assert "... and 6 more" in run(file, 2, "--moves", "1").stdout


def test_losses_of_a_history_are_the_brokers_that_were_gone_together(file: Path, tmp_path: Path) -> None:
    rows = [("prod", 1, 0, 10), ("prod", 1, 20, 30), ("prod", 2, 0, 15), ("prod", 2, 25, 30), ("prod", 3, 0, 30)]
    others = [("test", 3, 0, 10), ("test", 3, 20, 30), ("prod", 9, 0, 12), ("prod", 9, 14, 30)]
    path = write_intervals(tmp_path / "broker_intervals.parquet", *rows, *others)
    found = json.loads(run(file, path, "-o", "json").stdout)
    assert [(each["brokers"], each["times"]) for each in found["losses"]] == [([1, 2], 1)], "9 is not of the snapshot"


@pytest.mark.parametrize(
    ("intervals", "losses"),
    [
        ([(1, 0, 10), (1, 10, 20)], {}),
        ([(1, 0, 10), (1, 11, 20), (1, 12, 13), (1, 21, 30)], {(1,): 2}),
        ([(1, 0, 10), (2, 0, 11), (1, 11, 30), (2, 12, 30)], {(1,): 1, (2,): 1}),
        ([(1, 0, 10), (2, 0, 11), (3, 0, 12), (1, 20, 30), (2, 15, 30), (3, 14, 30)], {(1, 2, 3): 1}),
        ([(1, 0, 10), (2, 0, 30), (2, 31, 40)], {(1, 2): 1}),
        ([(2, 20, 40), (1, 0, 40)], {}),
    ],
    ids=["another epoch", "twice", "one after the other", "overlapping", "gone for good", "new"],
)
def test_brokers_are_lost_together_if_they_were_gone_at_the_same_time(
    intervals: list[tuple[int, int, int]], losses: dict[tuple[int, ...], int]
) -> None:
    assert find_losses(intervals) == tuple(Loss(brokers=brokers, times=times) for brokers, times in losses.items())


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ("{}", 'is no list of losses such as [[1, 2], {"brokers": [3], "times": 2}]: Input should be a valid'),
        ('[[1], [2, "x"]]', "1.brokers.1: Input should be a valid integer"),
        ("[[]]", "0.brokers: List should have at least 1 item"),
        ('[{"brokers": [1], "weight": 2}]', "0.weight: Extra inputs are not permitted"),
        ('[{"brokers": [1], "times": 0}]', "0.times: Input should be greater than or equal to 1"),
        ("[[1, 8], [9]]", "the cluster has no brokers 8, 9"),
    ],
)
def test_a_list_that_is_wrong_is_refused_in_one_line(file: Path, tmp_path: Path, content: str, why: str) -> None:
    (tmp_path / "losses.json").write_text(content)
    ended = run(file, tmp_path / "losses.json", code=2)
    assert why in ended.stderr
    assert len(ended.stderr.splitlines()) == 1


def test_what_has_no_losses_is_refused(file: Path, tmp_path: Path) -> None:
    other = write_intervals(tmp_path / "other.parquet", ("test", 1, 0, 10))
    (tmp_path / "torn.parquet").write_bytes(b"PAR1 and nothing more")
    strange = tmp_path / "strange.parquet"
    pq.write_table(pa.table({"cluster_id": ["prod"], "broker": [[1]], "began": [0], "ended": [1]}), strange)
    for losses, why in (
        (tmp_path / "none", "give a file of losses"),
        (tmp_path / "torn.parquet", "cannot be read"),
        (file, "has no column began: give the broker_intervals.parquet of `kontroller history report`"),
        (other, "knows nothing of cluster prod; its clusters are: test"),
        (100_001, "100001 pairs are too many: give at most 100000"),
        ("9" * 400, "pairs are too many"),
        ("0" * 5_000 + "9" * 9, "pairs are too many"),
        (strange, "column broker has list<element: int64>, not an integer"),
    ):
        assert why in run(file, losses, code=2).stderr


@pytest.mark.parametrize("output", ["kafka", "html", "yaml"])
def test_a_backtest_has_no_other_format(file: Path, output: str) -> None:
    assert f"-o {output} is not for --backtest: give text or json" in run(file, 1, "-o", output, code=2).stderr
    assert "give one of them" in run(file, 1, "--why-not", "orders-0 on 1", code=2).stderr


def test_replicas_avoid_brokers_that_failed_together_in_a_list_or_in_a_history(file: Path, tmp_path: Path) -> None:
    (tmp_path / "losses.json").write_text('[{"brokers": [1, 2], "times": 3}]')
    rows = [("prod", broker, at, at + 10) for broker in (1, 2) for at in (0, 20)]
    history = write_intervals(tmp_path / "broker_intervals.parquet", *rows)
    for losses in (tmp_path / "losses.json", history):
        asked = ["plan", "rebalance", "--snapshot", str(file), "--failed-together", str(losses), "-o", "json"]
        found = json.loads(CliRunner().invoke(main, asked).stdout)
        reasons = {reason for move in found["moves"] for reason in move["reasons"]}
        assert reasons >= {"failed together"}
        assert not any({1, 2} <= set(move["after"]) for move in found["moves"])


def test_pairs_need_a_file_of_this_cluster(file: Path, tmp_path: Path) -> None:
    (tmp_path / "losses.json").write_text("[[1, 9]]")
    for losses, why in ((tmp_path / "losses.json", "the cluster has no broker 9"), (5, "5 cannot be read")):
        asked = ["plan", "rebalance", "--snapshot", str(file), "--failed-together", str(losses)]
        ended = CliRunner().invoke(main, asked)
        assert (ended.exit_code, why in ended.stderr) == (2, True), ended.output
