"""The consequences of an error that ended an event: each error has one class, and each class has one policy.

Only errors that no operation handles come here. After a lost race the decision is made again (`zk.compare_and_set`).
Unreadable znodes are reported and left alone (`state.unusable_znodes`). Impossible parts of requests, illegal
transitions, and writes that are too large or that an ACL denies are refused one by one. The stream to a broker retries
until it answers.

The classes and policies stand at `_POLICIES`. Outside of events: an error of an unexpected class while the role is
checked ends the process. Background work is restarted (`controller_core.supervision`).
"""

from dataclasses import dataclass
from enum import Enum
from typing import Final

from kio.schema.errors import ErrorCode

from controller_core.zk.compare_and_set import Contended
from controller_core.zk.fenced import Fenced
from controller_core.zk.session import AccessRefused, Conflict, ConnectionLost, SessionExpired

RETRY_MS: Final = 60_000
"""The delay after which a failed event is handled again."""


class Fault(Enum):
    """The classes of errors. The values are those of logs and metrics."""

    DEPOSED = "deposed"
    ZOOKEEPER_GONE = "zookeeper_gone"
    ACCESS_REFUSED = "access_refused"
    RETRIABLE = "retriable"
    UNEXPECTED = "unexpected"

    @property
    def policy(self) -> "Policy":
        """The consequences of an error of this class."""
        return _POLICIES[self]


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """The consequences of an error."""

    reason: str
    """The reason for the end of the term, if it ends."""
    answer: ErrorCode | None = None
    """The response to a request that has changed nothing; None if the term ends in any case."""
    gives_role_back: bool = False
    """True if `/controller` is deleted, so that nobody has to wait for the end of our session."""
    ends_process: bool = False

    def explain(self, error: Exception) -> str:
        """Return the reason for the end of the term, with the error. Unexpected errors are shown with their type."""
        return f"{self.reason}: {error!r}" if self.may_go_on else f"{self.reason}: {error}"

    @property
    def may_go_on(self) -> bool:
        """True if the term continues when nothing was changed. A term that such an error ends counts as failed."""
        return self.answer is not None


_POLICIES: Final = {
    Fault.DEPOSED: Policy(reason="the role is lost"),
    Fault.ZOOKEEPER_GONE: Policy(reason="ZooKeeper is out of reach", gives_role_back=True, ends_process=True),
    Fault.ACCESS_REFUSED: Policy(reason="ZooKeeper refuses access", ends_process=True),
    Fault.RETRIABLE: Policy(reason="unexpected error", answer=ErrorCode.request_timed_out, gives_role_back=True),
    Fault.UNEXPECTED: Policy(reason="unexpected error", answer=ErrorCode.unknown_server_error, gives_role_back=True),
}
"""The consequences of each class.

| class | errors | event | term | process |
| --- | --- | --- | --- | --- |
| deposed | `Fenced`, `SessionExpired` | dropped | ends, at once | checks the role again |
| ZooKeeper gone | `ConnectionLost`: reads and writes of a term have waited for it | dropped | ends | ends |
| access refused | `AccessRefused`: to the role or a read, of a login | dropped | ends | ends: a person has to act |
| retriable | `Conflict`, `Contended` | **answered** REQUEST_TIMED_OUT, or **later** | continues, or as below | continues |
| unexpected | all others | **answered** UNKNOWN_SERVER_ERROR, or **later** | continues, or as below | continues |

If nothing can have changed before the error (`term.traces`), memory is still sound and the term continues: a request is
*answered*, a `Periodic` event is handled again *later*. Other events cannot be left out, and memory may differ from
ZooKeeper after them. So the controller resigns, and the next term, perhaps of the same process, reads everything again.
`role.failed_terms` says how long this process then waits.
"""


def find_fault(error: Exception) -> Fault:
    """Return the class of an error that ended an event."""
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
