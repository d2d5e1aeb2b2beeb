"""Whether a controller process could do its work, for probes and for people: `/readyz`."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Readiness:
    """What a process says of itself."""

    is_ready: bool
    """Whether it has the role, or would do well with it. One that stands by is ready, hot or cold."""
    role: str
    """`controller` or `standby`."""
    reason: str | None = None
    """Why it is not ready."""
    details: Mapping[str, object] = field(default_factory=dict)
    """More that people want to know; values that JSON has."""

    def as_json(self) -> dict[str, object]:
        """All of it, as `/readyz` shows it."""
        return {"ready": self.is_ready, "role": self.role, "reason": self.reason, **self.details}
