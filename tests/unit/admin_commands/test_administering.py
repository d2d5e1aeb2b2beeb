"""Commands that administer a cluster: documents for programs, errors in one line, confirmations, and the time they have."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from controller_core.client.errors import (
    AdminError,
    OutcomeUnknown,
    PartlyRefused,
    Refused,
    Unreachable,
    UpdateInProgress,
)
from controller_core.client.topics.administration import Alteration, AlteredStep
from controller_core.model.ids import TopicName
from controller_core.wire.messages import ErrorCode
from tests.unit.admin_commands.simulated_admin import (
    ORDERS,
    OTHER,
    SimulatedCluster,
    document,
    kontroller,
    one_line,
    replace_cluster,
)

UPDATE = ("features", "update", "--feature-upgrade", "f:2")


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Iterator[SimulatedCluster]:
    with replace_cluster(monkeypatch) as simulated:
        yield simulated


def refuse_missing(topic: str) -> Refused:
    return Refused(f"topic {topic}", ErrorCode.unknown_topic_or_partition, None)


# Output for programs


def test_a_topic_that_is_created_is_a_document(cluster: SimulatedCluster) -> None:
    create = ("topics", "create", "--topic", "t", "-o", "json")
    assert document(kontroller(*create)) == {"topic": "t", "result": "created"}
    assert document(kontroller(*create, "--validate-only")) == {"topic": "t", "result": "possible"}
    cluster.fails["create"] = [Refused("topic t", ErrorCode.topic_already_exists, None)]
    assert document(kontroller(*create, "--if-not-exists")) == {"topic": "t", "result": "existing"}


def test_an_alteration_is_a_document_step_by_step(cluster: SimulatedCluster) -> None:
    refused = Refused("topic t", ErrorCode.invalid_partitions, "too few")
    cluster.alteration = Alteration(steps=(AlteredStep(what="configurations"), AlteredStep(what="p", error=refused)))
    ended = kontroller("topics", "alter", "--topic", "t", "-o", "json")
    assert document(ended) == {
        "topic": "t",
        "steps": [
            {"step": "configurations", "result": "done", "error": None},
            {"step": "p", "result": "failed", "error": "topic t: too few (INVALID_PARTITIONS 37)"},
        ],
    }
    assert (ended.exit_code, one_line(ended)) == (1, "kontroller: topic t: too few (INVALID_PARTITIONS 37)")
    cluster.alteration = Alteration(steps=(AlteredStep(what="configurations"),))
    ended = kontroller("topics", "alter", "--topic", "t", "-o", "yaml", "--fail-on-changes")
    assert (ended.exit_code, yaml.safe_load(ended.stdout)["steps"][0]["result"]) == (3, "done")


def test_topics_are_deleted_one_by_one_and_each_has_its_end(cluster: SimulatedCluster) -> None:
    cluster.fails["delete"] = [refuse_missing("a"), Unreachable("nobody answers")]
    delete = ("topics", "delete", "--topic", "a", "--topic", "b", "--topic", "c", "--yes")
    ended = kontroller(*delete, "-o", "json")
    assert [(each["topic"], each["result"]) for each in document(ended)] == [
        ("a", "missing"), ("b", "failed"), ("c", "marked"),
    ]  # fmt: skip
    assert ended.exit_code == 1
    assert ended.stderr.splitlines()[-1] == (
        "kontroller: topic a: unknown topic or partition (UNKNOWN_TOPIC_OR_PARTITION 3); nobody answers"
    )
    cluster.fails["delete"] = [refuse_missing("a")]
    ended = kontroller(*delete, "--if-exists")
    assert (ended.exit_code, ended.stdout.splitlines()[0]) == (0, "topic a does not exist")


def test_an_election_that_fails_says_so_on_standard_error_beside_its_document(cluster: SimulatedCluster) -> None:
    error = Refused("orders-0", ErrorCode.preferred_leader_not_available, None)
    cluster.elected = {ORDERS: error, OTHER: None}
    ended = kontroller("elect", "preferred", "--all-topic-partitions", "-o", "json")
    assert [each["error"] for each in document(ended)] == [str(error), None]
    assert (ended.exit_code, one_line(ended)) == (1, f"kontroller: {error}; 1 of 2 partitions are led as was asked")


def test_features_are_the_json_of_the_specification_or_yaml_or_a_table(cluster: SimulatedCluster) -> None:
    cluster.features = {"f": 2}
    ended = kontroller("features", "describe")
    assert ended.stdout.startswith('{\n\t"status": "OK",\n\t"supported_features"')
    assert document(ended) == yaml.safe_load(kontroller("features", "describe", "-o", "yaml").stdout)
    table = kontroller("features", "describe", "-o", "table").stdout.splitlines()
    assert table[0] == "epoch 3, as h:9092 says"
    assert [line.split() for line in table[2:]] == [
        ["FEATURE", "FINALIZED", "SUPPORTED"], ["f", "2", "1", "to", "5"],
    ]  # fmt: skip


def test_a_change_whose_outcome_is_unknown_is_not_called_failed(cluster: SimulatedCluster) -> None:
    unknown = OutcomeUnknown("h:9092 did not answer: it may have been done; describe it first")
    delete = ("topics", "delete", "--topic", "orders", "--yes")
    cluster.fails["delete"] = [unknown, unknown]
    ended = kontroller(*delete)
    assert (ended.exit_code, ended.stdout) == (1, "topic orders may be deleted: describe it\n")
    assert document(kontroller(*delete, "-o", "json"))[0]["result"] == "unknown"
    cluster.alteration = Alteration(steps=(AlteredStep(what="configurations", error=unknown),))
    ended = kontroller("topics", "alter", "--topic", "orders", "-o", "json")
    assert (ended.exit_code, document(ended)["steps"][0]["result"]) == (1, "unknown")


def test_titles_of_what_is_confirmed_are_no_part_of_the_document(cluster: SimulatedCluster) -> None:
    for command in (UPDATE, ("features", "disable", "--features", "f")):
        ended = kontroller(*command, "--yes")
        assert document(ended)["status"] == "OK"
        assert "Please confirm" in ended.stderr
    ended = kontroller("topics", "delete", "--topic", "t", "--yes", "-o", "json")
    assert document(ended)[0]["result"] == "marked"


def test_topics_whose_names_begin_alike_are_told_apart(cluster: SimulatedCluster) -> None:
    names = [f"{'x' * 200}{number}" for number in (1, 2)]
    cluster.present = {ORDERS._replace(topic=TopicName(name)): () for name in names}
    shown = kontroller("topics", "list").stdout
    assert all(f"{name} " in shown for name in names)


def test_a_person_is_told_that_topics_marked_for_deletion_are_unknown(cluster: SimulatedCluster) -> None:
    assert "marked for deletion: unknown, because only ZooKeeper knows it" in kontroller("topics", "list").stdout
    cluster.marked = (TopicName("going"),)
    shown = kontroller("topics", "list").stdout
    assert "unknown" not in shown
    assert "going    marked for deletion" in shown


# Errors


ERRORS = {
    "AdminRequestFailed": (
        Refused("topic t", ErrorCode.unknown_server_error, "what it was"),
        "topic t: what it was (UNKNOWN_SERVER_ERROR -1, AdminRequestFailed 21 in KIP-4)",
    ),
    "NotControllerForAdminRequest": (
        Refused("topic t", ErrorCode.not_controller, None),
        "topic t: not controller (NOT_CONTROLLER 41, NotControllerForAdminRequest 22 in KIP-4)",
    ),
    "an outcome that is unknown": (
        OutcomeUnknown("h:9092 closed the connection: it may have been done; describe it first"),
        "h:9092 closed the connection: it may have been done; describe it first",
    ),
    "some that are refused": (
        PartlyRefused((refuse_missing("a"), refuse_missing("b")), "1 of 3 were changed"),
        "topic a: unknown topic or partition (UNKNOWN_TOPIC_OR_PARTITION 3); topic b: unknown topic or partition "
        "(UNKNOWN_TOPIC_OR_PARTITION 3); 1 of 3 were changed",
    ),
    "another update that runs": (
        UpdateInProgress("another update of features runs: await it, then ask again"),
        "another update of features runs: await it, then ask again",
    ),
    "words of a server in several lines": (AdminError("so\n  it is\n"), "so it is"),
}


@pytest.mark.parametrize(("error", "said"), ERRORS.values(), ids=ERRORS)
def test_an_error_is_one_line_on_standard_error(cluster: SimulatedCluster, error: AdminError, said: str) -> None:
    cluster.fails["create"] = [error]
    ended = kontroller("topics", "create", "--topic", "t", "-o", "json")
    assert (ended.exit_code, ended.stdout, one_line(ended)) == (1, "", f"kontroller: {said}")


WRONG = {
    "an option is missing": (
        ("topics", "create"),
        "Missing option '--topic' (kontroller topics create --help says more)",
    ),
    "an option is none": (("topics", "list", "--nothing"), "No such option: --nothing"),
    "a value is none": (
        ("cluster", "describe", "-o", "xml"),
        "Invalid value for '--output' / '-o': 'xml' is not one of",
    ),
    "a command is none": (("topics", "nothing"), "No such command 'nothing'"),
    "an id is none": (("ready", "--bootstrap-server", "h:1", "--broker-id", "x"), "should be a valid integer"),
    "a time is none": (("topics", "list", "--timeout-ms", "0"), "should be greater than or equal to 1"),
}


@pytest.mark.parametrize(("arguments", "said"), WRONG.values(), ids=WRONG)
def test_a_command_line_that_cannot_be_read_is_said_in_one_line_too(arguments: tuple[str, ...], said: str) -> None:
    ended = kontroller(*arguments)
    assert (ended.exit_code, ended.stdout) == (2, "")
    assert said in one_line(ended)


def test_a_group_without_a_command_shows_its_help() -> None:
    ended = kontroller("topics")
    assert ended.exit_code == 2
    assert "Usage:" in ended.output
    assert "describe" in ended.output


# Confirmations


@pytest.mark.parametrize(("answer", "is_done"), [("y\n", True), ("\n", True), ("n\n", False), ("what\n", False)])
def test_features_are_updated_where_somebody_agrees(cluster: SimulatedCluster, answer: str, is_done: bool) -> None:
    ended = kontroller(*UPDATE, stdin=answer)
    assert ("update" in cluster.asked) == is_done
    assert ended.exit_code == (0 if is_done else 1)
    assert "1. f from none (existing) to v2 (new)" in ended.stderr
    assert ("nothing is changed" in ended.stderr) != is_done


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("update", "--feature-upgrade", "f:0"), "f cannot be finalized at 0"),
        (("update", "--feature-upgrade", "f:1", "--feature-force-downgrade", "f:1"), "f is named twice"),
        (("update",), "no feature is named: name at least one"),
        (("disable", "--features", "f,,g"), "a feature has an empty name"),
        (("disable", "--features", "f,f"), "f is named twice"),
    ],
)
def test_nobody_is_asked_to_confirm_what_makes_no_sense(
    cluster: SimulatedCluster, arguments: tuple[str, ...], said: str
) -> None:
    ended = kontroller("features", *arguments, stdin="y\n")
    assert (ended.exit_code, cluster.asked) == (2, [])
    assert said in one_line(ended)


def test_nobody_who_could_confirm_it_is_a_wrong_command(cluster: SimulatedCluster) -> None:
    ended = kontroller(*UPDATE)
    assert (ended.exit_code, cluster.asked) == (2, ["features"])
    assert "there is no terminal to confirm this: give --yes" in ended.stderr


def test_levels_that_changed_after_they_were_shown_are_to_be_confirmed_anew(cluster: SimulatedCluster) -> None:
    cluster.features = {"f": 3}
    cluster.changes_meanwhile = {"f": 5}
    lower = ("features", "update", "--feature-force-downgrade", "f:2")
    ended = kontroller(*lower, stdin="y\n")
    assert (ended.exit_code, "update" in cluster.asked) == (1, False)
    assert "1. f from v3 (existing) to v2 (new)" in ended.stderr
    assert ended.stderr.splitlines()[-1].endswith(
        "The change would now be: f from v5 (existing) to v2 (new); run the command again"
    )
    assert kontroller(*lower, stdin="y\n").exit_code == 0


# Time


def test_what_a_person_takes_to_confirm_is_not_of_the_time_of_a_command(
    cluster: SimulatedCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    now_s = 100.0
    monkeypatch.setattr("kontroller.cli.administering.connection.time.monotonic", lambda: now_s)

    def hesitate() -> str:
        nonlocal now_s
        now_s += 1000
        return "y\n"

    ended = kontroller(*UPDATE, "--timeout-ms", "1000", stdin="y\n")
    assert ended.exit_code == 0
    monkeypatch.setattr("sys.stdin.readline", hesitate)
    assert kontroller(*UPDATE, "--timeout-ms", "1000", stdin="y\n").exit_code == 0
    assert set(cluster.timeouts_ms) - {None} == {1000}


def test_what_properties_allow_is_the_time_of_a_command_too(cluster: SimulatedCluster, tmp_path: Path) -> None:
    properties = tmp_path / "client.properties"
    properties.write_text("default.api.timeout.ms=4000\n")
    assert kontroller("topics", "list", "--command-config", str(properties)).exit_code == 0
    assert cluster.timeouts_ms == [4000]


@pytest.mark.parametrize("command", [UPDATE, ("features", "disable", "--features", "f")])
def test_the_properties_limit_a_change_of_features_too(
    cluster: SimulatedCluster, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, command: tuple[str, ...]
) -> None:
    monkeypatch.setattr("kontroller.cli.administering.connection.time.monotonic", lambda: 0.0)
    properties = tmp_path / "client.properties"
    properties.write_text("default.api.timeout.ms=4000\n")
    assert kontroller(*command, "--yes", "--command-config", str(properties)).exit_code == 0
    assert set(cluster.timeouts_ms) - {None} == {4000}


def test_time_that_is_over_between_two_questions_is_said(
    cluster: SimulatedCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    passing_s = iter(range(100))
    monkeypatch.setattr("kontroller.cli.administering.connection.time.monotonic", lambda: float(next(passing_s)))
    ended = kontroller("topics", "delete", "--topic", "a", "--topic", "b", "--yes", "--timeout-ms", "500")
    assert cluster.asked == ["delete"]
    assert "it did not happen within 500 ms: raise --timeout-ms" in ended.stderr


# The commands of Kafka 4's features tool

QUORUM = ("metadata.version", "group.version", "share.version")


def test_a_release_is_mapped_to_levels_in_the_words_of_kafka_s_tool(cluster: SimulatedCluster) -> None:
    ended = kontroller("features", "version-mapping", "--release-version", "4.0")
    assert ended.stdout.splitlines()[:3] == ["metadata.version=25 (4.0)", "kraft.version=1", "transaction.version=2"]
    assert document(kontroller("features", "version-mapping", "-o", "json"))["group.version"] == 1
    needs = ("--feature", "eligible.leader.replicas.version=1", "--feature", "group.version=1")
    assert kontroller("features", "feature-dependencies", *needs).stdout.splitlines() == [
        "eligible.leader.replicas.version=1 requires:",
        "    metadata.version=23 (4.0-IV1)",
        "group.version=1 has no dependencies.",
    ]
    assert cluster.asked == []
    ended = kontroller("features", "version-mapping", "--release-version", "2.8")
    assert (ended.exit_code, "Unknown release version '2.8'" in one_line(ended)) == (2, True)


def test_an_upgrade_to_a_release_changes_what_is_below_it(cluster: SimulatedCluster) -> None:
    cluster.supported = QUORUM
    cluster.features = {"metadata.version": 25, "group.version": 1, "kraft.version": 1, "transaction.version": 2}
    ended = kontroller("features", "upgrade", "--release-version", "4.1", "--dry-run")
    assert "metadata.version can be upgraded to 27." in ended.stdout
    assert cluster.asked == ["features", "validate", "features"]
    ended = kontroller("features", "upgrade", "--release-version", "4.1", stdin="y\n")
    assert ended.stdout.splitlines() == [
        "eligible.leader.replicas.version was upgraded to 1.",
        "metadata.version was upgraded to 27.",
    ]
    ended = kontroller("features", "upgrade", "--release-version", "4.1")
    assert (ended.exit_code, ended.stdout) == (
        0,
        "every feature is at this level already, so there is nothing to upgrade\n",
    )
    ended = kontroller("features", "downgrade", "--release-version", "4.0", "--yes", "-o", "json")
    assert document(ended) == {"metadata.version": 25, "eligible.leader.replicas.version": 0}
    ended = kontroller("features", "downgrade", "--feature", "group.version=0", stdin="n\n")
    assert (ended.exit_code, cluster.features["group.version"]) == (1, 1)


def test_a_cluster_with_zookeeper_has_no_metadata_version(cluster: SimulatedCluster) -> None:
    ended = kontroller("features", "upgrade", "--release-version", "4.1", "--yes")
    assert ended.exit_code == 1
    assert "a cluster with ZooKeeper follows inter.broker.protocol.version" in one_line(ended)
    assert "update" not in cluster.asked


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("--release-version", "4.1", "--feature", "group.version=1"),
        ("--feature", "group.version"),
        ("--feature", "group.version=x"),
        ("--feature", "f=1", "--feature", "f=2"),
    ],
)
def test_levels_that_make_no_sense_are_a_wrong_command(cluster: SimulatedCluster, arguments: tuple[str, ...]) -> None:
    assert kontroller("features", "upgrade", *arguments, "--yes").exit_code == 2
    assert cluster.asked == []
