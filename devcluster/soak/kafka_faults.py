"""A fault of Kafka's own controller, found in its logs, so that nobody else is blamed for it.

If building a batch of requests fails, the controller does not empty the batch. Every later transition then fails with
"Controller to broker state change requests batch is not empty", which is logged and forgotten. A reassignment goes on
all the same: the new assignment is written, and no broker is ever asked to delete the log of a removed replica. The
next controller cannot know of it.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Final

_DELETION_FAILED: Final = "Error while moving some replicas to ReplicaDeletionStarted state"
_ASSIGNED: Final = re.compile(r"\[Controller id=\d+\] Successfully updated assignment of partition (\S+) to ")


def find_undeleted_replicas(broker_log: Iterable[str]) -> Iterator[str]:
    """Yield the partitions, as `topic-0`, that a broker reassigned as the controller without deleting a removed
    replica.
    """
    has_failed = False
    for line in broker_log:
        if _DELETION_FAILED in line:
            has_failed = True
        elif found := _ASSIGNED.search(line):
            if has_failed:
                yield found[1]
            has_failed = False
