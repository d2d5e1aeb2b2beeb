"""The commands of the pages that users follow, word for word, on the cluster that `make try` gives them."""

from collections.abc import Iterator

import pytest

from devcluster.node.pods import PodCluster
from tests.e2e.pages.conftest import find_installed
from tests.e2e.pages.walks import DRAINING, GITOPS, INSTALLATION, OPERATIONS, TOUR, UNINSTALL, Reader

pytestmark = [pytest.mark.real, pytest.mark.timeout(1800)]


@pytest.fixture
def argo_cd(pods: PodCluster) -> Iterator[None]:
    """The settings of an Argo CD, which a page changes."""
    kubectl = pods.kubernetes.kubectl
    kubectl("create", "namespace", "argocd")
    kubectl("create", "configmap", "argocd-cm", "--namespace", "argocd")
    yield
    kubectl("delete", "namespace", "argocd", "--timeout=1m")


@pytest.fixture(scope="module")
def installed(reader: Reader) -> str:
    """The output of the installation, on which all other walks go on."""
    return reader.follow(INSTALLATION)


def test_the_installation_ends_with_the_message_that_was_written(installed: str) -> None:
    assert "kafkacluster.kontroller.dev/demo condition met" in installed
    assert "hello" in installed.split()
    assert "Phase:          Succeeded" in installed


@pytest.mark.usefixtures("installed")
def test_the_tour_moves_a_topic_and_loses_no_message(reader: Reader) -> None:
    printed = reader.follow(TOUR)
    assert "partitionreassignment.kontroller.dev/tour condition met" in printed
    assert "Processed a total of 23600 messages" in printed


@pytest.mark.usefixtures("installed")
def test_what_operators_look_at_is_there(reader: Reader) -> None:
    assert "kontroller_controller_epoch" in reader.follow(OPERATIONS)


@pytest.mark.usefixtures("installed")
def test_a_broker_s_log_shows_its_drain(reader: Reader) -> None:
    assert "broker 1 is drained and may be stopped" in reader.follow(DRAINING)


@pytest.mark.usefixtures("installed", "argo_cd")
def test_argo_cd_is_given_the_health_checks(reader: Reader) -> None:
    printed = reader.follow(GITOPS)
    assert "kafkacluster.kontroller.dev/demo condition met" in printed
    assert "configmap/argocd-cm patched" in printed


@pytest.mark.usefixtures("installed")
def test_nothing_is_left_after_the_uninstall(reader: Reader, pods: PodCluster) -> None:
    reader.follow(UNINSTALL)
    assert find_installed(pods) == []
