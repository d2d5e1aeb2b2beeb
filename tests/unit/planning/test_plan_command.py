"""`kontroller plan` with a snapshot from a file: each format, and each refusal in one line that says what to change."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pytest
import yaml
from typer.testing import CliRunner

from controller_core.client.reassigning.assignments import parse_reassignment
from controller_core.model.ids import UNTOLD_BROKER_EPOCH, UNTOLD_TOPIC_VERSION, BrokerId, PartitionId, TopicName
from controller_core.model.metadata import Broker, Endpoint, ReplicaAssignment, TopicAssignment
from controller_core.model.snapshot import Snapshot, TopicSnapshot
from controller_operator.resources import PartitionReassignment
from controller_planner.goals import Goals, Mode
from controller_planner.planning import make_plan
from kontroller.command_line import main
from kontroller.planning.documents import Manifests, format_manifests
from kontroller.planning.live_cluster import ClusterChangedError, require_unchanged
from kontroller.planning.snapshot_file import StoredLoads, write_snapshot
from simulation.cluster.names import tp
from tests.unit.planning.snapshots import GIB, RACKS, make_partition, make_snapshot

DRAINED: Final = {*range(6)}
LOADER: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""The loader in C if there is one: it reads thousands of partitions in a tenth of the time."""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "loads.parquet"
    write_snapshot(path, StoredLoads(snapshot=make_snapshot(), troubles=("broker 9: it does not answer",)))
    return path


def run(file: Path, *arguments: str, code: int = 0) -> Any:
    ended = CliRunner().invoke(main, ["plan", *arguments, "--snapshot", str(file)])
    assert ended.exit_code == code, ended.output
    return ended


def test_a_drain_is_shown_with_brokers_before_and_after_moves_and_what_is_unknown(file: Path) -> None:
    lines = run(file, "drain", "--broker", "1").stdout.splitlines()
    assert lines[0].startswith("Plan ")
    assert lines[2].split() == ["BROKER", "RACK", "STATE", "REPLICAS", "DISK", "IN", "OUT", "LEADERS"] or lines[
        2
    ].startswith("BROKER")
    assert any(line.split()[:6] == ["1", "a", "up", "6", "->", "0"] for line in lines), lines
    assert any("6 partitions to change, 6 of them copy data: 6.0 GiB in 1 batch" in line for line in lines), lines
    assert "reasons: 6 drain" in "\n".join(lines)
    assert lines.index("Unknown:") < lines.index("  broker 9: it does not answer")
    assert "  read traffic unknown" in lines


def test_the_moves_of_a_text_are_bounded(file: Path) -> None:
    assert "... and 4 more" in run(file, "drain", "--broker", "1", "--moves", "2").stdout


def test_the_json_has_everything(file: Path) -> None:
    found = json.loads(run(file, "drain", "--broker", "1", "-o", "json").stdout)
    assert found["mode"] == "drain"
    assert {move["partition"] for move in found["moves"]} == DRAINED
    assert all("drain" in move["reasons"] and 1 not in move["after"] for move in found["moves"])
    assert [broker["after"]["replicas"] for broker in found["brokers"]] == [0, 6, 6, 6]
    assert found["troubles"] == ["broker 9: it does not answer"]


def test_numbers_that_nobody_measured_are_shown_as_unknown(tmp_path: Path) -> None:
    path = tmp_path / "loads.parquet"
    partitions = {tp("orders", number): make_partition(1, 2, 3, size=None, rate=None) for number in range(6)}
    write_snapshot(path, StoredLoads(snapshot=make_snapshot(partitions)))
    lines = run(path, "drain", "--broker", "1").stdout.splitlines()
    assert lines[2].split() == ["BROKER", "RACK", "STATE", "REPLICAS", "LEADERS"]
    assert "6 partitions to change, 6 of them copy data: 6 of unknown size in 1 batch" in lines
    assert {"  sizes unknown", "  write traffic unknown", "  read traffic unknown"} <= {*lines}
    found = json.loads(run(path, "drain", "--broker", "1", "-o", "json").stdout)
    assert found["brokers"][0]["before"] == {"replicas": 6, "disk": None, "in": None, "out": None, "leaders": 6}
    refused = run(path, "drain", "--broker", "1", "--max-bytes", "9", code=2).stderr
    assert "no partition's size is known; give max_moves instead" in refused


