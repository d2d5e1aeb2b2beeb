"""The rights of a caller, for the code that answers it."""

from dataclasses import dataclass
from typing import Final, Protocol

from controller_core.model.authorization.acls import Operation, Resource, ResourceType


class Rights(Protocol):
    """The rights of one caller at this moment."""

    def may(self, operation: Operation, resource: Resource, *, is_wanted: bool = True) -> bool:
        """Return True if the caller may do the operation.

        `is_wanted` is True if the caller requested the operation, so that a refusal is logged. It is False for mere
        filters.
        """
        ...

    def may_on_any(self, operation: Operation, kind: ResourceType) -> bool:
        """Return True if the caller may do the operation on any resource of the type. A refusal is not logged."""
        ...


@dataclass(frozen=True, slots=True)
class _Same:
    """The same answer to every question."""

    is_allowed: bool

    def may(self, operation: Operation, resource: Resource, *, is_wanted: bool = True) -> bool:
        """See `Rights`."""
        return self.is_allowed

    def may_on_any(self, operation: Operation, kind: ResourceType) -> bool:
        """See `Rights`."""
        return self.is_allowed


EVERYTHING: Final[Rights] = _Same(is_allowed=True)
"""The rights of every caller if no ACLs are used."""

NOTHING: Final[Rights] = _Same(is_allowed=False)
"""The rights of a caller that is not what it says. The log says why."""
