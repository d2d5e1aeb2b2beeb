"""A partition on its way from brokers 1, 2, 3 to 4, 5, 6, shown step by step and judged at its end."""

from collections.abc import Callable

from devcluster.demo.cluster import Cluster
from devcluster.demo.stage import Row

OLD, NEW = (1, 2, 3), (4, 5, 6)


def show_move(cluster: Cluster, topic: str, begin: Callable[[], None], has_ended: Callable[[], bool]) -> None:
    """Watches partition 0 of a topic that `begin` asks to be moved, and counts what is expected of every move."""
    stage = cluster.stage
    with stage.watching(cluster.znodes, topic, 0) as rows:
        begin()
        stage.show_rows(rows, has_ended, explain_move)
    both = tuple(sorted(OLD + NEW))
    stage.expect(rows[0].assigned == OLD, f"it began with AR {set(OLD)}")
    stage.expect(any(row.assigned == both for row in rows), "AR was OAR + RAR while the new replicas caught up")
    stage.expect(
        all(set(NEW) <= set(row.isr) for row in rows if row.leader in NEW),
        "the leader moved only when all of RAR was in sync",
    )
    stage.expect(
        rows[-1].content == (NEW, rows[-1].leader, NEW) and rows[-1].leader in NEW, f"it ended with AR {set(NEW)}"
    )


def explain_move(row: Row, before: Row | None) -> str:
    """Which step of the specification a row shows."""
    if before is None:
        return "initial state"
    if row.assigned != before.assigned:
        return "AR = OAR + RAR (step 2)" if set(row.assigned) > set(NEW) else "AR = RAR, written last (step 10)"
    if row.leader != before.leader:
        return (
            "a leader in RAR (step 7)"
            if set(row.isr) > set(NEW)
            else "a leader in RAR (step 7), OAR - RAR out of the ISR (step 8)"
        )
    if set(row.isr) == set(NEW):
        return "OAR - RAR out of the ISR (step 8)"
    return "all of RAR in the ISR (step 4)" if set(row.isr) >= set(NEW) else "new replicas join the ISR"
