"""Traces of an event: they show if a failed event can have changed anything. If not, the term is still sound.

An operation writes first and changes the state in memory afterwards, so the writes show its changes. Two changes by
requests and periodic events follow no write: adding topics that somebody else created, and marking brokers as shutting
down. Requests that wait to be sent at the event's end are a change as well.
"""

from controller_core.controller.term.term import Term
from controller_core.model.ids import BrokerId

Traces = tuple[int, int, frozenset[BrokerId]]


def take_traces(term: Term) -> Traces | None:
    """Return values that every change changes; None if that is impossible."""
    state = term.state
    return (term.writer.applied, state.revision, frozenset(state.shutting_down)) if term.batch.is_empty else None


def is_untouched(term: Term, before: Traces | None) -> bool:
    """Return True if nothing was changed since the traces were taken."""
    return before is not None and take_traces(term) == before
