"""Leftovers of deleted objects in Kafka clusters, as the operators recorded them."""

from collections.abc import Sequence

from controller_operator.kubernetes.leftovers import Leftover
from kontroller.screen import format_table


def lines(found: Sequence[Leftover], where: str | None) -> list[str]:
    """Return the screen. `where`: the namespace in question, None for all."""
    rows = [(each.time, each.kind, each.namespace, each.name, each.reason, each.message) for each in found]
    shown = format_table(("DELETED", "KIND", "NAMESPACE", "NAME", "REASON", "WHAT STAYS"), rows, most=None)
    nowhere = "in any namespace" if where is None else f"in namespace {where}, which is taken for the operator's"
    return shown or [f"No operator has a leftover on record {nowhere}."]
