"""A recorder's journal: the controller, and the differences from the recorded state.

A new controller's term begins with the last recorded state. So changes without a controller, or before its election was
seen, are recorded as changes of the new term instead of being lost between two snapshots."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import structlog

from controller_core.controller.loop.clock import Clock
from controller_core.controller.recording.stamped_journal import StampedJournal
from controller_core.journal.batches import (
    Alive,
    Committed,
    Context,
    Elected,
    Journal,
    RecorderStarted,
    Resigned,
    StateCopy,
)
from controller_core.journal.changes import Change
from controller_core.journal.inference import UNOBSERVED, Looks, explain, find_restarted
from controller_core.journal.observed import count_missed_versions, difference
from controller_core.model.ids import BrokerId, ControllerEpoch
from controller_core.model.snapshot import Controller
from controller_core.recorder.directory import Ended
from controller_core.recorder.event_numbers import find_thing_of_change, number_event
from controller_core.recorder.looker import View

log = structlog.get_logger()

_STARTED: Final = "recorder_started"
_FAILOVER: Final = "controller_failover"
_JOURNAL_DUE: Final = "journal_due"
_LATELY_MS: Final = 10_000
"""Milliseconds after a broker's restart in which it counts as the cause of leaderships that leave the broker."""


class AnotherCluster(Exception):
    """The observed cluster is not the one of the journal. Fatal: a person has to look."""


@dataclass(slots=True)
class Seen:
    """Counts of incomplete observations."""

    versions_missed: int = 0
    """States of partitions that were overwritten before they were seen."""
    unobserved: int = 0
    """Changes that were found without a notification of them."""


