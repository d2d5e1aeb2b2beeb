"""The history's job: Spark in one pod, given the journals that there are, on a volume that is not the chart's."""

import json
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from devcluster.clusters.kubernetes import CommandError
from devcluster.filling.parts import Part
from kontroller.history.reports.names import read_names
from tests.unit.chart.rendering import (
    CONTROLLER_ON,
    PROJECT,
    RELEASE_NAMESPACE,
    SELF_CONTAINED,
    Object,
    container,
    find_object,
    render,
)

pytestmark = pytest.mark.needs(Part.HELM)

ON: Final = (*SELF_CONTAINED, "--set", "history.enabled=true")
EXAMPLES: Final = PROJECT / "examples" / "history"
ELSEWHERE: Final = "http://other-controller.other.svc:9404/journal"


def job(*values: str) -> Object:
    """The spec of the CronJob."""
    spec: Object = find_object(render(*values), "CronJob", "kontroller-history")["spec"]
    return spec


def pod(*values: str) -> Object:
    """The spec of the job's pods."""
    spec: Object = job(*values)["jobTemplate"]["spec"]["template"]["spec"]
    return spec


def steps(*values: str) -> tuple[Any, Any]:
    """The containers that take in and report."""
    spec = pod(*values)
    (ingest,) = spec["initContainers"]
    (report,) = spec["containers"]
    return ingest, report


def journals(*values: str) -> list[str]:
    ingest, _ = steps(*values)
    return [each.removeprefix("--journal=") for each in ingest["args"] if each.startswith("--journal=")]


def test_without_being_asked_for_there_is_no_job() -> None:
    assert [each for each in render(*SELF_CONTAINED) if "history" in each["metadata"]["name"]] == []


def test_it_takes_in_the_journal_of_each_controller_and_those_that_are_named() -> None:
    own = [
        f"http://kontroller-controller-{number}.kontroller-controller.{RELEASE_NAMESPACE}.svc:9999/journal"
        for number in range(3)
    ]
    values = ("--set", "controller.replicas=3,controller.metricsPort=9999")
    assert journals(*ON, *values) == own
    controller = container("controller", *values)
    assert "--metrics-port=9999" in controller["args"]
    assert journals(*ON, *values, "--set", f"history.journals={{{ELSEWHERE}}}") == [*own, ELSEWHERE]
    alone = ("--set", f"history.enabled=true,history.journals={{{ELSEWHERE}}}")
    assert journals(*alone) == [ELSEWHERE]
    assert journals(*ON, *alone, "--set", "controller.journal.enabled=false") == [ELSEWHERE]


def test_a_topic_is_taken_in_instead_of_what_the_controllers_serve() -> None:
    topic = r"topic.name=journal,{0}.topic.bootstrapServers=kafka-0:9092\,kafka-1:9092"
    reads = ("--set", "history." + topic.format("history"))
    assert journals(*ON, *reads, "--set", f"history.journals={{{ELSEWHERE}}}") == [ELSEWHERE]
    ingest, _ = steps(*ON, *reads)
    assert ingest["args"][2:] == ["--topic=journal", "--bootstrap-server=kafka-0:9092,kafka-1:9092"]
    assert steps("--set", "history.enabled=true", *reads)[0]["args"] == ingest["args"]
    controller = container("controller", *ON, "--set", "controller.journal." + topic.format("controller.journal"))
    written = {each["name"]: each.get("value") for each in controller["env"] if "JOURNAL_" in each["name"]}
    assert written["KONTROLLER_JOURNAL_TOPIC"] == "journal"
    assert written["KONTROLLER_JOURNAL_BOOTSTRAP_SERVER"] == "kafka-0:9092,kafka-1:9092"


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ((*ON, "--set", "history.topic.name=t"), "history.topic.bootstrapServers go together"),
        ((*ON, "--set", "controller.journal.topic.bootstrapServers=b:1"), "controller.journal.topic.name and"),
        ((*ON, "--set", "history.topic.name=t,history.topic.bootstrapServers=b"), "/history/topic/bootstrapServers"),
        (
            ("--set", "history.enabled=true"),
            "needs a journal: set controller.enabled .*, or name some in history.journals",
        ),
        ((*ON, "--set", "controller.journal.enabled=false"), "history.enabled needs a journal"),
        ((*ON, "--set", "history.driverMemory=4g"), "history.driverMemory 4g: set it to 5120Mi or more"),
        (
            (*ON, "--set", "history.resources.limits.memory=2000Mi"),
            "limits.memory is 2000Mi.* set it to 3072Mi or more",
        ),
        ((*ON, "--set", "history.driverMemory=2"), "/history/driverMemory"),
        ((*ON, "--set", "history.schedule=hourly"), "/history/schedule"),
        ((*ON, "--set", "history.journals={kafka-0}"), "/history/journals/0"),
        ((*ON, "--set", "history.claimName="), "/history/claimName"),
        ((*ON, "--set", "history.compaction.forgetDays=0"), "/history/compaction/forgetDays"),
    ],
)
def test_values_with_which_it_could_not_work_are_refused(values: tuple[str, ...], message: str) -> None:
    with pytest.raises(CommandError, match=message):
        render(*values)


