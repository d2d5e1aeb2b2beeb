"""The time that passes for a cluster independently of its controllers' clocks. Alarms become due by it.

A timestamp is of one controller's clock, which may be hours off, be set within a term, or start in 1970. So only the
time *between* consecutive records counts, and only if a live controller would let it pass, because it writes at least
every alive interval. A backward step counts as none, and a too long one as one interval. With an interval of 10 s:
    timestamps of four records    0 s   10 s   36,010 s   20 s
    own time at each of them      0 s   10 s       20 s   20 s     the third was stamped ten hours ahead

If nothing comes, the reader adds its waiting time, which the next record's step then includes. A reader of an old
history never waits, so it gets the same alarms each time.
"""

from dataclasses import dataclass

from kontroller.history.alarms.records import NOWHERE, Position, Rules


@dataclass(slots=True, kw_only=True)
class OwnTime:
    """The time of one cluster, in microseconds since its first record."""

    now_us: int = 0
    newest: Position = NOWHERE
    """The furthest record of the history so far."""
    stamp_us: int = 0
    """The event time of that record."""
    waited_us: int = 0
    """The time waited since it came, a part of `now_us`."""

    def see(self, position: Position, at_us: int, rules: Rules) -> bool:
        """Advance to a record. Return True if it is new."""
        if position <= self.newest:
            return False
        if self.newest != NOWHERE:
            # The reader has already counted the time that it waited for this record.
            self.now_us += max(_believable(at_us - self.stamp_us, rules) - self.waited_us, 0)
        self.newest, self.stamp_us, self.waited_us = position, at_us, 0
        return True

    def wait(self, waited_us: int) -> None:
        """Let time pass without a record."""
        self.now_us += waited_us
        self.waited_us += waited_us


def _believable(step_us: int, rules: Rules) -> int:
    if step_us > rules.silent_after_us:
        return rules.alive_interval_us
    return max(step_us, 0)
