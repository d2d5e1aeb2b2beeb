"""The wait of a process after terms that ended in an error, during which it leaves the role to others.

After a single failed term the role is taken again soon, because ZooKeeper's content is sound. Several in a row mean
that this controller cannot handle something in the cluster. Each change of the controller costs the cluster something,
so the wait doubles. A Kafka controller that has the role by then keeps it, except for a rare attempt. A term that
lasted, however it ended, resets the count.
"""

from dataclasses import dataclass
from typing import Final

FIRST_WAIT_MS: Final = 2000
LONGEST_WAIT_MS: Final = 15 * 60 * 1000
HEALTHY_TERM_MS: Final = 10 * 60 * 1000
"""Longer than any interval of the controller's periodic work, such as five minutes for the leader imbalance."""
TERMS_BEFORE_KAFKA_KEEPS_IT: Final = 5


@dataclass(slots=True)
class FailedTerms:
    """The failed terms of this process since the last healthy one. All times are monotonic."""

    in_a_row: int = 0
    _last_ended_ms: float = 0

    def on_term_ended(self, *, began_ms: float, ended_ms: float, failed: bool) -> None:
        """Count the end of a term."""
        if ended_ms - began_ms >= HEALTHY_TERM_MS:
            self.in_a_row = 0
        if failed:
            self.in_a_row += 1
            self._last_ended_ms = ended_ms

    def wait_ms(self, now_ms: float, *, held_by_kafka: bool) -> float:
        """Return how much longer this process has to leave the role alone."""
        if not self.in_a_row:
            return 0
        wait_ms = min(FIRST_WAIT_MS << min(self.in_a_row - 1, 20), LONGEST_WAIT_MS)
        if held_by_kafka and self.in_a_row >= TERMS_BEFORE_KAFKA_KEEPS_IT:
            wait_ms = LONGEST_WAIT_MS
        return max(0.0, self._last_ended_ms + wait_ms - now_ms)
