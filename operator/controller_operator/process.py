"""Assembles the operator: its runtime, its Lease, its probes, its webhook and its connections."""

import asyncio
import socket
from collections.abc import Callable
from contextlib import AsyncExitStack
from functools import partial
from typing import Final
from uuid import uuid4

import structlog

from controller_core.client.transport.request_client import RequestClient
from controller_core.model.topics.topic_changes import NO_RULES, TopicRules
from controller_core.process.http import read_certificate, read_http_access, serve_metrics
from controller_core.process.http_access.certificate import CertificateFiles
from controller_core.rules.topic_rules import read_topic_rules
from controller_core.supervision import run_until_one_ends
from controller_core.zk.session import ZkSession
from controller_operator.admission.callers import Callers
from controller_operator.admission.judge import Judge
from controller_operator.admission.onlooking import Onlooker
from controller_operator.admission.server import AdmissionServer
from controller_operator.clusters.pool import Connect
from controller_operator.connecting import make_zookeeper_connector
from controller_operator.kafka.broker_listeners import ListenerOf, any_plaintext
from controller_operator.kafka.cluster_files import ClusterFiles
from controller_operator.kubernetes.api_client import ApiRequests
from controller_operator.kubernetes.api_server import current_namespace, kubernetes_objects, load_configuration
from controller_operator.kubernetes.object_api import ObjectApi
from controller_operator.kubernetes.watcher import Watcher
from controller_operator.leading.elector import Elector, LeaseTimes
from controller_operator.leading.elector_thread import ElectorThread
from controller_operator.leading.fenced_objects import FencedObjects
from controller_operator.leading.fenced_session import FencedSession
from controller_operator.leading.kubernetes_lease import KubernetesLease
from controller_operator.leading.leadership import Leadership
from controller_operator.loop_thread import LoopThread
from controller_operator.probes import serve_probes
from controller_operator.reconciling.event_recorder import DEFAULT_HOME, Home
from controller_operator.reconciling.runtime import OperatorRuntime
from controller_operator.reconciling.wall_clock import utc_now
from controller_operator.settings import OperatorSettings
from controller_operator.watching.kopf_watcher import KopfWatcher

_EXIT_S: Final = 30.0
_log = structlog.get_logger(__name__)


MakeWatcher = Callable[[ObjectApi], KopfWatcher]
"""Makes the watcher of an API server's objects."""


async def operate(
    settings: OperatorSettings,
    make_watcher: MakeWatcher,
    *,
    api: ObjectApi | None = None,
    connect: Connect | None = None,
) -> None:
    """Operate until cancelled.

    `api` and `connect` are the seams to the API server and to ZooKeeper. Raises `NoKubernetes`, `ApiRefused` if rights
    are missing, `OSError` if a port is taken, `InvalidProperties`,
    `InvalidSettings`, `InvalidRules`, `NotLeading` if the lease was lost, and `WatchEnded` if the watches ended. After
    the last two a new process must follow.
    """
    rules = read_topic_rules(settings.topic_rules) if settings.topic_rules is not None else NO_RULES
    files = ClusterFiles(settings.properties)
    for fault in files.find_faults():
        _log.error("properties file unusable", error=str(fault))
    reading = make_zookeeper_connector(settings, files)
    connect = connect or reading
    async with AsyncExitStack() as stack:
        objects = api if api is not None else await stack.enter_async_context(kubernetes_objects())
        watcher = make_watcher(objects)
        elector = await _start_elector(settings, stack)
        runtime = (
            make_leading_runtime(settings, objects, watcher, connect, elector, files.listener_of, rules)
            if elector
            else OperatorRuntime(
                settings, objects, watcher, connect, listener_of=files.listener_of, home=_home(settings), rules=rules
            )
        )
        if settings.metrics_port is not None:
            stop_serving = await serve_metrics(
                settings.metrics_host,
                settings.metrics_port,
                runtime.metrics.registry,
                access=read_http_access(settings),
                refusals=runtime.metrics.refusals,
            )
            stack.push_async_callback(stop_serving)
        if settings.liveness is not None:
            readiness = partial(_trouble, runtime, elector)
            stop_answering = await serve_probes(
                settings.liveness, health=runtime.is_stuck, readiness=readiness, refusals=runtime.metrics.refusals
            )
            stack.push_async_callback(stop_answering)
        _serve_webhook(settings, runtime, watcher, stack, reading, files.listener_of, rules)
        _log.info("operator begins", namespaces=settings.namespace or "all", lease=settings.lease)
        try:
            await run_until_one_ends(_lead(runtime, elector), watcher.keep())
        finally:
            await _end(runtime, elector)


