"""Simulates the job controller: runs the command of each job on this machine, with its service account's rights."""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Final

from devcluster.clusters.kubernetes import CommandError, KubernetesApi
from tests.unit.chart.rendering import Object

_POLL_S: Final = 0.2


class RunJobs:
    """The jobs that were run, and the output of each."""

    def __init__(self, api: KubernetesApi) -> None:
        self.printed: dict[str, str] = {}
        self.troubles: list[str] = []
        self._results: dict[str, int] = {}
        self._api = api
        self._is_over = threading.Event()

    def run_until_over(self) -> None:
        while not self._is_over.wait(_POLL_S):
            try:
                for job in self._api.get("jobs", "--all-namespaces")["items"]:
                    self._run_once(job)
            except CommandError as error:
                # While definitions come and go, the API server may briefly not know which kinds it serves.
                self.troubles.append(str(error))

    def end(self) -> None:
        self._is_over.set()

    def _run_once(self, job: Object) -> None:
        name, namespace, uid = (job["metadata"][field] for field in ("name", "namespace", "uid"))
        if "conditions" in job.get("status", {}):
            return
        if uid not in self._results:
            pod = job["spec"]["template"]["spec"]
            rights = self._api.service_account_kubeconfig(namespace, pod["serviceAccountName"])
            ran = subprocess.run(
                [sys.executable, "-m", "kontroller", *pod["containers"][0]["args"]],
                env={**os.environ, "KUBECONFIG": str(rights)},
                capture_output=True,
                text=True,
                timeout=60,
                check=False,
            )
            self.printed[name] = ran.stdout + ran.stderr
            self._results[uid] = ran.returncode
        status = json.dumps({"status": _make_succeeded() if self._results[uid] == 0 else _make_failed()})
        self._api.kubectl(
            "patch", "job", name, "-n", namespace, "--subresource=status", "--type=merge", "--patch", status
        )


@contextmanager
def run_jobs(api: KubernetesApi) -> Iterator[RunJobs]:
    """Run jobs while the block runs."""
    jobs = RunJobs(api)
    thread = threading.Thread(target=jobs.run_until_over)
    thread.start()
    try:
        yield jobs
    except CommandError as error:
        raise CommandError(f"{error}; the jobs printed {jobs.printed}, troubles: {jobs.troubles}") from error
    finally:
        jobs.end()
        thread.join()


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _make_succeeded() -> Object:
    conditions = [{"type": each, "status": "True"} for each in ("SuccessCriteriaMet", "Complete")]
    return {"startTime": _now(), "completionTime": _now(), "succeeded": 1, "conditions": conditions}


def _make_failed() -> Object:
    conditions = [{"type": each, "status": "True"} for each in ("FailureTarget", "Failed")]
    return {"startTime": _now(), "failed": 1, "conditions": conditions}