def test_memory_that_is_just_enough_or_unlimited_is_taken() -> None:
    assert job(*ON, "--set", "history.driverMemory=1500m,history.resources.limits.memory=2524Mi")
    assert job(*ON, "--set", "history.driverMemory=9g,history.resources.limits=null")


@pytest.mark.parametrize("schedule", ["@daily", "*/5 0-6 * * 1,5"])
def test_the_job_has_the_schedule_and_the_node_of_the_values(schedule: str) -> None:
    scheduled = ("--set-string", "history.schedule=" + schedule.replace(",", r"\,"))
    placed = (
        "history.suspend=true,history.nodeSelector.disk=ssd,history.podAnnotations.a=b,imagePullSecrets[0].name=pull"
    )
    objects = render(*CONTROLLER_ON, *scheduled, "--set", f"history.enabled=true,{placed}")
    found = find_object(objects, "CronJob", "kontroller-history")
    assert found["spec"]["schedule"] == schedule
    assert found["spec"]["jobTemplate"]["spec"]["template"]["spec"]["nodeSelector"] == {"disk": "ssd"}


def test_spark_runs_in_the_pod_alone_and_both_steps_use_the_same_tables() -> None:
    ingest, report = steps(*ON, "--set", "history.cores=3,history.driverMemory=1g,history.reportDays=7")
    assert ingest["command"] == report["command"]
    program, *options, file = ingest["command"]
    assert (program, file) == ("spark-submit", "/opt/spark/history.py")
    assert {"--master=local[3]", "--driver-memory=1g", "--conf=spark.driver.bindAddress=127.0.0.1"} <= set(options)
    assert ingest["args"][:2] == ["ingest", "--history=/history/tables"]
    assert report["args"] == ["report", "--history=/history/tables", "--output=/history/report", "--days=7"]
    _, promising = steps(*ON, "--set", "history.objective=99.95")
    assert promising["args"][-1] == "--objective=99.95"
    taking_in, _ = steps(*ON, "--set", "history.format=delta")
    assert taking_in["args"][-1] == "--format=delta"


def test_another_job_keeps_less_of_the_same_tables_and_waits_for_this_one() -> None:
    values = ("--set", "history.compaction.forgetDays=400,history.nodeSelector.disk=ssd")
    compaction = find_object(render(*ON, *values), "CronJob", "kontroller-history-compaction")["spec"]
    template = compaction["jobTemplate"]["spec"]
    (container,) = template["template"]["spec"].pop("containers")
    _, report = steps(*ON, *values)
    assert container == report | {
        "name": "compact", "args": ["compact", "--history=/history/tables", "--forget-days=400"],
    }  # fmt: skip
    others = {name: value for name, value in pod(*ON, *values).items() if name not in ("initContainers", "containers")}
    assert template["template"]["spec"] == others
    assert template["backoffLimit"] == 7, "it is refused while the other job writes"
    off = render(*ON, "--set", "history.compaction.enabled=false")
    assert [each["metadata"]["name"] for each in off if each["kind"] == "CronJob"] == ["kontroller-history"]
    kept = find_object(render(*ON), "CronJob", "kontroller-history-compaction")["spec"]["jobTemplate"]["spec"]
    assert kept["template"]["spec"]["containers"][0]["args"] == ["compact", "--history=/history/tables"]


def test_the_longest_name_leaves_room_for_what_kubernetes_appends() -> None:
    objects = render(*ON, "--set", f"fullnameOverride={'n' * 63}")
    labels = [f"{each['metadata']['name']}-0123456789" for each in objects if each["kind"] == "StatefulSet"]
    assert labels
    assert max(map(len, labels)) <= 63


def test_two_jobs_never_run_at_once_and_one_that_hangs_is_ended() -> None:
    spec = job(*ON)
    assert spec["concurrencyPolicy"] == "Forbid"
    assert spec["jobTemplate"]["spec"]["activeDeadlineSeconds"] == 3600


def test_the_pods_have_no_token_and_can_write_only_where_they_must() -> None:
    for step in steps(*ON):
        assert step["securityContext"]["readOnlyRootFilesystem"]
        assert {mount["mountPath"] for mount in step["volumeMounts"]} == {"/tmp", "/history"}
    assert pod(*ON)["automountServiceAccountToken"] is False


