"""The settings that brokers' files have, too: what holds if they differ, and how the differences are told."""

from dataclasses import dataclass

import pytest

from controller_core.model.ids import BrokerId
from controller_core.model.settings.differences import find_differences
from controller_core.model.settings.shared import choose_value, collect_given

ONE, TWO, THREE, CONTROLLER = map(BrokerId, (1, 2, 3, 1000))


@pytest.mark.parametrize(
    ("name", "files", "held"),
    [
        ("default.replication.factor", ["3", "1", "3"], "3"),
        ("num.partitions", ["1", " 6 "], "6"),
        ("unclean.leader.election.enable", ["true", "false"], "false"),
        ("unclean.leader.election.enable", ["true", "TRUE"], "true"),
        ("delete.topic.enable", ["true", "false"], "false"),
        ("auto.leader.rebalance.enable", ["true", "true"], "true"),
        ("leader.imbalance.per.broker.percentage", ["10", "0"], "10"),
        ("controller.quota.window.num", ["11", "5"], "5"),
        ("default.replication.factor", ["three"], None),
        ("default.replication.factor", [], None),
        ("min.insync.replicas", ["2"], None),
        ("create.topic.policy.class.name", ["com.example.Policy"], ""),
    ],
)
def test_if_files_differ_the_value_holds_that_loses_least(name: str, files: list[str], held: str | None) -> None:
    assert choose_value(name, files) == held


def test_only_what_differs_is_told_with_the_nodes_of_each_value() -> None:
    same = {"num.partitions": "6", "delete.topic.enable": "TRUE "}
    found = find_differences(
        {
            ONE: {**same, "default.replication.factor": "3"},
            TWO: {**same, "default.replication.factor": "1"},
            THREE: {"delete.topic.enable": "true", "default.replication.factor": "3"},
        }
    )
    assert [str(each) for each in found] == ["default.replication.factor is 3 at 1, 3; 1 at 2"]


def test_a_class_that_brokers_name_differs_from_a_controller_that_runs_none() -> None:
    found = find_differences({ONE: {"create.topic.policy.class.name": "a.B"}, CONTROLLER: {}})
    assert [str(each) for each in found] == ["create.topic.policy.class.name is not set at 1000; a.B at 1"]


@dataclass
class Given:
    num_partitions: int | None = 6
    delete_topic_enable: bool | None = False
    default_replication_factor: int | None = None


def test_what_a_process_was_given_has_the_names_of_a_brokers_file() -> None:
    assert collect_given(Given()) == {"delete.topic.enable": "false", "num.partitions": "6"}
