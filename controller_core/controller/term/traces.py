"""Whether an event that failed can have changed anything: if not, the term is as sound as it was before it.

An operation writes first and changes the state in memory afterwards, so what it has changed shows in what was written. Of
what requests and periodic events do, two changes follow from no write: topics that are taken in because somebody else has
created them, and brokers that are shutting down. What brokers are to be sent at the event's end is a change as well.
"""

from controller_core.controller.term.term import Term
from controller_core.model.ids import BrokerId

Traces = tuple[int, int, frozenset[BrokerId]]


def traces(term: Term) -> Traces | None:
    """What whoever changes anything changes of this; None where that cannot be known."""
    state = term.state
    return (term.writer.applied, state.revision, frozenset(state.shutting_down)) if term.batch.is_empty else None


def is_untouched(term: Term, before: Traces | None) -> bool:
    """Whether nothing was changed since the traces were taken."""
    return before is not None and traces(term) == before
