"""What whoever asks may do, for those who answer him."""

from typing import Final, Protocol

from controller_core.model.authorization.acls import Operation, Resource


class Rights(Protocol):
    """Those of one who asks, at this moment."""

    def may(self, operation: Operation, resource: Resource, *, is_wanted: bool = True) -> bool:
        """Whether he may do that. `is_wanted`: whether he asked for it, so that the log says it where it is refused; he did
        not where it is only looked up, as for a filter."""
        ...


class _Everything:
    def may(self, operation: Operation, resource: Resource, *, is_wanted: bool = True) -> bool:
        """See `Rights`."""
        return True


EVERYTHING: Final[Rights] = _Everything()
"""Where no ACLs are asked."""
