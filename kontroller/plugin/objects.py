"""Objects as the plugin shows them: readers of their JSON that work with any version of the operator."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Self

from controller_operator.kubernetes.object_api import ObjectApi, ObjectGone
from controller_operator.kubernetes.object_store import KIND_CLASSES, Key, Raw, key_of
from controller_operator.resources.common import pauses
from controller_operator.resources.conditions import ConditionType, Reason
from controller_operator.resources.reassignment import ReassignmentPhase, ReassignmentStep

_WORDS: Final = {
    word.lower(): kind
    for kind, described in KIND_CLASSES.items()
    for word in (kind, described.definition.plural, described.definition.short_name)
}
"""Each kind by each name that kubectl accepts for it."""
ENDED: Final = frozenset(step for step in ReassignmentStep if step.is_final)
"""The final steps of partitions in a move."""


class NoSuchKind(Exception):
    """A text names no object of kontroller.dev. The message says how to name one."""


class NoDefinitions(Exception):
    """The API server does not know the kinds of kontroller.dev."""


@dataclass(frozen=True, slots=True)
class Seen:
    """An object as the API server returned it."""

    raw: Raw

    @property
    def key(self) -> Key:
        return key_of(self.raw)

    @property
    def short(self) -> str:
        """KIND/NAME, as a user types it."""
        return f"{KIND_CLASSES[self.key.kind].definition.short_name}/{self.key.name}"

    @property
    def status(self) -> Mapping[str, Any]:
        return self.raw.get("status") or {}

    @property
    def counts(self) -> Mapping[str, int]:
        return self.status.get("counts") or {}

    @property
    def is_paused(self) -> bool:
        return pauses(self.raw["metadata"].get("annotations") or {})

    @property
    def awaits_approval(self) -> bool:
        is_moving = self.status.get("phase") == ReassignmentPhase.AWAITING_APPROVAL
        return is_moving or self.condition(ConditionType.READY).get("reason") == Reason.AWAITING_APPROVAL

    @property
    def is_current(self) -> bool:
        """True if the status is about the current spec."""
        return bool(self.status.get("observedGeneration") == self.raw["metadata"].get("generation"))

    def condition(self, type_: ConditionType) -> Mapping[str, Any]:
        """Return the condition of a type, or an empty one if the status has none."""
        return next((each for each in self.status.get("conditions", ()) if each.get("type") == type_), {})

    def holds(self, type_: ConditionType) -> bool:
        return bool(self.condition(type_).get("status") == "True")


@dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    """An object as a user named it."""

    kind: str
    name: str

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse KIND/NAME. The kind may be short (`kt/orders`) or plural. Raises `NoSuchKind`."""
        word, separator, name = text.partition("/")
        kind = _WORDS.get(word.removesuffix(".kontroller.dev").lower())
        if not separator or not name or kind is None:
            raise NoSuchKind(
                f"{text} names no object: write KIND/NAME, with one of {', '.join(_list_short_names())} as KIND"
            )
        return cls(kind=kind, name=name)


async def list_seen(api: ObjectApi, kind: str, namespace: str | None) -> list[Seen]:
    """Return all objects of a kind, by namespace and name. Raises `ApiError` and `NoDefinitions`."""
    try:
        items = (await api.list_all(kind, namespace)).items
    except ObjectGone as error:
        raise NoDefinitions(f"the API server does not know {kind}s: install the chart's definitions") from error
    return sorted(map(Seen, items), key=lambda each: each.key)


def _list_short_names() -> list[str]:
    return [kind.definition.short_name for kind in KIND_CLASSES.values()]