def test_a_file_with_capacities_of_some_brokers_says_which_others_lack_them(file: Path, tmp_path: Path) -> None:
    capacities = tmp_path / "capacity.json"
    entries = [
        {"brokerId": "1", "capacity": {"DISK": "100000", "NW_IN": "1000"}},
        {"brokerId": "2", "capacity": {"NW_IN": "1000"}},
    ]
    capacities.write_text(json.dumps({"brokerCapacities": entries}))
    ended = run(file, "rebalance", "--capacities", str(capacities))
    assert ended.stderr.splitlines() == [
        f"kontroller: {capacities} has no DISK for brokers 2, 3, 4: what the snapshot has holds",
        f"kontroller: {capacities} has no NW_IN for brokers 3, 4: unknown",
    ]
    assert "  in capacity unknown for brokers 3, 4: they have no limit, and all brokers get equal shares" in (
        ended.stdout.splitlines()
    )


def test_capacities_that_are_too_large_in_sum_are_refused(file: Path, tmp_path: Path) -> None:
    capacities = tmp_path / "capacity.json"
    disks = {f"/{number}": "1e18" for number in range(2000)}
    capacities.write_text(json.dumps({"brokerCapacities": [{"brokerId": "1", "capacity": {"DISK": disks}}]}))
    ended = run(file, "rebalance", "--capacities", str(capacities), code=2)
    assert (
        f"{capacities}: broker 1: capacity_disk_bytes is 2.09715e+27; give a positive number up to 1e+27"
        in ended.stderr
    )


def test_losses_for_which_the_other_disks_have_no_room_are_named_in_each_format(tmp_path: Path) -> None:
    path = tmp_path / "loads.parquet"
    partitions = {tp("orders", number): make_partition(1, 2, 3, size=15 * GIB) for number in range(6)}
    write_snapshot(path, StoredLoads(snapshot=make_snapshot(partitions)))
    line = "rack a: its replicas have 90.0 GiB, and the other brokers have room for 20.0 GiB"
    lines = run(path, "leaders-only").stdout.splitlines()
    assert lines[lines.index("No room for a loss after the plan:") + 1 :] == [f"  {line}"]
    lost = {"brokers": [1, 4], "rack": "a", "within": None, "neededBytes": 90 * GIB, "roomBytes": 20 * GIB}
    assert json.loads(run(path, "leaders-only", "-o", "json").stdout)["noRoomFor"] == [lost]
    assert f"<li>{line}</li>" in run(path, "leaders-only", "-o", "html").stdout


def test_the_same_snapshot_gives_the_same_bytes(file: Path) -> None:
    assert len({run(file, "rebalance", "-o", "json").stdout for _ in range(2)}) == 1


def test_kafka_s_tool_can_read_the_moves(file: Path) -> None:
    targets = parse_reassignment(run(file, "drain", "--broker", "1", "-o", "kafka").stdout)
    assert targets.keys() == {tp("orders", number) for number in DRAINED}
    assert all(set(replicas) == {2, 3, 4} for replicas in targets.values())


def test_each_batch_has_a_file(file: Path, tmp_path: Path) -> None:
    folder = tmp_path / "moves"
    limited = ["drain", "--broker", "1", "-o", "kafka", "--batch-bytes", str(2 << 30), "--batches", str(folder)]
    ended = run(file, *limited)
    files = sorted(folder.iterdir())
    assert f"{folder} has {len(files)} files: move one after the other" in ended.stderr
    assert len(files) > 1
    moved = [move for each in files for move in parse_reassignment(each.read_text())]
    assert sorted(moved) == [tp("orders", number) for number in sorted(DRAINED)]
    assert "batch-1.json exists: give another folder to --batches" in run(file, *limited, code=2).stderr


def test_only_racks_in_scope_get_replicas(file: Path) -> None:
    found = json.loads(run(file, "drain", "--broker", "1", "--rack", "a", "-o", "json").stdout)
    assert {tuple(sorted(move["after"])) for move in found["moves"]} == {(2, 3, 4)}
    assert "1 too few are up" in run(file, "drain", "--broker", "1", "--rack", "b", "--rack", "c", code=1).stderr
    assert "the cluster has no rack x" in run(file, "rebalance", "--rack", "x", code=2).stderr


def test_the_manifests_are_valid_and_name_the_snapshot(file: Path) -> None:
    arguments = ["drain", "--broker", "1", "-o", "yaml", "--cluster", "prod", "-n", "kafka", "--throttle", "1000000"]
    (found,) = yaml.safe_load_all(run(file, *arguments).stdout)
    move = PartitionReassignment.model_validate(found)
    assert move.spec.partitions is not None
    assert len(move.spec.partitions) == len(DRAINED)
    assert {each.expected_replicas for each in move.spec.partitions} == {(1, 2, 3)}
    assert found["metadata"]["annotations"]["kontroller.dev/snapshot-hash"] == make_snapshot().compute_hash()
    assert found["metadata"]["namespace"] == "kafka"
    assert "suspend" not in found["spec"]


