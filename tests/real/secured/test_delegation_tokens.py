"""Expired delegation tokens: Kafka's controller and ours delete the same ones, and notify brokers alike."""

import json
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from time import time

import pytest
from kazoo.client import KazooClient

from controller_core.zk import paths
from devcluster.clusters.kafka import KafkaCluster
from devcluster.clusters.kontroller import ControllerProcess
from devcluster.clusters.run_folder import RunFolder
from devcluster.clusters.zookeeper import ZooKeeper
from devcluster.running.processes import wait_until

PROPERTIES = {"delegation.token.secret.key": "of this test", "delegation.token.expiry.check.interval.ms": "1000"}
HOUR_MS = 3_600_000


def token(token_id: str, expiry_ms: int, max_ms: int) -> bytes:
    """Return a token in the brokers' format."""
    said = {
        "version": 1,
        "owner": "User:alice",
        "renewers": [],
        "issueTimestamp": expiry_ms - 2 * HOUR_MS,
        "maxTimestamp": max_ms,
        "expiryTimestamp": expiry_ms,
        "tokenId": token_id,
    }
    return json.dumps(said).encode()


@pytest.fixture(scope="module")
def trees(servers_folder: RunFolder, zookeeper: ZooKeeper) -> Iterator[dict[str, KazooClient]]:
    """The znodes of a cluster with Kafka's controller, and of one with ours."""
    with ExitStack() as stack:
        found = {}
        for name in ("tokens-of-kafka", "tokens-of-ours"):
            with zookeeper.client() as maker:
                maker.ensure_path(f"/{name}")
            cluster = KafkaCluster(
                servers_folder, zookeeper, brokers=1, chroot=f"/{name}", name=name, properties=PROPERTIES
            )
            stack.callback(cluster.close)
            if name == "tokens-of-ours":
                file = servers_folder.data(f"{name}-controller") / "controller.properties"
                file.write_text("".join(f"{key}={value}\n" for key, value in PROPERTIES.items()))
                settings = {"properties": str(file)}
                stack.enter_context(
                    ControllerProcess(
                        servers_folder, cluster.zookeeper_connect, name=f"{name}-controller", settings=settings
                    )
                )
            cluster.start()
            found[name] = stack.enter_context(zookeeper.client(f"/{name}"))
        yield found


def test_what_is_over_is_deleted_as_kafkas_controller_does_it(trees: dict[str, KazooClient]) -> None:
    now_ms = int(time() * 1000)
    tokens = {
        "over": token("over", now_ms - HOUR_MS, now_ms + HOUR_MS),
        "renewed-for-too-long": token("renewed-for-too-long", now_ms + HOUR_MS, now_ms - HOUR_MS),
        "good": token("good", now_ms + HOUR_MS, now_ms + HOUR_MS),
    }
    told = {}
    for name, client in trees.items():
        wait_until(lambda: client.exists(paths.DELEGATION_TOKENS) is not None, "the broker has made the parents")  # noqa: B023
        for token_id, data in tokens.items():
            client.create(f"{paths.DELEGATION_TOKENS}/{token_id}", data, makepath=True)
            client.create(paths.DELEGATION_TOKEN_CHANGE_PREFIX, token_id.encode(), sequence=True, makepath=True)
        wait_until(lambda: client.get_children(paths.DELEGATION_TOKENS) == ["good"], f"they are gone {name}")  # noqa: B023
        notifications = client.get_children(paths.DELEGATION_TOKEN_CHANGES)
        told[name] = Counter(client.get(f"{paths.DELEGATION_TOKEN_CHANGES}/{each}")[0] for each in notifications)
    assert told["tokens-of-ours"] == told["tokens-of-kafka"]
    assert told["tokens-of-ours"] == {b"good": 1, b"over": 2, b"renewed-for-too-long": 2}, "made, and gone"
