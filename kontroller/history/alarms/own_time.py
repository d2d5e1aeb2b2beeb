"""How much time has passed for a cluster, whatever its controllers' clocks say: the time by which alarms are due.

A stamp is the clock of one controller, which may be hours off, be set in the middle of a term, or begin in 1970. So only
the time *between* two records that follow each other is believed, and only where it is one that a living controller lets
pass: it writes at least every alive interval. A step back counts as none, and one that is too long counts as one interval.

    stamps of four records        0 s   10 s   36,010 s   20 s     of an alive interval of 10 s
    own time at each of them      0 s   10 s       20 s   20 s     the third was stamped ten hours ahead

Where nothing comes, the reader says how long it waited, and that passes as well. A record that comes then has passed by so
much already. Whoever reads an old history waits for nothing, so that its alarms are the same each time.
"""

from dataclasses import dataclass

from kontroller.history.alarms.records import NOWHERE, Position, Rules


@dataclass(slots=True, kw_only=True)
class OwnTime:
    """The time of one cluster, in microseconds since its first record."""

    now_us: int = 0
    newest: Position = NOWHERE
    """The record that was furthest in the history."""
    stamp_us: int = 0
    """Its event time."""
    waited_us: int = 0
    """How long has been waited since it came; a part of `now_us`."""

    def see(self, position: Position, at_us: int, rules: Rules) -> bool:
        """Goes on to a record; says whether it is a new one."""
        if position <= self.newest:
            return False
        if self.newest != NOWHERE:
            self.now_us += max(_believable(at_us - self.stamp_us, rules) - self.waited_us, 0)
        self.newest, self.stamp_us, self.waited_us = position, at_us, 0
        return True

    def wait(self, waited_us: int) -> None:
        """Nothing came for so long."""
        self.now_us += waited_us
        self.waited_us += waited_us


def _believable(step_us: int, rules: Rules) -> int:
    if step_us > rules.silent_after_us:
        return rules.alive_interval_us
    return max(step_us, 0)
