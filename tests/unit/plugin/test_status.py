"""The screen of `kubectl kontroller status`, and how it ends."""

import json
from collections.abc import Sequence
from typing import Any

import pytest

from kontroller.plugin.exit_codes import ExitCode
from kontroller.plugin.objects import Seen
from kontroller.plugin.status import lines, summarize
from kontroller.screen import format_cell, format_table
from tests.unit.plugin.seen import READY, STALLED, make_seen

COUNTS = {
    "brokers": 3,
    "missingBrokers": 0,
    "topics": 2,
    "partitions": 9,
    "offline": 0,
    "underReplicated": 0,
    "underMinIsr": 0,
    "reassigning": 0,
}


HEALTHY = {**READY, "Degraded": ("False", "Healthy", "no broker is missing")}
DEGRADED = {**READY, "Degraded": ("True", "BrokersMissing", "broker 3 is missing; 4 of 9 partitions under-replicated")}


def cluster(**counts: int) -> Seen:
    return make_cluster(HEALTHY, counts=counts)


def make_cluster(
    conditions: dict[str, tuple[str, str, str]],
    *,
    counts: dict[str, int] | None = None,
    brokers: Sequence[dict[str, Any]] = (),
) -> Seen:
    controller = {"id": 1000, "epoch": 3, "kind": "Kontroller"}
    about = {"controller": controller, "counts": {**COUNTS, **(counts or {})}, "brokers": list(brokers)}
    return make_seen("KafkaCluster", "demo", conditions=conditions, **about)


def make_missing(number: int) -> dict[str, Any]:
    return {"id": number, "state": "Missing", "since": "2026-01-15T12:00:00Z"}


def make_broker_with_disk(number: int, percent: int, *failed: str) -> dict[str, Any]:
    disk = {"directory": "/data", "usedPercent": percent, "totalBytes": 500}
    return {"id": number, "state": "Registered", "disk": disk, "failedLogDirectories": list(failed)}


def move(phase: str | None, **about: Any) -> Seen:
    return make_seen("PartitionReassignment", "drain-4", phase=phase, counts={"total": 8, "done": 2}, **about)


def code(*objects: Seen, fails: bool = True) -> ExitCode:
    return summarize(objects).exit_code(fails_on_changes=fails)


def screen(*objects: Seen, where: str | None = None) -> str:
    return "\n".join(lines(summarize(objects), where))


def test_a_cluster_that_is_well_is_one_line_and_the_end_is_good() -> None:
    objects = (cluster(), make_seen("KafkaTopic", conditions=READY))
    assert screen(*objects) == (
        "NAMESPACE   CLUSTER   CONTROLLER          BROKERS   MISSING   TOPICS   PARTITIONS   OFFLINE   "
        "UNDER-REPLICATED   UNDER-MIN-ISR   MOVING   DISK   READY   DEGRADED   WHY\n"
        "shop        demo      1000 (Kontroller)   3         0         2        9            0         "
        "0                  0               0        -      True    False      -\n"
        "\n2 of 2 objects are ready."
    )
    assert code(*objects) is ExitCode.GOOD


@pytest.mark.parametrize("count", ["offline", "underReplicated", "underMinIsr"])
def test_partitions_that_ail_fail_only_who_asks_for_it(count: str) -> None:
    assert code(cluster(**{count: 1})) is ExitCode.CHANGES
    assert code(cluster(**{count: 1}), fails=False) is ExitCode.GOOD


def test_a_degraded_cluster_says_what_is_missing_since_when_and_fails_everybody() -> None:
    registered = {"id": 1, "state": "Registered", "since": "2026-01-15T11:00:00Z"}
    degraded = make_cluster(DEGRADED, counts={"missingBrokers": 1}, brokers=(registered, make_missing(3)))
    shown = screen(degraded, make_seen("KafkaTopic", conditions=READY))
    assert "True    True       broker 3 is missing; 4 of 9 partitions under-replicated" in shown
    assert "Missing brokers:\nNAMESPACE   CLUSTER   BROKER   SINCE\n" in shown
    assert "shop        demo      3        2026-01-15T12:00:00Z\n" in shown
    assert shown.endswith("2 of 2 objects are ready, 1 of 1 cluster is degraded; see above.")
    assert code(degraded, fails=False) is ExitCode.CHANGES
    assert code(degraded, make_seen("KafkaTopic", conditions=STALLED), fails=False) is ExitCode.WAITS


