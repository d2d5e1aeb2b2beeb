"""The controller in ZooKeeper: where its commands come from, and the senders that are refused."""

import asyncio
from collections.abc import Callable, Collection
from ipaddress import ip_network

import pytest
from structlog.testing import capture_logs

from controller_core.model.access import parse_address
from controller_core.model.authorization.principal import Caller
from controller_core.model.ids import BrokerEpoch, BrokerId
from controller_core.model.metadata import Broker, Endpoint
from controller_core.names import Names
from controller_core.wire.limits.broker_addresses import BrokerAddresses
from controller_core.wire.listener.owned_api import NoAnswerNow
from controller_core.wire.messages import ErrorCode
from controller_core.zk import codecs, paths
from controller_core.zk.codecs import ProcessZnode
from replica_broker.membership.controller_hosts import ControllerHosts, read_controller_epoch
from replica_broker.serving.authorizing.command_gate import CommandGate
from simulation.cluster import Cluster

LEADER_AND_ISR, STOP_REPLICA, UPDATE_METADATA, FETCH, WRITE_TXN_MARKERS = 4, 5, 6, 1, 27
KAFKAS, OURS = BrokerId(1), BrokerId(1000)
SERVERS = {"kafka-1": ["10.0.0.1"], "kontroller": ["10.0.0.9"], "kontroller-2": ["10.0.0.8"]}


def caller(address: str) -> Caller:
    return Caller(address=parse_address(address))


def make_addresses(hosts: Callable[[], Collection[str]]) -> BrokerAddresses:
    def resolve(name: str) -> list[str]:
        return SERVERS[name]

    return BrokerAddresses(hosts, names=Names(resolve), is_own=lambda _: False, min_interval_s=0.01)


def put(cluster: Cluster, path: str, data: bytes) -> None:
    for end, letter in enumerate(path):
        if letter == "/" and end and not cluster.exists(path[:end]):
            cluster.put(path[:end], b"")
    cluster.put(path, data)


def lead(cluster: Cluster, controller: BrokerId) -> None:
    put(cluster, paths.CONTROLLER, codecs.encode_controller(controller, 0))


@pytest.fixture
def hosts(cluster: Cluster) -> ControllerHosts:
    """Broker 1 and two Kontrollers are there, none of which is the controller."""
    endpoints = (Endpoint(listener="PLAINTEXT", security_protocol="PLAINTEXT", host="kafka-1", port=9092),)
    broker = Broker(id=KAFKAS, epoch=BrokerEpoch(1), endpoints=endpoints, rack=None)
    put(cluster, paths.broker(KAFKAS), codecs.encode_broker(broker, timestamp_ms=0))
    for number, host in ((OURS, "kontroller"), (BrokerId(1001), "kontroller-2")):
        sign = ProcessZnode(whereabouts="", is_hot=False, hosts=(host,))
        put(cluster, paths.process(number), codecs.encode_process(sign))
    return ControllerHosts(cluster.zk.session())


def make_gate(hosts: ControllerHosts, *networks: str) -> CommandGate:
    return CommandGate(hosts, lambda: ["kafka-1"], tuple(map(ip_network, networks)), addresses_of=make_addresses)


@pytest.mark.parametrize("command", [LEADER_AND_ISR, STOP_REPLICA, UPDATE_METADATA])
@pytest.mark.parametrize(("controller", "address"), [(KAFKAS, "10.0.0.1"), (OURS, "10.0.0.9")])
async def test_commands_are_taken_from_the_hosts_of_the_controller_alone(
    cluster: Cluster, hosts: ControllerHosts, command: int, controller: BrokerId, address: str
) -> None:
    lead(cluster, controller)
    gate = make_gate(hosts)
    for each in ("10.0.0.1", "10.0.0.8", "10.0.0.9", "10.0.0.66"):
        refused = None if each == address else ErrorCode.cluster_authorization_failed
        assert await gate.why_not(command, caller(each)) is refused, each
    assert await gate.why_not(command, Caller()) is ErrorCode.cluster_authorization_failed


async def test_a_new_controller_is_obeyed_at_once_and_the_former_one_no_more(
    cluster: Cluster, hosts: ControllerHosts
) -> None:
    gate = make_gate(hosts)
    for controller, address, other in ((KAFKAS, "10.0.0.1", "10.0.0.9"), (OURS, "10.0.0.9", "10.0.0.1")):
        lead(cluster, controller)
        assert await gate.why_not(STOP_REPLICA, caller(address)) is None
        assert await gate.why_not(STOP_REPLICA, caller(other)) is ErrorCode.cluster_authorization_failed


