"""The operator as a process: `kontroller operator run`."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import Final

import structlog
from kubernetes_asyncio import config
from yaml import YAMLError

from controller_core.process.http import serve_metrics
from controller_core.process.signals import until_signalled
from controller_core.zk.kazoo.session import KazooSession
from controller_core.zk.learned_limit import LearnedLimitSession
from controller_core.zk.session import ZkSession
from controller_operator.kubernetes.kubernetes_objects import KubernetesObjects
from controller_operator.kubernetes.object_api import ObjectApi
from controller_operator.observation.observer import ChrootMissing, NotCurrent
from controller_operator.observation.pool import Connect
from controller_operator.probes import serve_probes
from controller_operator.reconciling.runtime import OperatorRuntime
from controller_operator.settings import OperatorSettings

_EXIT_S: Final = 30.0
_NAMESPACE_OF_POD: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
_NO_KUBECONFIG: Final = (
    config.ConfigException,
    YAMLError,
    TypeError,
    AttributeError,
    ValueError,
    LookupError,
    OSError,
)
"""A file that is no kubeconfig at all fails wherever the library happens to look into it."""
_log = structlog.get_logger(__name__)


class NoKubernetes(Exception):
    """There is nothing that says how to reach an API server."""


async def run(settings: OperatorSettings, *, api: ObjectApi | None = None, connect: Connect | None = None) -> None:
    """Runs the operator until SIGTERM or SIGINT, which it must get in the main thread.

    `api` and `connect` are the seams to the API server and to ZooKeeper, for who wants to stand in between. Raises
    `NoKubernetes`, `ApiRefused` where rights are missing, and `OSError` where a port is taken.
    """
    async with AsyncExitStack() as stack:
        objects = api if api is not None else await stack.enter_async_context(kubernetes_objects())
        runtime = OperatorRuntime(settings, objects, connect or zookeeper_connector(settings))
        if settings.metrics_port is not None:
            stop_serving = await serve_metrics(settings.metrics_host, settings.metrics_port, runtime.metrics.registry)
            stack.push_async_callback(stop_serving)
        if settings.liveness is not None:
            look = {"health": runtime.is_stuck, "readiness": lambda: runtime.trouble}
            stack.push_async_callback(await serve_probes(settings.liveness, **look))
        _log.info("operator begins", namespaces=settings.namespaces or "all")
        await until_signalled(_work(runtime))
        _log.info("operator ends")


async def _work(runtime: OperatorRuntime) -> None:
    """Works until it is cancelled; then what is under way gets a moment to end."""
    try:
        await runtime.start()
        await asyncio.Event().wait()
    finally:
        try:
            async with asyncio.timeout(_EXIT_S):
                await runtime.stop()
        except TimeoutError:
            _log.warning("the work did not end in time", waited_s=_EXIT_S)


def zookeeper_connector(settings: OperatorSettings) -> Connect:
    """Opens real ZooKeeper sessions, with the timeouts of the settings."""

    async def connect(address: str) -> ZkSession:
        try:
            session = await KazooSession.connect(
                address,
                makes_chroot=False,
                session_timeout_ms=settings.zookeeper_session_timeout_ms,
                connect_timeout_ms=settings.zookeeper_connect_timeout_ms,
                jute_maxbuffer_bytes=settings.zookeeper_jute_maxbuffer_bytes,
            )
        except ValueError as error:
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


@asynccontextmanager
async def kubernetes_objects(context: str | None = None) -> AsyncIterator[KubernetesObjects]:
    """The objects of the API server of the pod, or of `KUBECONFIG`, there by `context` or the current one.

    Raises `NoKubernetes`."""
    await _load_kubernetes_config(context)
    objects = KubernetesObjects()
    try:
        yield objects
    finally:
        await objects.close()


def current_namespace(context: str | None = None) -> str:
    """The namespace that kubectl takes where none is given: the pod's own, that of the context, or `default`."""
    try:
        if context is None and _NAMESPACE_OF_POD.exists():
            return _NAMESPACE_OF_POD.read_text().strip()
        contexts, active = config.list_kube_config_contexts()
    except _NO_KUBECONFIG:
        return "default"
    named = next((each for each in contexts or () if each["name"] == context), active)
    return str(((named or {}).get("context") or {}).get("namespace") or "default")


async def _load_kubernetes_config(context: str | None) -> None:
    """The pod's service account, or the kubeconfig of `KUBECONFIG` or the home folder, where a context is one. Raises
    `NoKubernetes`."""
    if context is None:
        with suppress(config.ConfigException):
            config.load_incluster_config()  # type: ignore[no-untyped-call]  # kubernetes_asyncio leaves it untyped
            return
    try:
        await config.load_kube_config(context=context)
    except _NO_KUBECONFIG as error:
        message = f"neither a service account nor a usable kubeconfig: set KUBECONFIG to one ({error})"
        raise NoKubernetes(message) from error
