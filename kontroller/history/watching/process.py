"""Runs a watch: reads journals, notifies receivers, serves metrics, and writes the checkpoint.

Each journal and each receiver is a task of its own, which is restarted after a failure without effect on others.
"""

import asyncio
import os
import sys
import time
from collections.abc import Callable, Coroutine
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from typing import Any, Final

import aiohttp
import structlog
from aiohttp import web
from prometheus_client import CollectorRegistry

from controller_core.process.connections import open_secured_brokers
from controller_core.process.http import read_http_access, serve_metrics
from controller_core.process.settings import InvalidSettings
from controller_core.process.signals import run_until_signalled
from controller_core.supervision import start_supervised
from controller_core.wire.connections.librdkafka import librdkafka_source
from kontroller.history.sources.journal_http import JournalUnreadable
from kontroller.history.watching import checkpoint
from kontroller.history.watching.alertmanager import Alertmanager
from kontroller.history.watching.board import Board
from kontroller.history.watching.fleet import Fleet
from kontroller.history.watching.journals.folder import FolderJournal
from kontroller.history.watching.journals.journal import Journal
from kontroller.history.watching.journals.served import ServedJournal
from kontroller.history.watching.json_lines import JsonLines
from kontroller.history.watching.metrics import WatchMetrics
from kontroller.history.watching.settings import STANDARD_OUTPUT, WatchSettings
from kontroller.history.watching.threads import run_to_end

log = structlog.get_logger()

_CHECKPOINT_S: Final = 2.0
_CHECKPOINT_AT_LEAST_S: Final = 60.0
Work = Callable[[], Coroutine[Any, Any, None]]


async def run_watch(settings: WatchSettings) -> None:
    """Run until SIGTERM or SIGINT. They also end the start. Raises `InvalidSettings`, `UnusableCheckpoint`, and
    `OSError` for a port or a file."""
    await run_until_signalled(_watch_until_cancelled(settings))


async def _watch_until_cancelled(settings: WatchSettings) -> None:
    async with AsyncExitStack() as stack:
        session = await stack.enter_async_context(aiohttp.ClientSession())
        path = settings.checkpoint
        kept = checkpoint.read(path) if path is not None else checkpoint.Kept()
        board = Board(kept.alarms())
        journals = {it.name: it for it in _journals(settings, session)}
        fleet = Fleet(settings.rules, board, journals, wall=time.time, monotonic=time.monotonic)
        for cluster_id, stamp_us in kept.clusters.items():
            fleet.expect(cluster_id, stamp_us)
        receivers = _receivers(settings, session, board, stack)
        readable = dict.fromkeys(journals, True)
        await _serve(settings, WatchMetrics(fleet, board, receivers, readable, time.monotonic), fleet, stack)
        work: dict[str, Work] = {f"receiver {it.name}": it.run for it in receivers}
        for name, journal in journals.items():
            work[f"journal {name}"] = _make_follower(journal, fleet, readable, settings.poll_interval_seconds)
        work["time"] = lambda: _pass_time(fleet, settings.poll_interval_seconds)
        if path is not None:
            # This fails at once if the file cannot be written.
            checkpoint.write(path, checkpoint.take_checkpoint(fleet, board))
            stack.callback(lambda: _write_checkpoint(path, checkpoint.take_checkpoint(fleet, board)))
            work["checkpoint"] = lambda: _keep(path, fleet, board)
        log.info("watching", journals=list(journals), receivers=[it.name for it in receivers])
        await _all(work)


def _journals(settings: WatchSettings, session: aiohttp.ClientSession) -> list[Journal]:
    tokens, tls, caps = settings.tokens, settings.make_tls(), settings.caps
    journals: list[Journal] = [
        ServedJournal(place, session, tokens, tls, caps) if "://" in place else FolderJournal(Path(place), caps)
        for place in settings.journal
    ]
    if settings.topic is not None and settings.bootstrap_server is not None:
        try:
            from kontroller.history.watching.journals.topic import TopicJournal
        except ImportError as error:
            raise InvalidSettings(
                "--topic needs confluent-kafka: in a checkout of Kontroller, pip install '.[journal-topic]'"
            ) from error
        security = librdkafka_source(open_secured_brokers(settings.properties))
        journals.append(TopicJournal(settings.topic, settings.bootstrap_server, security))
    return journals


