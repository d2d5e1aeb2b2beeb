"""How long a process leaves the role to others after terms that ended in an error.

One such term is bad luck, and the role is taken again soon: what is in ZooKeeper is sound. Several in a row mean that
something in this cluster is more than this controller can stand. Each change of the controller costs the cluster
something, so the time between them doubles, and a Kafka controller that has the role meanwhile keeps it, but for a rare
attempt. A term that went well for a while, however it ended, forgives those before it.
"""

from dataclasses import dataclass
from typing import Final

FIRST_WAIT_MS: Final = 2000
LONGEST_WAIT_MS: Final = 15 * 60 * 1000
HEALTHY_TERM_MS: Final = 10 * 60 * 1000
"""Longer than anything that a controller does again and again, as looking whether leaders should go back: five minutes."""
TERMS_BEFORE_KAFKA_KEEPS_IT: Final = 5


@dataclass(slots=True)
class FailedTerms:
    """The terms of this process that ended in an error, since the last that went well. All times are monotonic."""

    in_a_row: int = 0
    _last_ended_ms: float = 0

    def on_term_ended(self, *, began_ms: float, ended_ms: float, failed: bool) -> None:
        """A term ended."""
        if ended_ms - began_ms >= HEALTHY_TERM_MS:
            self.in_a_row = 0
        if failed:
            self.in_a_row += 1
            self._last_ended_ms = ended_ms

    def wait_ms(self, now_ms: float, *, held_by_kafka: bool) -> float:
        """How much longer the role is left to whoever has it, or to nobody."""
        if not self.in_a_row:
            return 0
        wait_ms = min(FIRST_WAIT_MS << min(self.in_a_row - 1, 20), LONGEST_WAIT_MS)
        if held_by_kafka and self.in_a_row >= TERMS_BEFORE_KAFKA_KEEPS_IT:
            wait_ms = LONGEST_WAIT_MS
        return max(0.0, self._last_ended_ms + wait_ms - now_ms)
