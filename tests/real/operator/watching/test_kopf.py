"""kopf under the operator on a real API server: missed events are found, its end is reported, and a restart mends it."""

import json
import signal
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from devcluster.clusters.kubernetes import KubernetesApi, KubernetesCluster
from devcluster.clusters.run_folder import RunFolder
from devcluster.running.processes import ManagedProcess, wait_until
from tests.real.operator.operated import (
    NAMESPACE,
    PROJECT,
    RELEASE,
    Objects,
    Operator,
    operate_namespace,
)
from tests.real.operator.watching.watched import (
    NOWHERE,
    a_topic,
    is_seen,
    remove_definition,
    restore_definition,
    run_watching_operator,
)

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]

ROLE = f"{RELEASE}-operator"
TOPICS = 40


@pytest.fixture
def objects(kubernetes_api: KubernetesCluster) -> Iterator[Objects]:
    with operate_namespace(kubernetes_api, NOWHERE) as found:
        yield found


def goes_on(operator: Operator, objects: Objects, name: str) -> None:
    """Wait until the operator is ready again and sees a new topic, and assert that it is still the same process."""
    wait_until(lambda: operator.trouble() is None, "it goes on")
    a_topic(objects, name)
    wait_until(lambda: is_seen(objects, name), "it watches")
    assert operator.process.is_running


def test_what_went_while_nobody_watched_is_known_and_kopf_writes_nothing(
    servers_folder: RunFolder, kubernetes_api: KubernetesCluster, objects: Objects
) -> None:
    if not isinstance(kubernetes_api, KubernetesApi):
        pytest.skip("it needs an API server of its own")
    for number in range(TOPICS):
        a_topic(objects, f"gone-{number}")
    with run_watching_operator(servers_folder, kubernetes_api) as operator:
        wait_until(lambda: operator.count("KafkaTopic") == TOPICS, "all are known")
        operator.process.send_signal(signal.SIGSTOP)
        try:
            kubernetes_api.kubectl("delete", "kafkatopic", "--all", "--namespace", NAMESPACE, "--wait=false")
            for each in objects.every("kafkatopic"):
                objects.patch("kafkatopic", each["metadata"]["name"], {"metadata": {"finalizers": None}})
            a_topic(objects, "stays")
            # An API server that was restarted does not know earlier versions: a watch from them is too old.
            kubernetes_api.restart()
        finally:
            operator.process.send_signal(signal.SIGCONT)
        wait_until(lambda: operator.count("KafkaTopic") == 1, "what is gone is known to be gone")
        wait_until(lambda: is_seen(objects, "stays"), "what came is known")
        assert operator.process.is_running
        assert "kopf" not in json.dumps(objects.get("kafkatopic", "stays"))


def test_an_api_server_that_stands_still_and_one_that_is_restarted_are_waited_for(
    servers_folder: RunFolder, kubernetes_api: KubernetesCluster, objects: Objects
) -> None:
    if not isinstance(kubernetes_api, KubernetesApi):
        pytest.skip("it needs an API server of its own")
    with run_watching_operator(servers_folder, kubernetes_api) as operator:
        kubernetes_api.process.kill()
        wait_until(lambda: operator.trouble() is not None, "it says that the API server does not answer")
        kubernetes_api.process.start()
        wait_until(lambda: operator.trouble() is None, "it goes on")
        kubernetes_api.process.send_signal(signal.SIGSTOP)
        try:
            wait_until(lambda: operator.trouble() is not None, "it says that the API server does not answer")
        finally:
            kubernetes_api.process.send_signal(signal.SIGCONT)
        goes_on(operator, objects, "afterwards")


def test_rights_that_are_taken_away_are_said_and_waited_for(
    servers_folder: RunFolder, kubernetes_api: KubernetesCluster, objects: Objects
) -> None:
    with run_watching_operator(servers_folder, kubernetes_api) as operator:
        binding = kubernetes_api.get("rolebinding", ROLE, "--namespace", NAMESPACE)
        kubernetes_api.kubectl("delete", "rolebinding", ROLE, "--namespace", NAMESPACE)
        wait_until(lambda: "403" in (operator.trouble() or ""), "it says that it may not")
        given = {**binding, "metadata": {"name": ROLE, "namespace": NAMESPACE}}
        kubernetes_api.kubectl("apply", "-f", "-", stdin=json.dumps(given))
        goes_on(operator, objects, "allowed")


def test_definitions_that_go_and_come_end_the_process_and_the_next_one_serves_what_is_there(
    servers_folder: RunFolder, kubernetes_api: KubernetesCluster, objects: Objects
) -> None:
    with ExitStack() as stack:
        stack.callback(restore_definition, kubernetes_api)
        operator = stack.enter_context(run_watching_operator(servers_folder, kubernetes_api))
        remove_definition(kubernetes_api)
        operator.wait_until_dead()
        assert operator.process.exit_code == 1
        assert "FeatureSet" in operator.log()
        assert "a new process must begin them again" in operator.log()

        operator.start()
        wait_until(lambda: "FeatureSet: no such kind" in (operator.trouble() or ""), "it says what is missing")
        a_topic(objects, "without-feature-sets")
        wait_until(lambda: is_seen(objects, "without-feature-sets"), "it serves what is there")

        restore_definition(kubernetes_api)
        operator.wait_until_dead()
        assert "FeatureSet is served now" in operator.log()

        operator.start()
        wait_until(lambda: operator.trouble() is None, "it serves all kinds")
        objects.apply("FeatureSet", "again", {"features": [{"name": "some.feature", "maxVersionLevel": 1}]})
        wait_until(lambda: bool(objects.condition("featureset", "again")), "it watches feature sets")


def test_kopf_run_with_the_module_of_the_handlers_works_for_development(
    servers_folder: RunFolder, kubernetes_api: KubernetesCluster, objects: Objects
) -> None:
    environment: dict[str, Any] = {
        "KUBECONFIG": str(kubernetes_api.service_account_kubeconfig(NAMESPACE, ROLE)),
        "PYTHONPATH": f"{PROJECT}:{PROJECT / 'operator'}",
        "KONTROLLER_NAMESPACE": NAMESPACE,
    }
    command = [
        sys.executable,
        "-m",
        "kopf",
        "run",
        "--namespace",
        NAMESPACE,
        "--module",
        "controller_operator.handlers",
    ]
    log = servers_folder.log("kopf-run")
    process = ManagedProcess("kopf-run", command, log_path=log, env=environment, ready=lambda: True)
    try:
        process.spawn()
        a_topic(objects, "developed")
        wait_until(lambda: is_seen(objects, "developed"), "it watches and works")
        process.send_signal(signal.SIGTERM)
        wait_until(lambda: not process.is_running, "it ends")
        assert process.exit_code == 0
        assert "operator ends" in log.read_text()
    finally:
        process.kill()
