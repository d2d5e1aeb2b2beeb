"""Stands in for what runs jobs: runs the command of each on this machine, with the rights of its own service account."""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Final

from devcluster.kubernetes import KubernetesApi
from tests.real.chart.charts import Object

_POLL_S: Final = 0.2


class RunJobs:
    """The jobs that were run, and what each printed."""

    def __init__(self, api: KubernetesApi) -> None:
        self.printed: dict[str, str] = {}
        self._api = api
        self._is_over = threading.Event()

    def run_until_over(self) -> None:
        done: set[str] = set()
        while not self._is_over.wait(_POLL_S):
            for job in self._api.get("jobs", "--all-namespaces")["items"]:
                if job["metadata"]["uid"] not in done:
                    done.add(job["metadata"]["uid"])
                    self._run(job)

    def end(self) -> None:
        self._is_over.set()

    def _run(self, job: Object) -> None:
        name, namespace = job["metadata"]["name"], job["metadata"]["namespace"]
        pod = job["spec"]["template"]["spec"]
        (container,) = pod["containers"]
        rights = self._api.service_account_kubeconfig(namespace, pod["serviceAccountName"])
        ran = subprocess.run(
            [sys.executable, "-m", "controller_admin", *container["args"]],
            env={**os.environ, "KUBECONFIG": str(rights)},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        self.printed[name] = ran.stdout + ran.stderr
        status = json.dumps({"status": _succeeded() if ran.returncode == 0 else _failed()})
        self._api.kubectl(
            "patch", "job", name, "-n", namespace, "--subresource=status", "--type=merge", "--patch", status
        )


@contextmanager
def running_jobs(api: KubernetesApi) -> Iterator[RunJobs]:
    """Jobs are run as long as the block lasts."""
    jobs = RunJobs(api)
    thread = threading.Thread(target=jobs.run_until_over)
    thread.start()
    try:
        yield jobs
    finally:
        jobs.end()
        thread.join()


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _succeeded() -> Object:
    conditions = [{"type": each, "status": "True"} for each in ("SuccessCriteriaMet", "Complete")]
    return {"startTime": _now(), "completionTime": _now(), "succeeded": 1, "conditions": conditions}


def _failed() -> Object:
    conditions = [{"type": each, "status": "True"} for each in ("FailureTarget", "Failed")]
    return {"startTime": _now(), "failed": 1, "conditions": conditions}
