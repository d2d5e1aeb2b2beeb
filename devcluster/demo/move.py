"""A move of a partition from brokers 1, 2, 3 to 4, 5, 6, shown step by step and checked at its end."""

from collections.abc import Callable

from devcluster.demo.stage import Place, Stage

OLD, NEW = (1, 2, 3), (4, 5, 6)


def show_move(
    stage: Stage, look: Callable[[], Place], begin: Callable[[], None], has_ended: Callable[[], bool]
) -> None:
    """Watch a partition that `begin` asks to be moved, and check the expectations of every move."""
    with stage.watch(look) as rows:
        begin()
        stage.show_rows(rows, has_ended, explain_move)
    places = [row.place for row in rows]
    both = tuple(sorted(OLD + NEW))
    stage.expect(places[0].assigned == OLD, f"it began with AR {set(OLD)}")
    stage.expect(any(place.assigned == both for place in places), "AR was OAR + RAR while the new replicas caught up")
    stage.expect(
        all(set(NEW) <= set(place.isr) for place in places if place.leader in NEW),
        "the leader moved only when all of RAR was in sync",
    )
    end = places[-1]
    stage.expect(end.assigned == end.isr == NEW and end.leader in NEW, f"it ended with AR {set(NEW)}")


def explain_move(place: Place, before: Place | None) -> str:
    """Return the step of the specification that a change shows."""
    if before is None:
        return "initial state"
    if place.assigned != before.assigned:
        return "AR = OAR + RAR (step 2)" if set(place.assigned) > set(NEW) else "AR = RAR, written last (step 10)"
    if place.leader != before.leader:
        return (
            "a leader in RAR (step 7)"
            if set(place.isr) > set(NEW)
            else "a leader in RAR (step 7), OAR - RAR out of the ISR (step 8)"
        )
    if set(place.isr) == set(NEW):
        return "OAR - RAR out of the ISR (step 8)"
    return "all of RAR in the ISR (step 4)" if set(place.isr) >= set(NEW) else "new replicas join the ISR"
