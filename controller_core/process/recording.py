"""A recorder process from start to end: connects to ZooKeeper, never writes to it, and keeps the journal of a cluster."""

from collections.abc import Iterator
from contextlib import AsyncExitStack
from pathlib import Path

import structlog
from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector
from pydantic import Field

from controller_core.controller.loop.clock import SystemClock
from controller_core.process.connections import zookeeper_session
from controller_core.process.http import serve_metrics
from controller_core.process.journal import close_journals, open_journal
from controller_core.process.journal_http import journal_routes, journal_token
from controller_core.process.settings import InvalidSettings, ProcessSettings
from controller_core.process.signals import until_signalled
from controller_core.recorder.directory import check_cluster, recorders_directory
from controller_core.recorder.recorder import Recorder
from controller_core.recorder.view import cluster_id_of
from controller_core.zk import paths

log = structlog.get_logger()


class RecorderProcessSettings(ProcessSettings):
    """All that can be set about a recorder."""

    journal_directory: Path = Field(description="Where the journal of the cluster's state is written.")
    look_interval_ms: int = Field(
        default=100, ge=10, description="How much time passes at least between two looks at what has changed."
    )
    zookeeper_session_timeout_ms: int = Field(
        default=30_000, ge=1000, description="After how long without a sign of life ZooKeeper ends the session."
    )


async def run_recorder(settings: RecorderProcessSettings) -> None:
    """Runs until SIGTERM or SIGINT.

    Raises `InvalidSettings`, `UnusableDirectory`, `AnotherCluster`, `ZkError`, and `OSError` for a port."""
    async with AsyncExitStack() as stack:
        token = journal_token(settings)
        ended = stack.enter_context(recorders_directory(settings.journal_directory))
        zk = await zookeeper_session(
            settings, jute_maxbuffer_bytes=settings.zookeeper_jute_maxbuffer_bytes, makes_chroot=False
        )
        stack.push_async_callback(zk.close)
        root, cluster_id = await zk.read_many(["/", paths.CLUSTER_ID])
        if root is None:
            raise InvalidSettings(
                f"--zookeeper: {settings.zookeeper} is not there: correct the chroot behind the ports"
            )
        check_cluster(ended, cluster_id_of(cluster_id), settings.journal_directory)
        registry = CollectorRegistry()
        journal = open_journal(settings.journal_directory, settings, registry, ended.encoder())
        stack.push_async_callback(close_journals, [journal])
        recorder = Recorder(zk, journal, SystemClock(), settings, last_epoch=ended.epoch)
        registry.register(RecorderMetrics(recorder))
        if settings.metrics_port is not None:
            routes = journal_routes(settings.journal_directory, token)
            stop = await serve_metrics(settings.metrics_host, settings.metrics_port, registry, routes)
            stack.push_async_callback(stop)
        await until_signalled(recorder.run())


class RecorderMetrics(Collector):
    """How well a recorder sees."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder

    def collect(self) -> Iterator[Metric]:
        recorder, seen, role = (
            self._recorder,
            self._recorder.observed_journal.seen,
            self._recorder.observed_journal.role,
        )
        yield _counter("looks", "Looks at ZooKeeper", recorder.looks)
        yield _counter("znodes_read", "Znodes read", recorder.looker.znodes_read)
        yield _counter(
            "partition_versions_missed",
            "States of partitions that were written again before they were seen",
            seen.versions_missed,
        )
        yield _counter(
            "unobserved_changes", "Changes that nobody saw when they happened, but only later", seen.unobserved
        )
        yield GaugeMetricFamily(
            "kontroller_recorder_last_look_timestamp_seconds",
            "When ZooKeeper was looked at last; 0 if it was not yet",
            value=recorder.last_look_s,
        )
        yield GaugeMetricFamily(
            "kontroller_recorder_controller_epoch",
            "The controller epoch that is being recorded; -1 while there is no controller",
            value=-1 if role is None else role.epoch,
        )


def _counter(name: str, documentation: str, value: float) -> Metric:
    return CounterMetricFamily(f"kontroller_recorder_{name}", documentation, value=value)
