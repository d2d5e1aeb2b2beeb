from collections.abc import Iterator
from pathlib import Path

import pytest
from structlog.testing import capture_logs
from structlog.typing import EventDict

from devcluster.clusters.certificates import Authority, CertificateFiles
from tests.unit.wire.authentication.secured_site import Site


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def server(authority: Authority) -> CertificateFiles:
    return authority.issue("server", "localhost", "IP:127.0.0.1")


@pytest.fixture(scope="module")
def client(authority: Authority) -> CertificateFiles:
    return authority.issue("client", "localhost")


@pytest.fixture
def site(tmp_path: Path, authority: Authority) -> Site:
    return Site(tmp_path, authority)


@pytest.fixture
def logged() -> Iterator[list[EventDict]]:
    with capture_logs() as lines:
        yield lines