def test_the_examples_of_volume_and_reader_fit_the_job() -> None:
    volume, reader = (yaml.safe_load((EXAMPLES / name).read_text()) for name in ("volume.yaml", "reader.yaml"))
    claims = [
        volume["persistentVolumeClaim"]["claimName"]
        for spec in (reader["spec"], pod(*ON))
        for volume in spec["volumes"]
        if "persistentVolumeClaim" in volume
    ]
    assert claims == [volume["metadata"]["name"]] * 2


def test_the_jobs_may_read_the_journals_whoever_else_may_read_metrics() -> None:
    prometheus = {"namespaceSelector": {"matchLabels": {"team": "monitoring"}}}
    restricted = (
        "--set",
        "networkPolicy.enabled=true",
        "--set-json",
        f"networkPolicy.monitoring={json.dumps([prometheus])}",
    )

    def readers(*values: str) -> list[Object] | None:
        rules = find_object(render(*values), "NetworkPolicy", "kontroller-controller")["spec"]["ingress"]
        (rule,) = (each for each in rules if {"port": "metrics"} in each["ports"])
        found: list[Object] | None = rule.get("from")
        return found

    labels = job(*ON)["jobTemplate"]["spec"]["template"]["metadata"]["labels"]
    assert readers(*ON, "--set", "networkPolicy.enabled=true") == [{"podSelector": {"matchLabels": labels}}]
    assert readers(*SELF_CONTAINED, *restricted) == [prometheus]
    assert readers(*ON, *restricted) == [prometheus, {"podSelector": {"matchLabels": labels}}]

    objects = render(*ON, *restricted)
    own = find_object(objects, "NetworkPolicy", "kontroller-history")
    assert own["spec"] == {"podSelector": {"matchLabels": labels}, "policyTypes": ["Ingress"], "ingress": []}


SERVED: Final = (*ON, "--set", "history.serve.enabled=true,history.serve.port=9500")


def test_the_report_is_served_only_on_request_and_only_read() -> None:
    assert "reports" not in str([each["metadata"]["name"] for each in render(*ON)])
    objects = render(*SERVED)
    deployment = find_object(objects, "Deployment", "kontroller-reports")["spec"]
    spec = deployment["template"]["spec"]
    (served,) = spec["containers"]
    assert served["args"][:3] == ["history", "serve", "--report=/history/report"]
    assert {"name": "history", "mountPath": "/history", "readOnly": True} in served["volumeMounts"]
    assert served["resources"]["limits"] == {"memory": "256Mi"}
    claims = [each["persistentVolumeClaim"] for each in spec["volumes"] if "persistentVolumeClaim" in each]
    assert claims == [{"claimName": "kontroller-history"}]
    service = find_object(objects, "Service", "kontroller-reports")["spec"]
    assert service["selector"].items() <= deployment["template"]["metadata"]["labels"].items()
    assert [port["port"] for port in service["ports"]] == [9500]


def test_only_those_who_read_metrics_may_connect_to_the_served_report() -> None:
    policies = (*SERVED, "--set", "networkPolicy.enabled=true")
    policy = find_object(render(*policies), "NetworkPolicy", "kontroller-reports")["spec"]
    assert policy["ingress"] == []
    monitoring = "networkPolicy.monitoring[0].namespaceSelector.matchLabels.name=monitoring"
    policy = find_object(render(*policies, "--set", monitoring), "NetworkPolicy", "kontroller-reports")["spec"]
    assert policy["ingress"][0]["from"] == [{"namespaceSelector": {"matchLabels": {"name": "monitoring"}}}]
    assert policy["ingress"][0]["ports"] == [{"port": "metrics"}]


def test_names_of_clusters_and_topics_are_a_file_of_the_report(tmp_path: Path) -> None:
    _, report = steps(*ON)
    assert "names" not in str(report)
    named = (*ON, "--set", "history.names.clusters[0].id=c,history.names.clusters[0].owner=team")
    _, report = steps(*named)
    assert "--names=/etc/kontroller/names/names.yaml" in report["args"]
    assert {"name": "names", "mountPath": "/etc/kontroller/names", "readOnly": True} in report["volumeMounts"]
    assert {"name": "names", "configMap": {"name": "kontroller-history-names"}} in pod(*named)["volumes"]
    file = tmp_path / "names.yaml"
    file.write_text(find_object(render(*named), "ConfigMap", "kontroller-history-names")["data"]["names.yaml"])
    assert read_names(file).describe_cluster("c")["owner"] == "team"
