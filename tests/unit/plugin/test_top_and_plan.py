"""The screens of `top` and `plan`."""

from typing import Any

import pytest

from kontroller.plugin import plan, top
from kontroller.plugin.exit_codes import ExitCode
from tests.unit.plugin.seen import READY, STALLED, make_seen, partition

AILING = [
    partition(0, [1, 2, 3], [1, 2, 3], 1),
    partition(1, [1, 2, 3], [1, 2], 1),
    partition(2, [1, 2, 3], [3], 3),
    partition(3, [1, 2, 3], [], -1),
    partition(4, [1, 2, 3], [1, 2, 3], 2),
]


def test_the_worst_partitions_come_first_and_those_that_are_well_are_left_out() -> None:
    found = top.find_ailing([make_seen("KafkaTopic", partitions=AILING), make_seen("KafkaCluster", partitions=None)])
    assert [(each.partition, each.trouble) for each in found] == [
        (3, "offline"),
        (2, "under-replicated"),
        (1, "under-replicated"),
        (4, "not the preferred leader"),
    ]
    assert top.lines(found, 2)[1:] == [
        "shop        demo      orders   3           offline            -1       1,2,3      -     -",
        "shop        demo      orders   2           under-replicated   3        1,2,3      3     -",
        "... and 2 more",
    ]
    assert found[0].make_json()["replicas"] == (1, 2, 3)


def test_what_moves_is_told_once_with_its_step_and_reason() -> None:
    moving = [
        partition(1, [4, 1, 2], [1, 2], 1, step="CatchingUp", message="broker 4 copies"),
        partition(2, [1], [1], 1, step="Done"),
        partition(5, [1, 2], [1, 2], 1, step="Waiting"),
    ]
    objects = [
        make_seen("PartitionReassignment", "m", partitions=moving),
        make_seen("KafkaTopic", partitions=AILING[:2]),
    ]
    assert [(each.partition, each.trouble, each.message) for each in top.find_ailing(objects)] == [
        (1, "CatchingUp", "broker 4 copies")
    ]


def test_topics_of_one_name_in_several_clusters_have_a_row_each() -> None:
    objects = [make_seen("KafkaTopic", name, partitions=AILING[at : at + 1]) for name, at in (("eu", 3), ("us", 1))]
    objects += [make_seen("KafkaTopic", name, partitions=AILING[2:3]) for name in ("far", "near")]
    references = ({"name": "eu"}, {"name": "us"}, {"name": "eu", "namespace": "far"}, {"name": "us"})
    for each, reference in zip(objects, references, strict=True):
        each.raw["spec"]["clusterRef"] = reference
    found = top.find_ailing(objects)
    assert [(each.make_json()["cluster"], each.partition) for each in found] == [
        ("eu", 3),
        ("far/eu", 2),
        ("us", 2),
        ("us", 1),
    ]
    assert top.lines(found[:1], 1)[1].split()[:3] == ["shop", "eu", "orders"]


def test_where_all_is_well_it_says_so() -> None:
    assert top.lines(top.find_ailing([make_seen("KafkaTopic", partitions=AILING[:1])]), 5) == [
        "No partition of a KafkaTopic needs attention."
    ]


PLAN = {"total": 3, "changes": [{"action": "SetConfig", "key": "config.a", "live": "1", "desired": "2"}]}


def test_the_plan_of_a_topic_has_its_steps_and_what_to_do_while_it_is_paused() -> None:
    paused: dict[str, Any] = {"annotations": {"kontroller.dev/pause": "true"}}
    found = plan.find_next_steps(make_seen("KafkaTopic", conditions=READY, plan=PLAN, **paused))
    assert plan.lines(found) == [
        "kt/orders: all is well",
        "It is paused: `kubectl kontroller resume kt/orders` lets the operator do this.",
        "ACTION      WHAT       NOW   THEN",
        "SetConfig   config.a   1     2",
        "... and 2 more",
    ]
    assert found.exit_code(fails_on_changes=True) is ExitCode.CHANGES
    assert found.exit_code(fails_on_changes=False) is ExitCode.GOOD


def test_a_paused_object_of_any_kind_says_what_would_be_done() -> None:
    steps = ["limit the move to 5000 bytes a second at each broker", "move 1 partition: orders-0"]
    rows = [partition(0, [1], [1], 1, step="Waiting", targetReplicas=[2, 3])]
    paused: dict[str, Any] = {"conditions": READY, "annotations": {"kontroller.dev/pause": "true"}}
    shown = ["Without the pause it would:", *(f"- {each}" for each in steps)]
    move = plan.find_next_steps(make_seen("PartitionReassignment", partitions=rows, nextSteps=steps, **paused))
    assert plan.lines(move)[-3:] == shown
    assert "orders-0   1     2,3" in plan.lines(move)[3]
    election = plan.find_next_steps(make_seen("PreferredElection", nextSteps=steps, **paused))
    assert plan.lines(election)[1:] == [
        "It is paused: `kubectl kontroller resume kpe/orders` lets the operator do this.",
        *shown,
    ]
    assert election.exit_code(fails_on_changes=True) is ExitCode.CHANGES


def test_a_paused_object_that_would_wait_would_change_nothing() -> None:
    waits = ["wait, BrokersUnavailable: 1 of 2 brokers is there"]
    found = plan.find_next_steps(make_seen("KafkaTopic", nextSteps=waits, annotations={"kontroller.dev/pause": "true"}))
    assert plan.lines(found)[-1] == f"- {waits[0]}"
    assert found.exit_code(fails_on_changes=True) is ExitCode.GOOD


def test_an_object_with_nothing_to_do_says_so() -> None:
    found = plan.find_next_steps(make_seen("KafkaTopic", conditions=READY))
    assert plan.lines(found) == ["kt/orders: all is well", "Nothing would be changed."]
    assert found.exit_code(fails_on_changes=True) is ExitCode.GOOD


def test_a_status_about_an_older_generation_is_told() -> None:
    found = plan.find_next_steps(make_seen("KafkaTopic", conditions=READY, observedGeneration=0))
    assert "older generation" in plan.lines(found)[1]


FEATURES = [
    {"name": "f", "maxVersionLevel": 2, "finalizedLevel": 1},
    {"name": "g", "maxVersionLevel": 1, "finalizedLevel": 1},
]
MOVES = [
    partition(0, [1], [1], 1, step="Waiting", targetReplicas=[2, 3]),
    partition(1, [1], [1], 1, step="Done"),
]
TO_DISK = [partition(0, [1, 2], [1, 2], 1, step="Waiting", targetReplicas=[1, 2], targetLogDirs=["/data2", "any"])]


@pytest.mark.parametrize(
    ("kind", "status", "step"),
    [
        ("FeatureSet", {"features": FEATURES}, ("Finalize", "f", "1", "2")),
        ("PartitionReassignment", {"partitions": MOVES}, ("Move", "orders-0", "1", "2,3")),
        ("PartitionReassignment", {"partitions": TO_DISK}, ("Move", "orders-0", "1,2", "1:/data2,2")),
    ],
)
def test_other_kinds_say_it_in_their_own_lists(kind: str, status: dict[str, Any], step: tuple[str, ...]) -> None:
    (found,) = plan.find_next_steps(make_seen(kind, conditions=READY, **status)).steps
    assert (found.action, found.key, found.live, found.desired) == step


def test_what_is_stalled_waits_for_a_person() -> None:
    steps = plan.find_next_steps(make_seen("KafkaTopic", conditions=STALLED))
    assert steps.exit_code(fails_on_changes=False) is ExitCode.WAITS
