"""Two controllers that both believed to have an epoch are found, though a history takes the account of one."""

from collections.abc import Callable, Sequence

import pytest
from pyspark.sql import Row, SparkSession

from kontroller.history.audit.audit import audit
from kontroller.history.schemas import EVENTS, PROOFS
from kontroller.history.transforms import lines
from kontroller.history.transforms.accounts.once import deduplicate
from kontroller.history.transforms.continuity.breaks import marks
from kontroller.history.transforms.continuity.set_clocks import correct_stamps
from kontroller.history.transforms.known_spans import find_known_spans
from tests.spark.journal_scenes import Folders, controller, make_lines, recorder


def two_controllers(name: str) -> Folders:
    """Return the journals of an epoch with two controllers. Each elects another leader when broker 1 fails."""
    return {
        "first": controller(name, who=1).begin().lead(2, 0.1).alive(1.0).lines,
        "second": controller(name, who=2).begin(0.05).lead(3, 0.2).alive(0.3).lines,
    }


def two_that_agree(name: str) -> Folders:
    """The second one changed nothing before it noticed."""
    return {
        "first": controller(name, who=1).begin().lead(2, 0.1).alive(1.0).lines,
        "second": controller(name, who=2).begin(0.05).alive(0.06).lines,
    }


def restore_copy(name: str) -> Folders:
    """ZooKeeper is set back to a copy, and the same controller has the same epoch again."""
    return {
        "before": controller(name).begin().lead(2, 0.1).alive(0.5).lines,
        "again": controller(name).begin(1.0).lead(3, 1.1).alive(1.2).lines,
    }


def record_beside(name: str) -> Folders:
    """A recorder sees the same a little later, and misses some of it."""
    return {
        "controller": controller(name).begin().lead(-1, 0.1).lead(2, 0.2).alive(1.0).lines,
        "recorder": recorder(name, who=1).begin(0.0001).lead(2, 0.2001).alive(1.0).lines,
    }


def copies(name: str) -> Folders:
    """Return three copies of a journal in which a topic is created again: two of them have lost some records, one is
    whole."""
    own = controller(name).begin().lead(2, 0.1).create_again(9).lead(1, 0.2).alive(1.0).lines
    return {"own": own, "begin": own[: len(own) // 3], "end": own[-len(own) // 2 :]}


def restart_controller(name: str) -> Folders:
    """A controller that has lost its disk goes on in a new epoch."""
    before = controller(name, epoch=1).begin().lead(2, 0.1).alive(0.2)
    after = controller(name, epoch=2).follow(before).begin(0.3).lead(3, 0.4).alive(1.0)
    return {"before": before.lines, "after": after.lines}


SCENES: dict[str, tuple[Callable[[str], Folders], set[str]]] = {
    "two controllers": (
        two_controllers, {"OneControllerPerEpoch", "JournalsAgreeOnStates", "JournalsAgreeOnLeaders"},
    ),
    "two controllers that agree": (two_that_agree, {"OneControllerPerEpoch"}),
    "ZooKeeper restored from a copy": (
        restore_copy,
        {"JournalsAgreeOnStates", "JournalsAgreeOnLeaders", "LeaderEpochNeverFalls", "PartitionEpochNeverFalls"},
    ),
    "a recorder beside a controller": (record_beside, set()),
    "copies and parts": (copies, set()),
    "a controller that was restarted": (restart_controller, set()),
}  # fmt: skip
"""Each scene: the function that writes its journals, and the invariants that these break."""


@pytest.fixture(scope="module")
def found(spark: SparkSession) -> Sequence[Row]:
    """Violations of all clusters, by the way that a history goes."""
    scenes = {name: make(name) for name, (make, _) in SCENES.items()}
    recorded = spark.createDataFrame(
        lines.judge(lines.check_lines(make_lines(spark, scenes)))[0].collect(), EVENTS.schema
    )
    events = spark.createDataFrame(deduplicate(correct_stamps(recorded))[0].collect(), EVENTS.schema)
    proofs = spark.createDataFrame([], PROOFS.schema)
    return audit(events, find_known_spans(marks(events)), proofs, recorded=recorded).collect()


@pytest.mark.parametrize("name", SCENES)
def test_what_journals_of_one_epoch_contradict_is_found_and_nothing_else(name: str, found: Sequence[Row]) -> None:
    _, expected = SCENES[name]
    assert {row.invariant for row in found if row.cluster_id == name} == expected, found


@pytest.mark.parametrize("name", [name for name, (_, expected) in SCENES.items() if expected])
def test_a_contradiction_is_proven_by_a_record_of_each_journal(name: str, found: Sequence[Row]) -> None:
    folders = {f"/{name}/{folder}/segment.jsonl" for folder in SCENES[name][0](name)}
    for row in (row for row in found if row.cluster_id == name):
        assert {record.source for record in row.evidence} == folders, row
        assert row.controller_epoch == 1


def test_the_words_say_who_and_what(found: Sequence[Row]) -> None:
    told = {row.invariant: row.detail for row in found if row.cluster_id == "two controllers"}
    assert told["OneControllerPerEpoch"] == "controllers 1 and 2 both acted in controller epoch 1"
    assert "brokers 2 and 3 both lead in leader epoch 1" in told["JournalsAgreeOnLeaders"]
    assert "partition epoch 1 says leader 3, ISR [1, 2, 3], leader epoch 1" in told["JournalsAgreeOnStates"]
