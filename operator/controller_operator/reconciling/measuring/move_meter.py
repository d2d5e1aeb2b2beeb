"""Asks brokers for the progress of moves, in the background: no move ever waits for their answers, except one that
names log directories.

One reconciliation begins a reading if it is due, and the next one shows the result. Results are only in memory: another
operator measures again, and until its first reading the status keeps the old progress.
"""

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import structlog

from controller_core.client.log_dirs.copy_sizes import Reading, questions, take_reading
from controller_core.client.log_dirs.log_sizes import BrokerClient, Copies, LogSizes, OpenBroker, ask_log_sizes
from controller_core.client.log_dirs.placing import Directories, Places
from controller_core.client.transport.request_client import RequestClient
from controller_core.model.ids import BrokerId
from controller_core.model.snapshot import Snapshot
from controller_core.supervision import start_task
from controller_operator.kafka.broker_listeners import ANY_PLAINTEXT, BrokerListener
from controller_operator.kafka.stalls import NO_STALLS, Stalls
from controller_operator.kubernetes.object_store import Key, StoredObject, key_of_resource
from controller_operator.plans.reassignment.copying.progress import add_latest, progress
from controller_operator.plans.reassignment.copying.stalls import (
    NOTHING_READ,
    History,
    find_stalls,
    remember,
)
from controller_operator.reconciling.measuring.asking import ask_brokers
from controller_operator.reconciling.measuring.readings import Measured, Readings
from controller_operator.reconciling.wall_clock import Now
from controller_operator.resources import PartitionReassignment
from controller_operator.resources.reassignment import MoveProgress

EVERY_S: Final = 10.0
TIMEOUT_S: Final = 5.0
"""Seconds for a whole reading. Brokers that hang do not delay the next one."""
_LISTENER_MS: Final = 4_000
"""Milliseconds for all listeners of a broker, divided equally among them."""
_STALE_S: Final = 3 * EVERY_S
_SOON_S: Final = 1.0
"""Seconds after which places are read again that a request has changed."""
_NO_DIRECTORIES: Final[Directories] = {}
_log = structlog.get_logger(__name__)

OVER_TCP: Final[OpenBroker] = partial(RequestClient, timeout_ms=_LISTENER_MS, negotiates=True)


@dataclass(slots=True, kw_only=True)
class _Measured(Measured):
    known_at_s: float | None = None
    """None: no reading has ended yet."""
    readings: tuple[Reading, ...] = ()
    history: History = NOTHING_READ
    found: MoveProgress | None = None
    places: Places | None = None

    @property
    def is_stale(self) -> bool:
        """True if a reading has ended, but none lately."""
        return self.known_at_s is not None and _time_s() - self.known_at_s > _STALE_S


class MoveMeter(Readings[_Measured]):
    """The progress of moves, each read at most every ten seconds."""

    def __init__(self, open_broker: OpenBroker, tell: Callable[[Iterable[Key]], None], now: Now) -> None:
        """`tell` queues a move for reconciliation when its progress has changed."""
        super().__init__()
        self._open_broker = open_broker
        self._tell = tell
        self._now = now

    def progress_of(self, move: PartitionReassignment) -> MoveProgress | None:
        """Return the progress of a move: that of its status until this operator has its first reading."""
        measured = self._find(move)
        if measured is None:
            return move.status.progress
        return None if measured.is_stale else measured.found

    def stalls_of(self, move: PartitionReassignment) -> Stalls:
        """Return the stalled copies of the move, as far as this operator knows."""
        measured = self._find(move)
        if measured is None or measured.is_stale:
            return NO_STALLS
        return find_stalls(measured.history, is_limited=move.spec.throttle is not None)

    def places_of(self, move: PartitionReassignment) -> Places | None:
        """Return the brokers' last answers about the log directories of the move; None if they are not known now."""
        measured = self._find(move)
        return None if measured is None or measured.is_stale else measured.places

    def outdate_places(self, key: Key, uid: str) -> None:
        """Forget the places of a move's replicas, because brokers have begun to change them, and read them soon."""
        measured = self.find(key, uid)
        if measured is None:
            return
        measured.places = None
        measured.begun_at_s = min(measured.begun_at_s, _time_s() - EVERY_S + _SOON_S)
        if measured.work is not None:
            measured.work.cancel()

    def look(
        self,
        stored: StoredObject,
        copies: Copies,
        view: Snapshot,
        listener: BrokerListener = ANY_PLAINTEXT,
        directories: Directories = _NO_DIRECTORIES,
    ) -> float:
        """Begin a reading if one is due. Return the seconds until the next one."""
        key, now_s = stored.key, _time_s()
        measured = self.find(key, stored.uid)
        if measured is None:
            measured = self.put(key, _Measured(uid=stored.uid, begun_at_s=now_s - EVERY_S))
        left_s = measured.begun_at_s + EVERY_S - now_s
        if left_s > 0:
            return left_s
        measured.begun_at_s = now_s
        self._begin(key, measured, self._read(key, measured, copies, view, listener, directories))
        return EVERY_S

    def _find(self, move: PartitionReassignment) -> _Measured | None:
        """Return the knowledge of a move; None before its first reading has ended."""
        measured = self.find(key_of_resource(move), move.metadata.uid)
        return None if measured is None or measured.known_at_s is None else measured

    def _begin(self, key: Key, measured: _Measured, reading: Coroutine[Any, Any, None]) -> None:
        def nothing_known(_: Exception) -> None:
            self._keep(key, measured, None)

        measured.work = start_task(reading, name=f"progress of {key}", on_error=nothing_known)

    async def _read(
        self,
        key: Key,
        measured: _Measured,
        copies: Copies,
        view: Snapshot,
        listener: BrokerListener,
        directories: Directories,
    ) -> None:
        asked = questions(copies, directories)

        async def ask(broker: BrokerId, client: BrokerClient) -> LogSizes:
            return await ask_log_sizes(asked[broker], client)

        live = asked.keys() & view.brokers.keys()
        answers = await ask_brokers(live, view, listener, self._open_broker, ask, TIMEOUT_S)
        # Before the move begins nothing is copied, and only the places count.
        latest = take_reading(copies, answers.by_broker, _time_s(), directories) if copies else None
        if answers.troubles and (measured.found is not None or measured.known_at_s is None):
            _log.warning("progress not known", object=str(key), errors=answers.troubles)
        places = Places(answers=answers.by_broker, troubles=answers.troubles) if directories else None
        self._keep(key, measured, latest, places)

    def _keep(self, key: Key, measured: _Measured, latest: Reading | None, places: Places | None = None) -> None:
        measured.readings = add_latest(measured.readings, latest) if latest else ()
        measured.history = remember(measured.history, latest) if latest else measured.history
        found = progress(measured.readings, self._now())
        is_new = (found, places) != (measured.found, measured.places) or measured.known_at_s is None
        measured.found, measured.places, measured.known_at_s = found, places, _time_s()
        if is_new:
            self._tell((key,))


def _time_s() -> float:
    return asyncio.get_running_loop().time()
