"""The running cluster refuses everything beyond the rights of the chart's roles."""

import json
from collections.abc import Iterator

import pytest

from devcluster.clusters.kubernetes import CommandError
from tests.e2e.manifests import topic
from tests.e2e.release import NAME, NAMESPACE, Release

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]

OPERATOR = f"system:serviceaccount:{NAMESPACE}:{NAME}-operator"
EDITOR, VIEWER = "ed", "vi"


@pytest.fixture(scope="module", autouse=True)
def people(release: Release) -> Iterator[None]:
    """A user who may edit the namespace's objects, and one who may view them."""
    for person, role in ((EDITOR, "edit"), (VIEWER, "view")):
        release.kubectl("create", "rolebinding", person, f"--clusterrole={role}", f"--user={person}")
    yield
    release.kubectl("delete", "rolebinding", EDITOR, VIEWER)


def apply_as(release: Release, who: str, resource: dict[str, object]) -> str:
    return release.kubectl("apply", "--server-side", "--as", who, "-f", "-", stdin=json.dumps(resource))


def is_refused(release: Release, *arguments: str) -> bool:
    """Return True if the API server forbids a kubectl command; any other failure fails the test."""
    try:
        release.kubectl(*arguments)
    except CommandError as error:
        if "forbidden" not in str(error).lower():
            raise
        return True
    return False


def test_an_editor_of_the_namespace_has_topics(release: Release) -> None:
    apply_as(release, EDITOR, topic("ed-s-topic", [[1, 2]]))
    release.wait_ready("kafkatopic", "ed-s-topic")
    release.kubectl("delete", "kafkatopic", "ed-s-topic", "--as", EDITOR)


def test_an_editor_may_not_say_where_clusters_are_nor_finalize_features(release: Release) -> None:
    assert is_refused(release, "delete", "kafkacluster", "demo", "--as", EDITOR)
    assert is_refused(release, "delete", "featureset", "features", "--as", EDITOR)
    assert is_refused(release, "annotate", "kafkacluster", "demo", "a=b", "--as", EDITOR)


def test_nobody_but_the_operator_writes_a_status(release: Release) -> None:
    patch = ("patch", "kafkatopic", "orders", "--subresource=status", "--type=merge", "--patch", '{"status":{}}')
    assert is_refused(release, *patch, "--as", EDITOR)
    may = release.kubectl("auth", "can-i", "patch", "kafkatopics", "--subresource=status", "--as", OPERATOR)
    assert may.strip() == "yes"


def test_a_viewer_looks_and_changes_nothing(release: Release) -> None:
    assert "orders" in release.kubectl("get", "kafkatopics", "--as", VIEWER)
    with pytest.raises(CommandError, match="forbidden"):
        apply_as(release, VIEWER, topic("vi-s-topic", [[1, 2]]))


def test_the_operator_has_no_way_to_secrets_pods_or_specs_of_others(release: Release) -> None:
    assert is_refused(release, "get", "secrets", "--as", OPERATOR)
    assert is_refused(release, "delete", "pod", f"{NAME}-kafka-0", "--as", OPERATOR)
    assert is_refused(release, "delete", "statefulset", f"{NAME}-kafka", "--as", OPERATOR)
    assert is_refused(release, "delete", "kafkatopic", "orders", "--as", OPERATOR)


def test_brokers_and_controllers_have_no_token_at_all(release: Release) -> None:
    for pod in (f"{NAME}-kafka-0", f"{NAME}-controller-0", f"{NAME}-zookeeper-0"):
        found = release.kubectl("exec", pod, "--", "sh", "-c", "ls /var/run/secrets/kubernetes.io 2>&1 || true")
        assert "No such file" in found
