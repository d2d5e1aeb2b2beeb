"""What follows from an error that ended an event: each error is of one class, and each class has one policy.

Only what no operation has an answer for comes here. A lost race is decided again (`zk.compare_and_set`); what cannot be
read is reported and left alone (`state.unusable_znodes`); what cannot be done is refused alone, be it a part of a request,
a transition of a replica, or a write that is too large. A broker that does not answer is asked again by its stream.

| class | errors | event | term | process |
| --- | --- | --- | --- | --- |
| deposed | `Fenced`, `SessionExpired` | dropped | ends, at once | looks at the role again |
| ZooKeeper gone | `ConnectionLost`: reads and writes of a term have waited for it | dropped | ends | ends |
| access refused | `AccessRefused` | dropped | ends | ends: a person has to act |
| retriable | `Conflict`, `Contended` | **answered** REQUEST_TIMED_OUT, or **later** | goes on, or as below | goes on |
| unexpected | all others | **answered** UNKNOWN_SERVER_ERROR, or **later** | goes on, or as below | goes on |

*Answered* is a request, and put off until *later* one of the `Periodic` events, where nothing can have been changed before
the error (`term.traces`): then what is in memory is as sound as it was, and the term goes on. Any other event cannot be
left out, and what is in memory may no longer be what ZooKeeper has: the role is given away, and the next term, of this
process perhaps, reads everything. How long this process waits for that is said in `role.failed_terms`.

Outside of events: an error while the role is looked at, which no class has an answer for, ends the process; work in the
background begins anew (`controller_core.supervision`).
"""

from dataclasses import dataclass
from enum import Enum
from typing import Final

from kio.schema.errors import ErrorCode

from controller_core.zk.compare_and_set import Contended
from controller_core.zk.fenced import Fenced
from controller_core.zk.session import AccessRefused, Conflict, ConnectionLost, SessionExpired

LATER_MS: Final = 60_000
"""When a periodic event that failed is handled again."""


class Fault(Enum):
    """The classes of errors; the values are those of logs and metrics."""

    DEPOSED = "deposed"
    ZOOKEEPER_GONE = "zookeeper_gone"
    ACCESS_REFUSED = "access_refused"
    RETRIABLE = "retriable"
    UNEXPECTED = "unexpected"

    @property
    def policy(self) -> "Policy":
        """What follows."""
        return _POLICIES[self]


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """What follows from an error."""

    reason: str
    """Why the term ends, where it does."""
    answer: ErrorCode | None = None
    """What a request is answered that has changed nothing; None where the term ends whatever was changed."""
    gives_role_back: bool = False
    """Whether `/controller` is deleted, so that nobody has to wait for the end of our session."""
    ends_process: bool = False

    def why(self, error: Exception) -> str:
        """Why the term ends, with the error; what nobody expected is shown with its type."""
        return f"{self.reason}: {error!r}" if self.may_go_on else f"{self.reason}: {error}"

    @property
    def may_go_on(self) -> bool:
        """Whether the term goes on where nothing was changed. Where it does not, it counts as one that failed."""
        return self.answer is not None


_POLICIES: Final = {
    Fault.DEPOSED: Policy(reason="the role is lost"),
    Fault.ZOOKEEPER_GONE: Policy(reason="ZooKeeper is out of reach", gives_role_back=True, ends_process=True),
    Fault.ACCESS_REFUSED: Policy(reason="ZooKeeper refuses access", ends_process=True),
    Fault.RETRIABLE: Policy(reason="unexpected error", answer=ErrorCode.request_timed_out, gives_role_back=True),
    Fault.UNEXPECTED: Policy(reason="unexpected error", answer=ErrorCode.unknown_server_error, gives_role_back=True),
}


def fault_of(error: Exception) -> Fault:
    """The class of an error that ended an event."""
    match error:
        case Fenced() | SessionExpired():
            return Fault.DEPOSED
        case ConnectionLost():
            return Fault.ZOOKEEPER_GONE
        case AccessRefused():
            return Fault.ACCESS_REFUSED
        case Conflict() | Contended():
            return Fault.RETRIABLE
        case _:
            return Fault.UNEXPECTED