def _receivers(
    settings: WatchSettings, session: aiohttp.ClientSession, board: Board, stack: AsyncExitStack
) -> list[JsonLines | Alertmanager]:
    """Return the receivers, registered for all later alarms. Alertmanagers also get the alarms that are already
    raised."""
    lines = _output(settings.output, stack)
    stack.callback(lines.write)
    receivers: list[JsonLines | Alertmanager] = [lines]
    for url in settings.alertmanager:
        resend_s = settings.alertmanager_resend_seconds
        receivers.append(Alertmanager(url, session, board.standing.items(), wall=time.time, resend_s=resend_s))
    for receiver in receivers:
        board.tell(receiver.receive)
    return receivers


def _output(output: str, stack: AsyncExitStack) -> JsonLines:
    if output == STANDARD_OUTPUT:
        return JsonLines(sys.stdout.fileno(), "standard output")
    descriptor = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
    stack.callback(os.close, descriptor)
    return JsonLines(descriptor, output)


async def _serve(settings: WatchSettings, metrics: WatchMetrics, fleet: Fleet, stack: AsyncExitStack) -> None:
    if settings.metrics_port is not None:
        registry = CollectorRegistry()
        registry.register(metrics)
        access = read_http_access(settings)
        stop = await serve_metrics(settings.metrics_host, settings.metrics_port, registry, [_readyz(fleet)], access)
        stack.push_async_callback(stop)


def _readyz(fleet: Fleet) -> web.RouteDef:
    """Return a route that is ready if each journal has been read to its end or cannot be read. Then the alarms are
    complete."""

    async def readyz(_: web.Request) -> web.Response:
        return web.json_response({"journals": fleet.idle}, status=200 if fleet.is_caught_up else 503)

    return web.get("/readyz", readyz)


def _make_follower(journal: Journal, fleet: Fleet, readable: dict[str, bool], pause_s: float) -> Work:
    async def follow() -> None:
        try:
            while True:
                await _read(journal, fleet, readable)
                await asyncio.sleep(pause_s if fleet.idle[journal.name] else 0)
        finally:
            await journal.close()

    return follow


async def _read(journal: Journal, fleet: Fleet, readable: dict[str, bool]) -> None:
    name = journal.name
    try:
        chunk = await journal.read()
    except JournalUnreadable as error:
        fleet.cannot_read(name)
        if readable[name]:
            log.warning("a journal cannot be read", journal=name, reason=str(error))
        readable[name] = False
        return
    if not readable[name]:
        log.info("a journal can be read again", journal=name)
    readable[name] = True
    fleet.take(name, chunk)


async def _pass_time(fleet: Fleet, every_s: float) -> None:
    while True:
        await asyncio.sleep(every_s)
        fleet.pass_time()


async def _keep(path: Path, fleet: Fleet, board: Board) -> None:
    """Write the checkpoint after changes of alarms, and now and then for the clusters' times."""
    written, written_s = (-1, -1), 0.0
    while True:
        await asyncio.sleep(_CHECKPOINT_S)
        now, now_s = (board.changes, len(fleet.clusters)), time.monotonic()
        is_due = now != written or now_s - written_s > _CHECKPOINT_AT_LEAST_S
        if is_due and await run_to_end(partial(_write_checkpoint, path, checkpoint.take_checkpoint(fleet, board))):
            written, written_s = now, now_s


def _write_checkpoint(path: Path, kept: checkpoint.Kept) -> bool:
    """Write the checkpoint. Return False if the disk refused it; the state in memory is written with the next one."""
    try:
        checkpoint.write(path, kept)
    except OSError as error:
        log.warning("the checkpoint cannot be written", path=str(path), reason=str(error))
        return False
    return True


async def _all(work: dict[str, Work]) -> None:
    tasks = [start_supervised(each, name=name) for name, each in work.items()]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