async def _start_elector(settings: OperatorSettings, stack: AsyncExitStack) -> ElectorThread | None:
    """Start the elector for the Lease of the settings. It has its own thread and connections, so nothing delays it."""
    if settings.lease is None:
        return None
    thread = LoopThread("lease")
    elector, requests = await thread.call(_make_elector(settings, settings.lease))
    running = ElectorThread(elector, thread)
    stack.push_async_callback(running.close)
    stack.push_async_callback(lambda: thread.call(requests.close()))
    return running


async def _make_elector(settings: OperatorSettings, name: str) -> tuple[Elector, ApiRequests]:
    requests = ApiRequests(await load_configuration())
    lease = KubernetesLease(requests, _own_namespace(settings), name)
    identity = settings.lease_identity or f"{socket.gethostname()}_{uuid4()}"
    return Elector(lease, identity, LeaseTimes(duration_s=settings.lease_duration_seconds), now=utc_now), requests


def _serve_webhook(
    settings: OperatorSettings,
    runtime: OperatorRuntime,
    watcher: KopfWatcher,
    stack: AsyncExitStack,
    connect: Connect,
    listener_of: ListenerOf,
    rules: TopicRules,
) -> None:
    endpoint, chain, key = settings.webhook, settings.webhook_certificate, settings.webhook_key
    if endpoint is None or chain is None or key is None:  # the settings have all of them or none
        return
    onlooker = Onlooker(runtime.find_working_access, runtime.store, connect, listener_of)
    stack.push_async_callback(onlooker.close)
    runtime.call_at_beginning(onlooker.close)
    authority = settings.webhook_client_ca
    callers = Callers(names=frozenset(settings.webhook_client_name)) if authority else None
    files = CertificateFiles(chain=chain, key=key, client_ca=authority)
    certificate = read_certificate(files, "--webhook-certificate")
    server = AdmissionServer(endpoint, certificate, callers, runtime.trail, runtime.metrics.refusals)
    judge = Judge(runtime.store, onlooker.find_access, rules=rules, are_callers_known=callers is not None)
    watcher.serve_webhook(server, judge)


def _trouble(runtime: OperatorRuntime, elector: ElectorThread | None) -> str | None:
    return runtime.trouble or (elector.trouble if elector else None)


def make_leading_runtime(
    settings: OperatorSettings,
    api: ObjectApi,
    watcher: Watcher,
    connect: Connect,
    leadership: Leadership,
    listener_of: ListenerOf = any_plaintext,
    rules: TopicRules = NO_RULES,
) -> OperatorRuntime:
    """Return the runtime of an operator that writes only while it leads."""

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
    return OperatorRuntime(
        settings,
        objects,
        watcher,
        connect_fenced,
        open_client,
        listener_of=listener_of,
        home=_home(settings),
        rules=rules,
    )


def _home(settings: OperatorSettings) -> Home:
    """Return the place of the operator's own records: beside the Lease, and by its name."""
    return Home(namespace=_own_namespace(settings), name=settings.lease or DEFAULT_HOME.name)


def _own_namespace(settings: OperatorSettings) -> str:
    return settings.lease_namespace or current_namespace()


async def _lead(runtime: OperatorRuntime, elector: ElectorThread | None) -> None:
    """Watch the objects, and work as long as this process leads."""
    await runtime.watch()
    if elector is not None:
        await elector.acquire()
    runtime.begin_work()
    await (elector.keep() if elector is not None else asyncio.Event().wait())


async def _end(runtime: OperatorRuntime, elector: ElectorThread | None) -> None:
    """Give running work a moment to end, then release the Lease."""
    try:
        async with asyncio.timeout(_EXIT_S):
            await runtime.stop()
    except TimeoutError:
        _log.warning("the work did not end in time", waited_s=_EXIT_S)
    if elector is not None:
        await elector.release()
    _log.info("operator ends")
