"""The screen of `kubectl kontroller leftovers`."""

from controller_operator.kubernetes.leftovers import Leftover
from kontroller.plugin.leftovers import lines

LEFT = Leftover(
    time="2026-01-01T00:00:00Z",
    kind="KafkaTopic",
    namespace="team-c",
    name="orders",
    reason="ClusterGone",
    message="the topic, if there is one, stays",
)


def test_each_leftover_is_a_line_that_says_what_stays() -> None:
    assert lines([LEFT], "kafka") == [
        "DELETED                KIND         NAMESPACE   NAME     REASON        WHAT STAYS",
        "2026-01-01T00:00:00Z   KafkaTopic   team-c      orders   ClusterGone   the topic, if there is one, stays",
    ]


def test_nothing_on_record_is_said_with_where_it_was_looked_for() -> None:
    assert lines([], "kafka") == [
        "No operator has a leftover on record in namespace kafka, which is taken for the operator's."
    ]
    assert lines([], None) == ["No operator has a leftover on record in any namespace."]
