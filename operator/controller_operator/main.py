"""The operator as a process: `kontroller operator run`."""

import asyncio
import socket
from contextlib import AsyncExitStack
from functools import partial
from typing import Final
from uuid import uuid4

import structlog

from controller_core.process.http import serve_metrics
from controller_core.process.signals import until_signalled
from controller_core.security.properties_file import InvalidProperties
from controller_core.wire.client.request_client import RequestClient
from controller_core.zk.kazoo.session import KazooSession
from controller_core.zk.learned_limit import LearnedLimitSession
from controller_core.zk.session import ZkSession
from controller_operator.admission.judge import Judge
from controller_operator.admission.onlooking import Onlooker
from controller_operator.admission.server import Certificate, serve_admission
from controller_operator.clusters.pool import Connect
from controller_operator.kafka.broker_listeners import BrokerListener, ListenerOf, any_plaintext
from controller_operator.kafka.client_files import ClientFiles
from controller_operator.kafka.ensembles import Ensembles
from controller_operator.kubernetes.api_client import api_client
from controller_operator.kubernetes.api_server import current_namespace, kubernetes_objects
from controller_operator.kubernetes.object_api import ObjectApi
from controller_operator.leading.elector import Elector, LeaseTimes
from controller_operator.leading.fenced_objects import FencedObjects
from controller_operator.leading.fenced_session import FencedSession
from controller_operator.leading.kubernetes_lease import KubernetesLease
from controller_operator.leading.leadership import Leadership
from controller_operator.observation.observation import NotCurrent
from controller_operator.observation.observer import ChrootMissing
from controller_operator.probes import serve_probes
from controller_operator.reconciling.runtime import OperatorRuntime
from controller_operator.reconciling.wall_clock import utc_now
from controller_operator.resources.cluster_address import AtBrokers, AtZooKeeper, ClusterAddress
from controller_operator.settings import OperatorSettings

_EXIT_S: Final = 30.0
_log = structlog.get_logger(__name__)


async def run(settings: OperatorSettings, *, api: ObjectApi | None = None, connect: Connect | None = None) -> None:
    """Runs the operator until SIGTERM or SIGINT, which it must get in the main thread.

    `api` and `connect` are the seams to the API server and to ZooKeeper, for who wants to stand in between. Raises
    `NoKubernetes`, `ApiRefused` where rights are missing, `OSError` where a port is taken or the webhook's certificate is
    of no use, `InvalidProperties`, and `NotLeading` where there is a lease and it was lost: whoever runs operators then
    runs this one anew.
    """
    ensembles = Ensembles(settings.properties)
    ensembles.check_brokers()
    connect = connect or zookeeper_connector(settings, ensembles)
    listener_of = secured_listeners(settings, ensembles)
    async with AsyncExitStack() as stack:
        objects = api if api is not None else await stack.enter_async_context(kubernetes_objects())
        elector = _elector(settings, stack)
        runtime = (
            leading_runtime(settings, objects, connect, elector, listener_of)
            if elector
            else OperatorRuntime(settings, objects, connect, listener_of=listener_of)
        )
        if settings.metrics_port is not None:
            stop_serving = await serve_metrics(settings.metrics_host, settings.metrics_port, runtime.metrics.registry)
            stack.push_async_callback(stop_serving)
        if settings.liveness is not None:
            readiness = partial(_trouble, runtime, elector)
            stop_answering = await serve_probes(settings.liveness, health=runtime.is_stuck, readiness=readiness)
            stack.push_async_callback(stop_answering)
        await _serve_webhook(settings, runtime, stack, zookeeper_connector(settings, ensembles), listener_of)
        _log.info("operator begins", namespaces=settings.namespaces or "all", lease=settings.lease)
        await until_signalled(_work(runtime, elector))
        _log.info("operator ends")


def _elector(settings: OperatorSettings, stack: AsyncExitStack) -> Elector | None:
    """Who asks for the Lease of the settings, over connections of its own: nothing else that is asked delays it."""
    if settings.lease is None:
        return None
    client = api_client()
    stack.push_async_callback(client.close)
    lease = KubernetesLease(client, settings.lease_namespace or current_namespace(), settings.lease)
    identity = settings.lease_identity or f"{socket.gethostname()}_{uuid4()}"
    return Elector(lease, identity, LeaseTimes(duration_s=settings.lease_duration_s), now=utc_now)