@pytest.mark.parametrize("ready", ["False", "Unknown"])
def test_a_cluster_that_is_not_ready_fails_everybody_and_says_why(ready: str) -> None:
    away = make_cluster({**DEGRADED, "Ready": (ready, "NoController", "the cluster has no controller")})
    assert "the cluster has no controller" in screen(away)
    assert "broker 3" not in screen(away)
    assert code(away, fails=False) is ExitCode.CHANGES


def test_a_broker_that_is_to_be_removed_says_what_is_next() -> None:
    registered = {"id": 1, "state": "Registered"}
    leaving = [
        {**registered, "id": 3, "removal": "HoldsReplicas"},
        {**registered, "id": 4, "removal": "Empty"},
        registered,
    ]
    shown = screen(make_cluster(HEALTHY, brokers=leaving))
    assert "Brokers to be removed:\nNAMESPACE   CLUSTER   BROKER   REMOVAL" in shown
    assert "it still holds replicas: kubectl kontroller drain 3" in shown
    assert "it has no replicas and gets none: safe to stop for good" in shown
    assert "Brokers to be removed" not in screen(make_cluster(HEALTHY, brokers=[registered]))


def test_of_many_missing_brokers_some_are_shown_and_all_are_in_the_json() -> None:
    degraded = make_cluster(DEGRADED, brokers=tuple(map(make_missing, range(100))))
    assert "... and 80 more" in screen(degraded)
    assert len(summarize([degraded]).make_json()["missing_brokers"]) == 100


def test_a_status_of_an_operator_that_knows_no_degraded_clusters_is_shown() -> None:
    assert "True    Unknown    -" in screen(make_cluster(READY))
    assert code(make_cluster(READY), fails=False) is ExitCode.GOOD


def test_a_move_shows_how_far_it_is_and_why_it_waits() -> None:
    waits = {"Ready": ("False", "UnknownBroker", "broker 9 is not registered")}
    shown = screen(cluster(), move("Running", conditions=waits))
    assert "shop        kpr/drain-4   Running   2/8    25%       -          -     broker 9 is not registered" in shown
    measured = {"progress": {"bytesLeft": 7, "timeLeft": "2h10m"}, "throttle": {"bytesPerSecond": 5000, "isSet": True}}
    running = screen(cluster(), move("Running", conditions=waits, **measured))
    assert "PERCENT   THROTTLE   ETA " in running
    assert "Running   2/8    25%       5000       2h10m   broker" in running
    assert code(cluster(), move("Running")) is ExitCode.CHANGES


@pytest.mark.parametrize("phase", ["Completed", "Cancelled"])
def test_what_is_over_is_no_work(phase: str) -> None:
    over = {"Ready": (str(phase == "Completed"), phase, "over")}
    assert code(cluster(), move(phase, conditions=over)) is ExitCode.GOOD


def test_what_failed_is_no_work_and_waits_for_a_person() -> None:
    failed = move("Failed", conditions=STALLED)
    assert "Under way" not in screen(failed)
    assert "kpr/drain-4   NotAdopted" in screen(failed)
    assert code(cluster(), failed) is ExitCode.WAITS


def test_a_schedule_that_is_none_waits_for_a_person_and_a_run_that_failed_is_told() -> None:
    assert code(cluster(), make_seen("PreferredElection", phase="Scheduled", conditions=STALLED)) is ExitCode.WAITS
    failed = {"Ready": ("False", "PartitionsFailed", "the last run failed")}
    assert code(cluster(), make_seen("PreferredElection", phase="Scheduled", conditions=failed)) is ExitCode.CHANGES


@pytest.mark.parametrize("phase", ["Scheduled", "Suspended"])
def test_an_election_that_rests_between_its_runs_is_no_work(phase: str) -> None:
    assert code(cluster(), make_seen("PreferredElection", phase=phase, conditions=READY)) is ExitCode.GOOD


@pytest.mark.parametrize(
    ("phase", "about", "expected"),
    [
        ("Scheduled", {}, ExitCode.GOOD),
        ("Suspended", {"lastRunResult": "Completed"}, ExitCode.GOOD),
        ("Running", {}, ExitCode.CHANGES),
        ("Suspended", {}, ExitCode.CHANGES),
    ],
)
def test_a_plan_that_rests_between_its_runs_is_no_work(phase: str, about: dict[str, str], expected: ExitCode) -> None:
    assert code(cluster(), make_seen("RebalancePlan", phase=phase, conditions=READY, **about)) is expected