def test_a_manifest_has_at_most_five_thousand_partitions_and_later_batches_are_suspended() -> None:
    many = {tp("t", number): make_partition(1, 2, 3, size=1) for number in range(5_100)}
    plan = make_plan(make_snapshot(many), Goals(mode=Mode.DRAIN, brokers=(1,)))
    manifests = format_manifests(plan, Manifests(cluster="prod", name="drain"))
    found = [yaml.load(each, Loader=LOADER) for each in manifests]
    assert [len(each["spec"]["partitions"]) for each in found] == [5_000, 100]
    assert [each["metadata"]["name"] for each in found] == ["drain-0", "drain-1"]


def test_a_lost_rack_is_answered_with_its_consequences_and_the_plan_that_repairs_it(file: Path) -> None:
    lines = run(file, "drain", "--what-if", "lose broker 1", "-o", "text").stdout.splitlines()
    assert "  lost: broker 1" in lines
    assert any("6 partitions to change" in line for line in lines)


def test_a_full_broker_gives_away_the_fewest_bytes_and_nothing_else_moves(file: Path) -> None:
    found = json.loads(run(file, "relieve", "--broker", "1", "--below-percent", "4", "-o", "json").stdout)
    assert (found["mode"], found["bytes"], found["leftOut"]) == ("relieve", 2 * GIB, [])
    assert [move["after"] for move in found["moves"]] == [[4, 2, 3]] * 2
    assert {reason for move in found["moves"] for reason in move["reasons"]} == {"relief of a disk"}
    short = run(file, "relieve", "--broker", "1", "--below-percent", "2").stdout
    assert f"broker 1 keeps {4 * GIB} bytes, {2 * GIB} more than 2 percent of its disks" in short


def test_added_brokers_are_filled(file: Path) -> None:
    found = json.loads(run(file, "expand", "--what-if", "add 3 brokers", "-o", "json").stdout)
    assert found["whatIf"] == ["added: 5 (rack b), 6 (rack c), 7 (rack a)"]
    assert sum(broker["after"]["replicas"] for broker in found["brokers"] if broker["id"] >= 5) > 0


def test_a_loss_that_no_plan_can_repair_is_answered_with_its_consequences(file: Path) -> None:
    ended = run(file, "drain", "--what-if", "lose brokers 1, 2", code=1)
    assert "lost: brokers 1, 2" in ended.stderr
    assert "leaders on other brokers: 6 partitions" in ended.stderr
    assert "3 replicas need as many brokers, and 1 too few are up" in ended.stderr


def test_the_reasons_against_a_place_are_answered_in_words_and_as_json(file: Path) -> None:
    asked = ("drain", "--broker", "1", "--why-not", "orders-0 on 1")
    assert run(file, *asked).stdout.splitlines() == [
        "orders-0 is on brokers 1, 2, 3, and the plan puts it on 4, 2, 3",
        "against 1 in the place of 4:",
        "  constraint: broker 1 is drained",
    ]
    found = json.loads(run(file, *asked, "-o", "json").stdout)
    assert (found["after"], found["constraints"]) == ([4, 2, 3], ["broker 1 is drained"])


