"""ACLs as ZooKeeper has them: read, watched, and the handling of those that make no sense."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable

import pytest
from prometheus_client import CollectorRegistry
from structlog.testing import capture_logs

from controller_core.admin.authorizing import known_acls
from controller_core.admin.authorizing.acl_znodes import decode_acl_change
from controller_core.admin.authorizing.authorization import Authorization
from controller_core.admin.authorizing.known_acls import KnownAcls
from controller_core.model.access import parse_address
from controller_core.model.authorization.acls import (
    AclTable,
    Operation,
    Pattern,
    Resource,
    ResourceType,
    make_topic_resource,
)
from controller_core.model.authorization.decision import AuthorizerRules
from controller_core.model.authorization.principal import Caller, Principal
from controller_core.wire.listener.owned_api import NoAnswerNow
from controller_core.zk import paths
from controller_core.zk.session import Create, CreateMode
from simulation.cluster import Cluster
from simulation.zookeeper_session import SimulatedSession

ALICE = Caller(address=parse_address("10.0.0.1"), principal=Principal.user("alice"))
READ = {"principal": "User:alice", "permissionType": "Allow", "operation": "Read", "host": "*"}


def acl(*entries: dict[str, str]) -> bytes:
    return json.dumps({"version": 1, "acls": entries}).encode()


def put(cluster: Cluster, path: str, data: bytes) -> None:
    """Writes a znode, with the parents that it needs."""
    for end, letter in enumerate(path):
        if letter == "/" and end and not cluster.exists(path[:end]):
            cluster.put(path[:end], b"")
    cluster.put(path, data)


def notify(cluster: Cluster, name: str, *, is_prefix: bool = False) -> None:
    if is_prefix:
        parent = paths.EXTENDED_ACL_CHANGES
        told = {"version": 1, "resourceType": "TOPIC", "name": name, "patternType": "PREFIXED"}
        data = json.dumps(told).encode()
    else:
        parent, data = paths.ACL_CHANGES, f"Topic:{name}".encode()
    put(cluster, parent, b"")
    cluster.write(Create(path=f"{parent}/acl_changes_", data=data, mode=CreateMode.PERSISTENT_SEQUENTIAL))


def change(cluster: Cluster, name: str, data: bytes, *, is_prefix: bool = False) -> None:
    """Change ACLs as a broker does."""
    put(cluster, f"{paths.PREFIXED_ACLS if is_prefix else paths.ACLS}/Topic/{name}", data)
    notify(cluster, name, is_prefix=is_prefix)


async def wait_until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not condition():  # noqa: ASYNC110 - the condition is the test's own
            await asyncio.sleep(0.01)


def may_read(table: AclTable, name: str) -> bool:
    return AuthorizerRules().allows(table, ALICE, Operation.READ, make_topic_resource(name))


async def wait_until_readable(acls: KnownAcls, name: str) -> None:
    """Wait until the present table allows to read the topic."""
    async with asyncio.timeout(20):
        while not may_read(await acls.table(), name):  # noqa: ASYNC110 - nothing says when it is known
            await asyncio.sleep(0.01)


@pytest.fixture
def session(cluster: Cluster) -> SimulatedSession:
    return cluster.zk.session()


@pytest.fixture
async def acls(session: SimulatedSession) -> AsyncIterator[KnownAcls]:
    yield KnownAcls(session, patience_s=5)
    for task in asyncio.all_tasks():
        if task.get_name() == "ACLs":
            task.cancel()


async def test_all_are_read_at_the_start(cluster: Cluster, acls: KnownAcls) -> None:
    put(cluster, f"{paths.ACLS}/Topic/one", acl(READ))
    put(cluster, f"{paths.ACLS}/Group/other", acl(READ))
    put(cluster, f"{paths.PREFIXED_ACLS}/Topic/pre", acl(READ))
    acls.begin()
    table = await acls.table()
    assert may_read(table, "one")
    assert may_read(table, "prefix")
    assert not may_read(table, "other")
    assert len(table) == 2, "those of groups are not looked at"


async def test_a_broker_also_reads_those_of_groups_and_transactions(
    cluster: Cluster, session: SimulatedSession
) -> None:
    put(cluster, f"{paths.ACLS}/Group/other", acl(READ))
    put(cluster, f"{paths.PREFIXED_ACLS}/TransactionalId/pre", acl(READ))
    acls = KnownAcls(session, kinds=tuple(ResourceType))
    task = acls.begin()
    table = await acls.table()
    for resource in (Resource(ResourceType.GROUP, "other"), Resource(ResourceType.TRANSACTIONAL_ID, "prefixed")):
        assert AuthorizerRules().allows(table, ALICE, Operation.READ, resource)
    task.cancel()


async def test_what_changes_is_read_when_a_notification_says_so(cluster: Cluster, acls: KnownAcls) -> None:
    acls.begin()
    table = await acls.table()
    assert not may_read(table, "one")
    change(cluster, "one", acl(READ))
    await wait_until(lambda: may_read(table, "one"))
    change(cluster, "pre", acl(READ), is_prefix=True)
    await wait_until(lambda: may_read(table, "prefixed"))
    cluster.remove(f"{paths.ACLS}/Topic/one")
    notify(cluster, "one")
    await wait_until(lambda: not may_read(table, "one"))
    assert may_read(table, "prefixed")


async def test_an_acl_that_cannot_be_read_is_reported_and_denies_what_it_is_about_alone(
    cluster: Cluster, acls: KnownAcls
) -> None:
    put(cluster, f"{paths.ACLS}/Topic/good", acl(READ))
    put(cluster, f"{paths.ACLS}/Topic/bad", acl(READ, {**READ, "operation": "Fly"}))
    registry = CollectorRegistry()
    Authorization(AuthorizerRules(), acls, registry)
    with capture_logs() as logs:
        acls.begin()
        table = await acls.table()
    assert may_read(table, "good")
    assert not may_read(table, "bad")
    assert any('"operation" must be one of' in entry.get("error", "") for entry in logs)
    assert registry.get_sample_value("kontroller_unusable_acls") == 1
    change(cluster, "bad", acl(READ))
    await wait_until(lambda: may_read(table, "bad"))
    assert registry.get_sample_value("kontroller_unusable_acls") == 0


@pytest.mark.parametrize(
    "data",
    [
        b"{",
        b"[]",
        b'{"version":2,"acls":[]}',
        b'{"version":1}',
        b'{"version":1,"acls":[1]}',
        acl({**READ, "principal": "alice"}),
        acl({**READ, "permissionType": "Perhaps"}),
        b'{"version":1,"acls":[{"principal":"User:alice","permissionType":"Allow","operation":"Read"}]}',
    ],
)
async def test_whatever_an_acl_says_instead_nobody_is_let_in(cluster: Cluster, acls: KnownAcls, data: bytes) -> None:
    put(cluster, f"{paths.ACLS}/Topic/*", data)
    acls.begin()
    rules = AuthorizerRules(allows_unless_acl=True)
    assert not rules.allows(await acls.table(), ALICE, Operation.DESCRIBE, make_topic_resource("any"))


@pytest.mark.parametrize("told", [b"no colon", b""])
async def test_all_are_read_again_where_a_notification_makes_no_sense(
    cluster: Cluster, acls: KnownAcls, told: bytes
) -> None:
    acls.begin()
    await acls.table()
    put(cluster, f"{paths.ACLS}/Topic/one", acl(READ))
    put(cluster, f"{paths.ACL_CHANGES}/acl_changes_0000000001", told)
    await wait_until_readable(acls, "one")


async def test_what_has_changed_while_the_connection_was_lost_is_known_afterwards(
    cluster: Cluster, session: SimulatedSession, acls: KnownAcls
) -> None:
    acls.begin()
    await acls.table()
    cluster.zk.expire(session)
    put(cluster, f"{paths.ACLS}/Topic/one", acl(READ))  # its notification has come and gone
    await wait_until_readable(acls, "one")


async def test_known_acls_apply_while_zookeeper_is_away(
    cluster: Cluster, session: SimulatedSession, acls: KnownAcls, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(known_acls, "LOOK_AGAIN_S", 0.01)
    put(cluster, f"{paths.ACLS}/Topic/one", acl(READ))
    acls.begin()
    await acls.table()
    with capture_logs() as logs:
        cluster.zk.disconnect(session)
        await wait_until(lambda: any(entry["event"].startswith("ACLs stay as they are known") for entry in logs))
    assert may_read(await acls.table(), "one")
    assert not may_read(await acls.table(), "two")


async def test_without_acls_there_is_no_answer(cluster: Cluster) -> None:
    never_begun = KnownAcls(cluster.zk.session(), patience_s=0.01)
    with pytest.raises(NoAnswerNow, match="ACLs could not be read"):
        await never_begun.table()


@pytest.mark.parametrize(
    ("path", "data", "pattern"),
    [
        (paths.ACL_CHANGES, b"Topic:a:b", Pattern(ResourceType.TOPIC, "a:b")),
        (paths.ACL_CHANGES, b"Cluster:kafka-cluster", Pattern(ResourceType.CLUSTER, "kafka-cluster")),
        (paths.ACL_CHANGES, b"Group:a", Pattern(ResourceType.GROUP, "a")),
        (paths.ACL_CHANGES, b"TransactionalId:a", Pattern(ResourceType.TRANSACTIONAL_ID, "a")),
        (paths.ACL_CHANGES, b"DelegationToken:a", None),
        (
            paths.EXTENDED_ACL_CHANGES,
            b'{"version":1,"resourceType":"TOPIC","name":"a","patternType":"PREFIXED"}',
            Pattern(ResourceType.TOPIC, "a", is_prefix=True),
        ),
        (
            paths.EXTENDED_ACL_CHANGES,
            b'{"version":1,"resourceType":"TRANSACTIONAL_ID","name":"a","patternType":"PREFIXED"}',
            Pattern(ResourceType.TRANSACTIONAL_ID, "a", is_prefix=True),
        ),
    ],
)
def test_notifications_name_what_has_changed(path: str, data: bytes, pattern: Pattern | None) -> None:
    assert decode_acl_change(f"{path}/acl_changes_0000000000", data) == pattern
