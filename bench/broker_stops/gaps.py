"""The waits of a producer, from its own record of acknowledgements."""

from collections.abc import Sequence

from tests.e2e.toolbox import Acknowledgement


def find_longest_gap(acknowledged: Sequence[Acknowledgement], *, since: int) -> float:
    """Return the longest time in seconds between two acknowledgements of the same partition.

    `since`: the number of acknowledgements before those that count.
    """
    latest: dict[int, float] = {}
    longest = 0.0
    for number, each in enumerate(acknowledged):
        if number >= since and each.partition in latest:
            longest = max(longest, each.at_s - latest[each.partition])
        latest[each.partition] = each.at_s
    return longest