@pytest.mark.parametrize(
    ("arguments", "code", "why"),
    [
        (["drain"], 2, "name the brokers to drain"),
        (["relieve"], 2, "name the brokers to relieve"),
        (["relieve", "--broker", "9"], 2, "the cluster has no broker 9"),
        (["drain", "--broker", "1", "--below-percent", "80"], 2, "a percentage of the disks is for the mode relieve"),
        (["drain", "--broker", "9"], 2, "the cluster has no broker 9"),
        (["drain", "--broker", "2"], 1, ""),
        (["rebalance", "--topic", "none"], 2, "the cluster has no topic none"),
        (["replication-factor"], 2, "need each other"),
        (["rebalance", "--max-bytes", "0"], 2, "max_bytes is 0.0; give a positive number"),
        (["rebalance", "--band", "1"], 2, "band is 1.0"),
        (["rebalance", "--what-if", "lose rack z"], 2, "no broker is in rack z"),
        (
            ["rebalance", "--what-if", "lose rack b", "-o", "kafka"],
            2,
            "-o kafka is not for --what-if: give text or json or html",
        ),
        (
            ["rebalance", "--why-not", "orders-0 on 1", "-o", "kafka"],
            2,
            "-o kafka is not for --why-not: give text or json",
        ),
        (
            ["rebalance", "--why-not", "orders-0 on 1", "-o", "html"],
            2,
            "-o html is not for --why-not: give text or json",
        ),
        (["rebalance", "--why-not", "orders-0 on 9"], 2, "the snapshot has no broker 9"),
        (["rebalance", "-o", "yaml"], 2, "--cluster NAME"),
        (["drain", "--broker", "99999999999999999999"], 2, "less than or equal to 2147483647"),
        (["rebalance", "--exclude-broker", "99999999999999999999"], 2, "less than or equal to 2147483647"),
        (["rebalance", "--closed-broker", "99999999999999999999"], 2, "less than or equal to 2147483647"),
        (["rebalance", "--batches", "x"], 2, "--batches is for -o kafka"),
        (["rebalance", "--closed-broker", "1"], 2, "give it to `kontroller snapshot`"),
    ],
)
def test_a_wrong_command_is_refused_in_one_line(file: Path, arguments: list[str], code: int, why: str) -> None:
    if arguments == ["drain", "--broker", "2"]:
        arguments = ["drain", "--broker", "2", "--broker", "3"]  # two brokers for three replicas
    ended = run(file, *arguments, code=code)
    assert why in ended.stderr
    assert len(ended.stderr.splitlines()) == 1
    assert ended.stdout == ""


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("--cluster", "c", "--name", "Foo Bar"), "Foo Bar-0 is not a name of an object: use a-z, 0-9, - and ."),
        (("--cluster", "c", "--namespace", "a.b"), "a.b is not a name of a namespace"),
        (("--cluster", "C"), "C is not a name of a KafkaCluster"),
    ],
)
def test_names_that_kubernetes_refuses_are_refused(file: Path, arguments: tuple[str, ...], why: str) -> None:
    ended = run(file, "drain", "--broker", "1", "-o", "yaml", *arguments, code=2)
    assert why in ended.stderr.splitlines()[-1]
    assert ended.stdout == ""


def test_a_file_that_is_no_snapshot_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("topic")
    assert "is no Parquet file, or is cut off" in run(tmp_path / "x", "rebalance", code=2).stderr


def make_live(
    replicas: tuple[int, ...] = (1, 2, 3),
    partitions: int = 6,
    brokers: tuple[int, ...] = (1, 2, 3, 4),
    racks: Mapping[int, str | None] = RACKS,
) -> Snapshot:
    """Return the cluster of the snapshot as a client sees it."""
    assigned = ReplicaAssignment(replicas=tuple(map(BrokerId, replicas)))
    assignment = TopicAssignment(topic_id=None, partitions={PartitionId(each): assigned for each in range(partitions)})
    name = TopicName("orders")
    return Snapshot(
        version=1,
        cluster_id="prod",
        brokers={
            BrokerId(each): Broker(
                id=BrokerId(each),
                epoch=UNTOLD_BROKER_EPOCH,
                rack=racks.get(each),
                endpoints=(Endpoint(listener="", security_protocol="", host="kafka", port=each),),
            )
            for each in brokers
        },
        topics={name: TopicSnapshot(name=name, assignment=assignment, version=UNTOLD_TOPIC_VERSION)},
    )


def test_a_cluster_that_is_as_it_was_may_be_planned_for() -> None:
    require_unchanged(make_snapshot(), make_live())


@pytest.mark.parametrize(
    ("live", "why"),
    [
        (make_live((1, 3, 2)), "partitions are on other brokers: orders-0, orders-1, orders-2 and 3 more"),
        (make_live(partitions=7), "partitions are new: orders-6"),
        (make_live(partitions=5), "partitions are deleted: orders-5"),
        (make_live(brokers=(1, 2, 3)), "brokers are down: 4"),
        (make_live(racks={**RACKS, 2: "a", 4: None}), "brokers are in other racks: 2, 4"),
        (make_live(brokers=(1, 2, 3, 4, 5)), "brokers are new or back: 5"),
    ],
)
def test_a_cluster_that_has_changed_is_refused(live: Snapshot, why: str) -> None:
    with pytest.raises(ClusterChangedError, match=f"since the snapshot: {why}: take another snapshot"):
        require_unchanged(make_snapshot(), live)


@pytest.mark.parametrize("option", ["--capacities", "--backtest"])
def test_a_byte_order_mark_at_the_start_of_a_file_changes_nothing(file: Path, tmp_path: Path, option: str) -> None:
    capacities = {"brokerCapacities": [{"brokerId": "-1", "capacity": {"DISK": "1000000"}}]}
    given = tmp_path / "given.json"
    given.write_text(json.dumps(capacities if option == "--capacities" else [[1, 2]]), encoding="utf-8-sig")
    run(file, "rebalance", option, str(given))
