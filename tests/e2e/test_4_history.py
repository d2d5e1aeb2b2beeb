"""The history of the cluster, reported by the chart's job and by Spark on Kubernetes."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from devcluster.images import Image
from devcluster.node.pods import PodCluster
from tests.e2e.manifests import cluster, topic
from tests.e2e.release import NAMESPACE, PROJECT, Release

pytestmark = [
    pytest.mark.real,
    pytest.mark.timeout(2400),
]

EXAMPLES: Final = PROJECT / "examples" / "history"
SPARK_SILENCE_S: Final = 1800
"""Only a hung job takes so long, even beside the pipeline's tests, which compute all the time."""
# Less than the default, because all of it shares this machine.
ON: Final = (
    "history.enabled=true,history.suspend=true,history.driverMemory=1g,"
    "history.resources.requests.memory=1Gi,history.resources.limits.memory=2Gi"
)
# As in examples/history/spark-application.yaml, for a smaller cluster.
SUBMIT: Final = """
exec spark-submit --master k8s://https://$KUBERNETES_SERVICE_HOST:$KUBERNETES_SERVICE_PORT --deploy-mode cluster \
    --name history-audit $CONFIGURATION local:///opt/spark/history.py audit --history=/history/tables
"""


@pytest.fixture(scope="module")
def history(pods: PodCluster, release: Release) -> Iterator[Release]:
    """The release with the history's job, on its volume; both are removed at the end."""
    pods.load(Image.HISTORY)
    release.kubectl("apply", "--filename", str(EXAMPLES / "volume.yaml"))
    release.upgrade("--set", ON)
    yield release
    release.upgrade()
    release.kubectl("delete", "--filename", str(EXAMPLES / "volume.yaml"), "--timeout=60s")


def find_final_condition(release: Release, job: str) -> str:
    """Return the final condition of a job; empty while it runs."""
    conditions = release.get("job", job)["status"].get("conditions", [])
    return next((each["type"] for each in conditions if each["type"] in ("Complete", "Failed")), "")


def run_to_its_end(release: Release, job: str) -> None:
    release.wait_for(lambda: find_final_condition(release, job), f"the job {job} ends", silence_s=SPARK_SILENCE_S)
    logs = release.kubectl("logs", f"job/{job}", "--all-containers", "--prefix")
    assert find_final_condition(release, job) == "Complete", logs


def rows(report: Path, table: str) -> list[dict[str, Any]]:
    """Return the rows of a table of the report."""
    return [json.loads(line) for line in (report / "tables" / f"{table}.json").read_text().splitlines()]


def has_time_after(release: Release, topic_name: str) -> bool:
    """Return True if a journal has a later moment; otherwise intervals from the topic's creation have no duration."""
    records = release.journal()
    created = [each["event_time_us"] for each in records if each.get("topic") == topic_name]
    return bool(created) and any(each["event_time_us"] > max(created) + 1_000_000 for each in records)


def replace_image(pods: PodCluster, manifest: str) -> str:
    return manifest.replace("image: kontroller", f"image: {pods.images}kontroller")


def test_a_job_writes_a_report_of_what_happened_in_the_cluster(
    history: Release, pods: PodCluster, tmp_path: Path
) -> None:
    history.apply(cluster("demo"), topic("remembered", [[1, 2], [2, 3]]))
    history.wait_ready("kafkatopic", "remembered")
    history.wait_for(lambda: has_time_after(history, "remembered"), "some time after the topic is recorded")
    history.kubectl("create", "job", "--from=cronjob/kontroller-history", "history-now")
    run_to_its_end(history, "history-now")

    history.kubectl("apply", "--filename", "-", stdin=replace_image(pods, (EXAMPLES / "reader.yaml").read_text()))
    history.kubectl("wait", "--for=condition=Ready", "pod/history-reader", "--timeout=120s")
    history.kubernetes.kubectl("cp", f"{NAMESPACE}/history-reader:/history/report", str(tmp_path / "report"))
    history.kubectl("delete", "pod", "history-reader", "--grace-period=0", "--force")

    page = (tmp_path / "report" / "index.html").read_text()
    assert "remembered" in page
    days = rows(tmp_path / "report", "availability_daily")
    assert {(each["partitions"], each["availability"]) for each in days if each["topic"] == "remembered"} == {(2, 1)}
    assert rows(tmp_path / "report", "findings") == []
    assert rows(tmp_path / "report", "violations") == []


@pytest.mark.skipif(not os.environ.get("SPARK_ON_KUBERNETES"), reason="takes minutes more: set SPARK_ON_KUBERNETES=1")
def test_the_audit_runs_as_driver_and_executor_on_kubernetes(history: Release, pods: PodCluster) -> None:
    history.kubectl("apply", "--filename", str(EXAMPLES / "spark-account.yaml"))
    history.apply(submission(f"{pods.images}kontroller-history:0.1.0"))
    run_to_its_end(history, "submit-audit")

    def phases(role: str) -> list[str]:
        return [each["status"]["phase"] for each in history.get("pods", "--selector", f"spark-role={role}")["items"]]

    assert phases("driver") == ["Succeeded"]
    said = history.kubectl("logs", "--selector", "spark-role=driver", "--tail=-1")
    assert "No violation." in said
    # The driver itself works on no task.
    assert len(phases("executor")) == 1
    history.kubectl("delete", "job", "submit-audit", "--timeout=120s")
    history.kubectl("delete", "pods", "--selector", "spark-app-name=history-audit", "--timeout=120s")
    history.kubectl("delete", "--filename", str(EXAMPLES / "spark-account.yaml"))


def submission(image: str) -> dict[str, Any]:
    """Return a job that submits the audit to its own cluster, and ends like the driver."""
    configuration = {
        "spark.kubernetes.namespace": NAMESPACE,
        "spark.kubernetes.container.image": image,
        "spark.kubernetes.authenticate.driver.serviceAccountName": "spark",
        "spark.kubernetes.executor.deleteOnTermination": "false",
        "spark.driver.memory": "1g",
        "spark.executor.instances": "1",
        "spark.executor.memory": "1g",
        "spark.kubernetes.driver.request.cores": "100m",
        "spark.kubernetes.executor.request.cores": "100m",
        "spark.sql.shuffle.partitions": "4",
    }
    for role in ("driver", "executor"):
        volume = f"spark.kubernetes.{role}.volumes.persistentVolumeClaim.history"
        configuration |= {f"{volume}.mount.path": "/history", f"{volume}.options.claimName": "kontroller-history"}
    words = " ".join(f"--conf {key}={value}" for key, value in configuration.items())
    container = {
        "name": "submit",
        "image": image,
        "command": ["bash", "-c", SUBMIT],
        "env": [{"name": "CONFIGURATION", "value": words}],
    }
    spec = {"serviceAccountName": "spark", "restartPolicy": "Never", "containers": [container]}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "submit-audit"},
        "spec": {"backoffLimit": 0, "template": {"spec": spec}},
    }
