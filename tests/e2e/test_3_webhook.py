"""The webhook as a user turns it on: the API server asks the operator's pods before it stores an object."""

import json
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path

import pytest

from devcluster.clusters.certificates import make_certificate
from devcluster.clusters.kubernetes import CommandError
from tests.e2e.manifests import topic
from tests.e2e.release import NAME, NAMESPACE, Release

pytestmark = [pytest.mark.real, pytest.mark.timeout(600)]

SECRET = "webhook-certificate"


@pytest.fixture(scope="module", autouse=True)
def webhook(release: Release, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Turn it on with a certificate from a Secret, and off again."""
    service = f"{NAME}-operator-webhook.{NAMESPACE}.svc"
    files = make_certificate(tmp_path_factory.mktemp("webhook"), service)
    release.kubectl("create", "secret", "tls", SECRET, f"--cert={files.certificate}", f"--key={files.key}")
    trusted = b64encode(Path(files.certificate).read_bytes()).decode()
    certificate = f"webhook.certificate.secretName={SECRET},webhook.certificate.caBundle={trusted}"
    release.upgrade("--set", f"webhook.enabled=true,webhook.failurePolicy=Fail,{certificate}")
    yield
    release.upgrade()
    release.kubectl("delete", "secret", SECRET)


def apply(release: Release, resource: dict[str, object]) -> str:
    return release.kubectl("apply", "--server-side", "--warnings-as-errors", "-f", "-", stdin=json.dumps(resource))


def test_what_only_another_spec_would_cure_is_not_kept(release: Release) -> None:
    wrong = topic("never", [[1, 2]])
    wrong["spec"]["config"] = {"retention.ms": "soon"}
    with pytest.raises(CommandError, match=r"denied the request: InvalidConfig"):
        apply(release, wrong)
    assert "never" not in release.kubectl("get", "kafkatopics", "--output", "name")


def test_what_is_right_is_kept_and_done(release: Release) -> None:
    apply(release, topic("asked-about", [[1, 2]]))
    release.wait_ready("kafkatopic", "asked-about")
    release.kubectl("delete", "kafkatopic", "asked-about")


def test_a_replica_on_a_broker_that_is_not_there_is_warned_of(release: Release) -> None:
    with pytest.raises(CommandError, match="Warning: UnknownBroker"):
        apply(release, topic("warned-of", [[1, 9]]))
    release.kubectl("delete", "kafkatopic", "warned-of")