def test_drift_is_told_by_key_and_value() -> None:
    drift = [{"key": "config.retention.ms", "desired": "1", "live": "2"}, {"key": "config.a", "desired": "1"}]
    drifted = {**READY, "Drifted": ("True", "Drifted", "changed")}
    topic = make_seen("KafkaTopic", conditions=drifted, drift=drift)
    assert "config.retention.ms is 2, not 1, config.a is None, not 1" in screen(topic)
    assert code(cluster(), topic) is ExitCode.CHANGES


def test_what_waits_for_a_person_goes_before_all_else_and_says_why() -> None:
    topic = make_seen("KafkaTopic", conditions=STALLED)
    assert "Waits for a person:" in screen(topic)
    assert "kt/orders   NotAdopted   make the spec equal" in screen(topic)
    assert code(cluster(offline=1), topic, fails=False) is ExitCode.WAITS
    assert code(cluster(), move("AwaitingApproval")) is ExitCode.WAITS


def test_paused_objects_are_listed() -> None:
    topic = make_seen("KafkaTopic", conditions=READY, annotations={"kontroller.dev/pause": "true"})
    assert "Paused:" in screen(topic)
    assert code(cluster(), topic) is ExitCode.CHANGES


def test_what_waits_for_a_person_shows_what_that_person_decides_about() -> None:
    topic = make_seen(
        "KafkaTopic", conditions=READY, annotations={"kontroller.dev/pause": "true"},
        nextSteps=["give topic orders 3 partitions", "write the configuration of topic orders"],
    )  # fmt: skip
    assert (
        screen(topic)
        .splitlines()[-3]
        .endswith("give topic orders 3 partitions; write the configuration of topic orders")
    )
    rows = [{"topic": "orders", "partition": n, "replicas": [1], "targetReplicas": [2]} for n in range(5)]
    waits = {"Ready": ("False", "AwaitingApproval", "waits")}
    waiting = move("AwaitingApproval", conditions=waits, planHash="0123456789abcdef", partitions=rows)
    assert "PLAN" in screen(waiting)
    assert "0123456789abcdef: Move orders-0; Move orders-1; Move orders-2 and 2 more" in screen(waiting)
    assert "PLAN" not in screen(make_seen("KafkaTopic", conditions=STALLED)), "nothing would be done"


def test_objects_that_no_operator_has_seen_are_not_ready() -> None:
    new = Seen({**make_seen("KafkaCluster", "new").raw, "status": {"observedGeneration": -1}})
    assert "no operator has seen it yet" in screen(new)
    assert "0 of 1 objects are ready; see above." in screen(new)


def test_a_place_without_a_cluster_is_named() -> None:
    assert screen() == "No KafkaCluster in any namespace.\n\n0 of 0 objects are ready."
    assert screen(where="default").splitlines()[0] == (
        "No KafkaCluster in namespace default (--all-namespaces shows every namespace)."
    )


def test_a_long_list_is_cut_and_says_so() -> None:
    shown = screen(*(make_seen("KafkaTopic", f"t-{number}", conditions=STALLED) for number in range(25)))
    assert shown.count("kt/t-") == 20
    assert "... and 5 more" in shown


def test_the_same_is_there_as_json_in_whole() -> None:
    topics = (make_seen("KafkaTopic", f"t-{number}", conditions=STALLED) for number in range(25))
    answer = json.loads(json.dumps(summarize([cluster(), *topics]).make_json()))
    assert answer["clusters"][0]["controller"] == 1000
    assert len(answer["waiting_for_person"]) == 25


def test_nothing_in_a_status_reaches_the_terminal_as_a_command() -> None:
    assert format_cell("\x1b[2Ja\nb\tc") == "[2Ja b c"
    assert (format_cell(None), format_cell(""), format_cell(0)) == ("-", "-", "0")
    assert len(format_cell("x" * 1000)) == 160
    assert format_table(("A",), []) == []


def test_the_fullest_disk_of_a_cluster_is_shown_and_each_one_that_needs_a_person() -> None:
    shown = screen(make_cluster(HEALTHY, brokers=[make_broker_with_disk(1, 40), make_broker_with_disk(2, 84)]))
    assert " 84% " in shown
    assert "Disks" not in shown
    shown = screen(make_cluster(DEGRADED, brokers=[make_broker_with_disk(1, 40, "/b"), make_broker_with_disk(2, 90)]))
    assert "Disks nearly full or failed" in shown
    rows = [line.split() for line in shown.splitlines() if "/data" in line]
    assert rows == [
        ["shop", "demo", "1", "/data", "40%", "500", "/b"],
        ["shop", "demo", "2", "/data", "90%", "500", "-"],
    ]
