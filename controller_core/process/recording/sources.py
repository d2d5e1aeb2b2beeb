"""The source of a recorder, from its settings: ZooKeeper, or the metadata log of a quorum of controllers.

If that log cannot be read, at once or from some offset on, the brokers are polled instead. Polling misses versions that
are soon overwritten."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import structlog
from kio.schema.metadata.v11 import MetadataResponse

from controller_core.client.errors import Unreachable
from controller_core.client.transport.kept_client import KeptClient
from controller_core.client.transport.request_client import RequestClient, parse_addresses
from controller_core.controller.loop.clock import Clock, SystemClock
from controller_core.model.snapshot import Controller
from controller_core.process.connections import ZooKeeperOptions, open_zookeeper_session
from controller_core.process.recording.settings import RecorderProcessSettings
from controller_core.process.settings import InvalidSettings
from controller_core.recorder.directory import Ended, check_cluster
from controller_core.recorder.looker import ClusterLost, Looker, OutOfSight
from controller_core.recorder.metadata_log.batches import LogUnreadable
from controller_core.recorder.metadata_log.following import MetadataLog
from controller_core.recorder.metadata_log.looking import MetadataLogLooker
from controller_core.recorder.metadata_log.quorum_leader import LogRefused, SourceOf
from controller_core.recorder.polled.looking import PolledLooker
from controller_core.recorder.znodes.decoding import decode_cluster_id
from controller_core.recorder.znodes.looking import ZnodesLooker
from controller_core.security.properties_file import InvalidProperties, read_properties
from controller_core.wire.connections.broker_properties import SecuredBrokers
from controller_core.wire.connections.client_properties import ClientSecurity
from controller_core.wire.connections.security import Security, SecuritySource
from controller_core.wire.requests.metadata import NO_TOPICS
from controller_core.zk import paths

log = structlog.get_logger()

_PAUSE_MS: Final = 500
_LOG_WITHIN_MS: Final = 20_000
"""Milliseconds that the log may be unavailable at the start. An election of a leader ends within this time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """The source from which a recorder learns about a cluster."""

    looker: Looker
    records_clock: Clock
    """The clock of its records."""
    instead: "Callable[[LogUnreadable], Source] | None" = None
    """Makes the source that replaces this one if it proves unreadable; None: there is none."""


@asynccontextmanager
async def open_source(settings: RecorderProcessSettings, ended: Ended) -> AsyncIterator[Source]:
    """Open the source. Raises `InvalidSettings`, `UnusableDirectory`, `ClusterLost`, `LogRefused`, `ZkError`."""
    if settings.zookeeper is not None:
        async with _open_zookeeper(settings, settings.zookeeper, ended) as looker:
            yield Source(looker=looker, records_clock=SystemClock())
    else:
        async with _open_quorum(settings, settings.bootstrap_server or "", ended) as source:
            yield source


@asynccontextmanager
async def _open_zookeeper(
    settings: RecorderProcessSettings, zookeeper: str, ended: Ended
) -> AsyncIterator[ZnodesLooker]:
    options = ZooKeeperOptions(
        zookeeper=zookeeper,
        properties=settings.properties,
        zookeeper_session_timeout_ms=settings.zookeeper_session_timeout_ms,
        zookeeper_timeout_ms=settings.zookeeper_timeout_ms,
    )
    zk = await open_zookeeper_session(
        options, jute_maxbuffer_bytes=settings.zookeeper_jute_maxbuffer_bytes, makes_chroot=False
    )
    try:
        root, cluster_id = await zk.read_many(["/", paths.CLUSTER_ID])
        if root is None:
            raise InvalidSettings(f"--zookeeper: {zookeeper} does not exist: correct the chroot behind the ports")
        check_cluster(ended, decode_cluster_id(cluster_id), settings.journal_directory)
        yield ZnodesLooker(zk, timeout_ms=settings.zookeeper_timeout_ms)
    finally:
        await zk.close()


@asynccontextmanager
async def _open_quorum(settings: RecorderProcessSettings, bootstrap: str, ended: Ended) -> AsyncIterator[Source]:
    try:
        secured = _read_security(settings)
        addresses = parse_addresses(bootstrap)
    except (InvalidProperties, ValueError) as error:
        raise InvalidSettings(str(error)) from error
    clock = SystemClock()
    brokers = RequestClient(addresses, security=secured.security, negotiates=True, timeout_ms=10_000)
    cluster_id = await _ask_cluster_id(brokers, clock, settings.bootstrap_timeout_ms)
    check_cluster(ended, cluster_id, settings.journal_directory)
    looker = MetadataLogLooker(
        MetadataLog(brokers, secured.of_controllers, cluster_id),
        clock,
        cluster_id=cluster_id,
        timeout_ms=settings.bootstrap_timeout_ms,
        since=_find_start(ended),
    )
    polled = PolledLooker(
        lambda: (KeptClient(addresses, security=secured.security), secured.protocol),
        clock,
        timeout_ms=settings.bootstrap_timeout_ms,
    )

    def ask_brokers_instead(error: Exception) -> Source:
        looker.close()
        log.warning("the metadata log cannot be followed, polling brokers instead", error=str(error))
        return Source(looker=polled, records_clock=clock)

    with closing(looker), closing(polled):
        try:
            await looker.begin(_LOG_WITHIN_MS)
        except (LogRefused, LogUnreadable, OutOfSight) as error:
            source = ask_brokers_instead(error)
        else:
            source = Source(looker=looker, records_clock=looker.clock, instead=ask_brokers_instead)
        yield source


def _find_start(ended: Ended) -> tuple[int, Controller] | None:
    """Return the place from which a journal is continued: the last event's offset, and the controller."""
    last, epoch = ended.last_event, ended.epoch
    if last is None or epoch is None:
        return None
    return last.position, Controller(id=last.controller_id, epoch=epoch)


async def _ask_cluster_id(brokers: RequestClient, clock: Clock, timeout_ms: int) -> str | None:
    until_ms = clock.monotonic_ms() + timeout_ms
    while True:
        try:
            return (await brokers.ask_any(NO_TOPICS, MetadataResponse)).cluster_id
        except Unreachable as error:
            if clock.monotonic_ms() >= until_ms:
                raise ClusterLost(f"no broker answered for {timeout_ms} ms: {error}") from error
        await clock.sleep_ms(_PAUSE_MS)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Secured:
    """The security settings of the servers of a cluster."""

    protocol: str
    """The security protocol of brokers."""
    security: SecuritySource | None
    of_controllers: SourceOf


def _read_security(settings: RecorderProcessSettings) -> _Secured:
    """Return the security settings. Raises `InvalidProperties`."""
    if settings.command_config is not None:
        file = settings.command_config
        said = _read_client(file)
        said.make_security(file.parent)  # report errors at once

        def security() -> Security:
            return _read_client(file).make_security(file.parent)

        return _Secured(protocol=said.security_protocol, security=security, of_controllers=lambda _: security)
    brokers = SecuredBrokers.open(settings.properties)
    properties = brokers.read()
    return _Secured(
        protocol=properties.protocol_between_brokers,
        security=brokers.source_of(properties.between_brokers),
        of_controllers=brokers.source_of,
    )


def _read_client(file: Path) -> ClientSecurity:
    """Read a client's file now. Raises `InvalidProperties`."""
    return ClientSecurity.parse_properties(read_properties(file))