async def _serve_webhook(
    settings: OperatorSettings,
    runtime: OperatorRuntime,
    stack: AsyncExitStack,
    connect: Connect,
    listener_of: ListenerOf,
) -> None:
    endpoint, chain, key = settings.webhook, settings.webhook_certificate, settings.webhook_key
    if endpoint is None or chain is None or key is None:  # the settings have all of them or none
        return
    onlooker = Onlooker(runtime.working_access, runtime.store, connect, listener_of)
    stack.push_async_callback(onlooker.close)
    runtime.when_it_works(onlooker.close)
    judge = Judge(runtime.store, onlooker.access)
    stack.push_async_callback(await serve_admission(endpoint, Certificate(chain, key), judge))


def _trouble(runtime: OperatorRuntime, elector: Elector | None) -> str | None:
    return runtime.trouble or (elector.trouble if elector else None)


def leading_runtime(
    settings: OperatorSettings,
    api: ObjectApi,
    connect: Connect,
    leadership: Leadership,
    listener_of: ListenerOf = any_plaintext,
) -> OperatorRuntime:
    """An operator that writes nowhere unless it leads."""

    async def connect_fenced(address: str) -> ZkSession:
        session = FencedSession(await connect(address), leadership)
        try:
            await session.raise_fence()
        except BaseException:
            await session.close()
            raise
        return session

    open_client = partial(RequestClient, before_sending=leadership.require)
    objects = FencedObjects(api, leadership)
    return OperatorRuntime(settings, objects, connect_fenced, open_client, listener_of=listener_of)


async def _work(runtime: OperatorRuntime, elector: Elector | None) -> None:
    """Works until it is cancelled or the lease is lost; then what is under way gets a moment to end."""
    try:
        await runtime.watch()
        if elector is not None:
            await elector.acquire()
        runtime.begin_work()
        await (elector.keep() if elector is not None else asyncio.Event().wait())
    finally:
        try:
            async with asyncio.timeout(_EXIT_S):
                await runtime.stop()
        except TimeoutError:
            _log.warning("the work did not end in time", waited_s=_EXIT_S)
        if elector is not None:
            await elector.release()


def secured_listeners(settings: OperatorSettings, ensembles: Ensembles) -> ListenerOf:
    """How brokers are spoken to, of clusters with ZooKeeper and of those without. Raises `InvalidProperties`."""
    files = ClientFiles(settings.properties)
    files.check()

    def listener_of(address: ClusterAddress) -> BrokerListener:
        match address:
            case AtZooKeeper(connect=connect):
                return ensembles.listener_of(connect)
            case AtBrokers():
                return files.listener_of(address)

    return listener_of


def zookeeper_connector(settings: OperatorSettings, ensembles: Ensembles | None = None) -> Connect:
    """Opens real ZooKeeper sessions, with the timeouts of the settings. Raises `InvalidProperties`."""
    ensembles = ensembles or Ensembles(settings.properties)
    ensembles.check()

    async def connect(address: str) -> ZkSession:
        try:
            session = await KazooSession.connect(
                address,
                makes_chroot=False,
                session_timeout_ms=settings.zookeeper_session_timeout_ms,
                connect_timeout_ms=settings.zookeeper_connect_timeout_ms,
                jute_maxbuffer_bytes=settings.zookeeper_jute_maxbuffer_bytes,
                security=partial(ensembles.security_of, address),
            )
        except (ValueError, InvalidProperties) as error:
            raise NotCurrent(str(error)) from error
        try:
            await _require_chroot(address, session)
        except BaseException:
            await session.close()
            raise
        return LearnedLimitSession(session)

    return connect


async def _require_chroot(address: str, session: ZkSession) -> None:
    """Only brokers make a chroot: one that somebody mistyped would look like a cluster without anything."""
    (root,) = await session.read_many(["/"])
    if root is None:
        chroot = address.partition("/")[2]
        raise ChrootMissing(f"there is no /{chroot}: end zookeeper.connect like that of the brokers, or start them")
