"""A recorder from start to end: observes a cluster, never writes to it, and keeps its journal."""

from contextlib import AsyncExitStack

from prometheus_client import CollectorRegistry

from controller_core.controller.loop.clock import SystemClock
from controller_core.process.http import read_http_access, serve_metrics
from controller_core.process.journal import close_journals, open_journal
from controller_core.process.journal_http import make_journal_routes, read_journal_door
from controller_core.process.recording.metrics import RecorderMetrics
from controller_core.process.recording.settings import RecorderProcessSettings
from controller_core.process.recording.sources import Source, open_source
from controller_core.process.signals import run_until_signalled
from controller_core.recorder.directory import open_directory
from controller_core.recorder.metadata_log.batches import LogUnreadable
from controller_core.recorder.recorder import Recorder


async def run_recorder(settings: RecorderProcessSettings) -> None:
    """Record until SIGTERM or SIGINT. They also end the start.

    Raises `InvalidSettings`, `UnusableDirectory`, `AnotherCluster`, `ClusterLost`, `LogRefused`, `AdminError`,
    `ZkError`, and `OSError` for a port."""
    await run_until_signalled(_run_until_cancelled(settings))


async def _run_until_cancelled(settings: RecorderProcessSettings) -> None:
    async with AsyncExitStack() as stack:
        access = read_http_access(settings)
        door = read_journal_door(settings, access.door)
        ended = stack.enter_context(open_directory(settings.journal_directory))
        source = await stack.enter_async_context(open_source(settings, ended))
        registry = CollectorRegistry()
        journal = open_journal(settings.journal_directory, settings, registry, ended.make_encoder())
        stack.push_async_callback(close_journals, [journal])
        clock = SystemClock()
        recorder = Recorder(source.looker, journal, clock, settings, ended=ended, records_clock=source.records_clock)
        registry.register(RecorderMetrics(recorder))
        if settings.metrics_port is not None:
            routes = make_journal_routes(settings.journal_directory, door=door)
            stop = await serve_metrics(settings.metrics_host, settings.metrics_port, registry, routes, access)
            stack.push_async_callback(stop)
        await record(recorder, source)


async def record(recorder: Recorder, source: Source) -> None:
    """Record until cancelled. If a source proves unreadable, switch to its replacement for good, to avoid going back
    and forth.

    Raises like `Recorder.run`, except for that."""
    while True:
        try:
            await recorder.run()
        except LogUnreadable as error:
            if source.instead is None:
                raise
            source = source.instead(error)
            recorder.go_on_with(source.looker, source.records_clock)