async def test_without_a_controller_nobody_commands_and_the_log_says_what_to_do(hosts: ControllerHosts) -> None:
    with capture_logs() as logs:
        assert await make_gate(hosts).why_not(STOP_REPLICA, caller("10.0.0.1")) is (
            ErrorCode.cluster_authorization_failed
        )
    (line,) = (line for line in logs if line["event"] == "command refused: it does not come from the controller")
    assert line["address"] == "10.0.0.1"
    assert "--controller-cidr" in line["why"]


async def test_networks_of_controllers_are_admitted_whoever_leads(hosts: ControllerHosts) -> None:
    gate = make_gate(hosts, "10.7.0.0/16")
    assert await gate.why_not(STOP_REPLICA, caller("10.7.1.1")) is None


async def test_markers_of_transactions_are_taken_from_brokers_alone(hosts: ControllerHosts) -> None:
    gate = make_gate(hosts, "10.7.0.0/16")
    for each in ("10.0.0.1", "10.7.1.1"):
        assert await gate.why_not(WRITE_TXN_MARKERS, caller(each)) is None
    with capture_logs() as logged:
        assert await gate.why_not(WRITE_TXN_MARKERS, caller("10.0.0.66")) is ErrorCode.cluster_authorization_failed
    (line,) = logged
    assert line["event"] == "transaction markers refused: they do not come from a broker"


async def test_brokers_alone_may_follow(hosts: ControllerHosts) -> None:
    gate = make_gate(hosts, "10.7.0.0/16")
    for each in ("10.0.0.1", "10.7.1.1"):
        assert await gate.may_follow(caller(each))
    with capture_logs() as logged:
        assert not await gate.may_follow(caller("10.0.0.66"))
    (line,) = logged
    assert line["event"] == "fetch refused: it has a broker's id, and does not come from a broker"
    assert "--controller-cidr" in line["why"]


async def test_everybody_may_ask_for_what_is_no_command(hosts: ControllerHosts) -> None:
    assert await make_gate(hosts).why_not(FETCH, caller("10.0.0.66")) is None


async def test_many_strangers_at_once_cause_few_reads(cluster: Cluster, hosts: ControllerHosts) -> None:
    lead(cluster, OURS)
    gate = make_gate(hosts)
    before = hosts.reads
    refused = await asyncio.gather(*(gate.why_not(STOP_REPLICA, caller(f"10.0.7.{n}")) for n in range(100)))
    assert set(refused) == {ErrorCode.cluster_authorization_failed}
    assert hosts.reads - before <= 3


async def test_places_are_kept_for_brokers_and_the_controller(cluster: Cluster, hosts: ControllerHosts) -> None:
    lead(cluster, OURS)
    gate = make_gate(hosts)
    assert await gate.why_not(STOP_REPLICA, caller("10.0.0.9")) is None
    async with asyncio.timeout(10):
        while not (gate.is_broker(caller("10.0.0.1")) and gate.is_broker(caller("10.0.0.9"))):  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    assert not gate.is_broker(caller("10.0.0.66"))
    assert not gate.is_broker(Caller())


async def test_an_unreadable_controller_commands_nothing(cluster: Cluster, hosts: ControllerHosts) -> None:
    put(cluster, paths.CONTROLLER, b"{}")
    assert await make_gate(hosts).why_not(STOP_REPLICA, caller("10.0.0.9")) is ErrorCode.cluster_authorization_failed


async def test_without_zookeeper_an_unknown_sender_gets_no_answer(cluster: Cluster) -> None:
    session = cluster.zk.session()
    hosts = ControllerHosts(session)
    await session.close()
    with pytest.raises(NoAnswerNow, match="ZooKeeper does not say who the controller is"):
        await make_gate(hosts).why_not(STOP_REPLICA, caller("10.0.0.9"))


async def test_the_newest_epoch_is_read(cluster: Cluster) -> None:
    session = cluster.zk.session()
    if cluster.exists(paths.CONTROLLER_EPOCH):
        cluster.remove(paths.CONTROLLER_EPOCH)
    assert await read_controller_epoch(session) is None
    put(cluster, paths.CONTROLLER_EPOCH, b"7")
    assert await read_controller_epoch(session) == 7
