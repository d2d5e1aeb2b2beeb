"""The readiness of a controller process, for probes and for people: `/readyz`."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Readiness:
    """The state of a process, as it reports it."""

    is_ready: bool
    """True if it has the role, or would do well with it. A standby is ready, hot or cold."""
    role: str
    """`controller` or `standby`."""
    reason: str | None = None
    """The reason if it is not ready."""
    details: Mapping[str, object] = field(default_factory=dict)
    """Further information for people, in JSON values."""

    def make_json(self) -> dict[str, object]:
        """Return the body of `/readyz`."""
        return {"ready": self.is_ready, "role": self.role, "reason": self.reason, **self.details}
