"""An HTTPS port of a controller: probes need nothing, and metrics and journal need a token or a certificate, also while
strangers take all they can."""

import ssl
from collections.abc import Iterator
from functools import partial
from uuid import uuid4

import pytest

from controller_core.model.ids import BrokerId, PartitionId, TopicId
from controller_core.model.metadata import ReplicaAssignment, TopicAssignment
from controller_core.zk.codecs import encode_topic
from devcluster.clusters.kontroller import run_command
from devcluster.clusters.run_folder import RunFolder
from devcluster.clusters.zookeeper import ZooKeeper, open_client
from devcluster.running.processes import wait_until
from tests.real.ports.http_clients import BEARER, WRONG_BEARER, assert_little_is_taken
from tests.real.ports.https_site import HttpsSite, serve_https

pytestmark = [pytest.mark.real, pytest.mark.timeout(180)]

GUARDED = ("/metrics", "/journal")
PROBES = ("/healthz", "/readyz")
CHROOT = "/https-port"
TOPIC = "written-down"


@pytest.fixture(scope="module")
def site(servers_folder: RunFolder, zookeeper: ZooKeeper) -> Iterator[HttpsSite]:
    with open_client(zookeeper.connect) as client:
        client.ensure_path(f"{CHROOT}/brokers/topics")
    with serve_https(servers_folder, f"{zookeeper.connect}{CHROOT}", "https-port") as site:
        yield site


def test_probes_need_nothing_and_readers_need_a_token_or_a_certificate(site: HttpsSite) -> None:
    port, shown = site.port, site.make_context(site.reader)
    for page in PROBES:
        assert port.read_status(page) == 200
    for page in GUARDED:
        assert port.read_status(page) == 401
        assert port.read_status(page, headers=WRONG_BEARER) == 401
        assert port.read_status(page, headers=BEARER) == 200
        assert port.read_status(page, tls=shown) == 200
    with pytest.raises((OSError, ssl.SSLError)):
        port.read_status("/metrics", tls=site.make_context(site.stranger))
    assert [site.count_refusals(reason) for reason in ("login", "tls")] == [4, 1]


def test_strangers_keep_out_neither_probes_nor_readers(site: HttpsSite) -> None:
    with assert_little_is_taken(site.port) as check, site.port.send_halves(2_000):
        assert site.port.probe() == 200
        assert site.port.read_status("/metrics", headers=BEARER) == 200
        assert site.port.read_status("/journal", tls=site.make_context(site.reader)) == 200
        check()


def _shows_topic(*command: str) -> bool:
    return "partition 0" in run_command(*command).stdout


def test_a_journal_is_read_with_a_token_or_a_certificate_and_by_nobody_else(
    site: HttpsSite, zookeeper: ZooKeeper
) -> None:
    with open_client(f"{zookeeper.connect}{CHROOT}") as client:
        partitions = {PartitionId(0): ReplicaAssignment(replicas=(BrokerId(1),))}
        assigned = TopicAssignment(topic_id=TopicId(uuid4()), partitions=partitions)
        client.create(f"/brokers/topics/{TOPIC}", encode_topic(assigned))
    journal = f"{site.port.address}/journal"
    command = ("history", "changes", "--topic", TOPIC, "--journal", journal, "--journal-ca", str(site.authority))
    shown = ("--journal-certificate", str(site.reader.certificate), "--journal-key", str(site.reader.key))
    for access in (shown, ("--journal-token-file", str(site.token))):
        wait_until(partial(_shows_topic, *command, *access), "the journal has it")
    refused = run_command(*command)
    assert (refused.returncode, "partition 0" in refused.stdout) == (1, False)
    assert "401" in refused.stderr
    untrusted = run_command(*command[:-2], "--journal-token-file", str(site.token))
    assert untrusted.returncode == 1
    assert "certificate verify failed" in untrusted.stderr