class ObservedJournal:
    """The observations of one cluster on their way to the journal. `ended`: the end of the existing journal."""

    def __init__(
        self,
        journal: Journal,
        clock: Clock,
        *,
        snapshot_interval_ms: float,
        alive_interval_ms: int,
        ended: Ended,
    ) -> None:
        self.seen = Seen()
        self.role: Controller | None = None
        """The controller whose term is being recorded; None while there is none."""
        self._journal = journal
        self._clock = clock
        self._stamped = StampedJournal(journal=journal, clock=clock, snapshot_interval_ms=snapshot_interval_ms)
        self._alive_interval_ms = alive_interval_ms
        self._last_epoch = ended.epoch
        self._last_event = ended.last_event
        self._position: int | None = None
        self._cluster_id = ended.cluster_id
        self._recorded: StateCopy | None = None
        """The state that the records add up to; None before the first snapshot."""
        self._restarted_ms: dict[BrokerId, float] = {}
        self._controllers: dict[ControllerEpoch, BrokerId] = {}
        """The controllers of the last two terms."""
        self._began_ms = clock.now_ms()
        self._events = 0

    @property
    def is_snapshot_due(self) -> bool:
        return self.role is not None and self._stamped.is_snapshot_due

    @property
    def silent_ms(self) -> float:
        """Milliseconds since the last record."""
        return self._stamped.silent_ms

    def follow(self, view: View, is_unobserved: Callable[[Change], bool]) -> None:
        """Record what is new in a view. Raises `AnotherCluster`."""
        self._check(view)
        self._number(view)
        if view.is_recorded:
            self._continue_from(view)
            return
        self._follow_role(view)
        if self.role is None or self._recorded is None:
            return
        before, self._recorded = self._recorded, view.state
        changes = self._skip_written(difference(before, view.state, view.touched))
        self.seen.versions_missed += count_missed_versions(changes)
        unobserved = [change for change in changes if is_unobserved(change)]
        if unobserved:
            self.seen.unobserved += len(unobserved)
            log.warning("changes were not seen when they happened", changes=len(unobserved))
            self._commit(UNOBSERVED, unobserved)
        observed = [change for change in changes if not is_unobserved(change)] if unobserved else changes
        looks = Looks(
            before=before,
            after=view.state,
            restarted=self._find_restarted(observed),
            controllers=self._controllers,
            shutting_down=view.shutting_down,
        )
        for cause, explained in explain(observed, looks):
            self._commit(cause, explained)
        if self._journal.wants_snapshot:
            self.take_snapshot()

    def restart(self, clock: Clock) -> "ObservedJournal":
        """Return an observer of the same journal for views that do not follow from the earlier ones, as after a
        restart."""
        anew = ObservedJournal(
            self._journal,
            clock,
            snapshot_interval_ms=self._stamped.snapshot_interval_ms,
            alive_interval_ms=self._alive_interval_ms,
            ended=Ended(cluster_id=self._cluster_id, epoch=self._last_epoch),
        )
        anew.seen = self.seen
        return anew

    def take_snapshot(self, cause: str = _JOURNAL_DUE) -> None:
        """Record the whole state. Without a controller this does nothing, because the next term begins with a
        snapshot."""
        if self._recorded is not None and self.role is not None:
            self._stamped.take_snapshot(self._make_context(cause), self._recorded)

    def record_alive(self) -> None:
        """Record that the controller still has its role and nothing changed."""
        self._stamped.record(Alive(context=self._make_context(_JOURNAL_DUE), alive_interval_ms=self._alive_interval_ms))

    def _check(self, view: View) -> None:
        if self._cluster_id not in (None, view.cluster_id):
            raise AnotherCluster(
                f"the cluster's id was {self._cluster_id} and is {view.cluster_id}: it was created again, or the "
                "address leads to another one; record it into another directory"
            )
        self._cluster_id = view.cluster_id
        if view.role and self._last_epoch is not None and view.role.epoch < self._last_epoch:
            raise AnotherCluster(
                f"the journal has controller epoch {self._last_epoch}, and the cluster is at {view.role.epoch}: "
                "it was created again; record it into another directory"
            )

    def _follow_role(self, view: View) -> None:
        former, self.role = self.role, view.role
        if former == view.role:
            return
        if former is not None:
            self.role = former
            self._begin_event()
            reason = f"broker {view.role.id} took the role" if view.role else "nobody has the role"
            self._stamped.record(Resigned(context=self._make_context(_FAILOVER), reason=reason))
            self.role = view.role
        if view.role is not None:
            self._begin_term(view.role, view.state)

    def _begin_term(self, role: Controller, state: StateCopy) -> None:
        log.info("recording", controller=role.id, epoch=role.epoch, partitions=len(state.states))
        self._last_epoch = role.epoch
        self._controllers = dict([*self._controllers.items(), (role.epoch, role.id)][-2:])
        self._begin_event()
        if self._recorded is None:
            self._recorded = state
            started = RecorderStarted(context=self._make_context(_STARTED), alive_interval_ms=self._alive_interval_ms)
            self._stamped.record(started)
            self.take_snapshot(_STARTED)
        else:
            elected = Elected(context=self._make_context(_FAILOVER), alive_interval_ms=self._alive_interval_ms)
            self._stamped.record(elected)
            self.take_snapshot(_FAILOVER)

    def _number(self, view: View) -> None:
        if view.position is not None and view.position != self._position:
            self._events = 0
        self._position = view.position

    def _continue_from(self, view: View) -> None:
        """Continue the journal, which has everything up to here, and perhaps a part of the next event."""
        log.info("going on with the journal", position=view.position, partitions=len(view.state.states))
        self.role, self._recorded = view.role, view.state
        if view.role is not None:
            self._controllers = {view.role.epoch: view.role.id}
        self._stamped.begin_silence()

    def _skip_written(self, changes: list[Change]) -> list[Change]:
        """Return the changes that the journal does not have yet of the event with which it ended."""
        last = self._last_event
        if last is None or last.position != self._position:
            return changes
        return [change for change in changes if find_thing_of_change(change) not in last.written]

    def _find_restarted(self, changes: Sequence[Change]) -> list[BrokerId]:
        now_ms = self._clock.monotonic_ms()
        self._restarted_ms |= dict.fromkeys(find_restarted(changes), now_ms)
        return [broker for broker, when_ms in self._restarted_ms.items() if now_ms - when_ms < _LATELY_MS]

    def _commit(self, cause: str, changes: Sequence[Change]) -> None:
        self._begin_event()
        self._stamped.record(Committed(context=self._make_context(cause), changes=changes))

    def _begin_event(self) -> None:
        self._events += 1

    def _make_context(self, cause: str) -> Context:
        assert self.role is not None
        return self._stamped.make_context(
            cluster_id=self._cluster_id,
            controller_id=self.role.id,
            controller_epoch=self.role.epoch,
            cause=cause,
            event=self._event,
            is_inferred=True,
        )

    @property
    def _event(self) -> str:
        if self._position is None:
            return f"{self._began_ms}-{self._events}"
        return number_event(self._position, self._events)
