"""The memory of a process's Kafka connections, and whether the process may have as much.

A container that takes more memory than its limit is killed. So the memory that connections may take is lowered to what
the limit leaves, and the ledger refuses connections beyond it. The chart's limit leaves enough (`controller.limits`).
"""

from dataclasses import replace
from pathlib import Path
from typing import Final

import structlog

from controller_core.wire.limits.ledger import HANDSHAKE_BYTES, TLS_BYTES
from controller_core.wire.limits.listener_limits import ListenerLimits

log = structlog.get_logger()

OWN_BYTES: Final = 128 << 20
"""Memory of the process itself."""
_FILES: Final = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))
_NO_LIMIT: Final = 1 << 60


def connections_bytes(max_connections: int, max_unauthenticated: int) -> int:
    """Return the memory that this many connections may take, if all have TLS."""
    return max_connections * TLS_BYTES + max_unauthenticated * HANDSHAKE_BYTES


def memory_limit(files: tuple[Path, ...] = _FILES) -> int | None:
    """Return the limit of the container's memory in bytes, or None if there is none."""
    for file in files:
        try:
            text = file.read_text().strip()
        except OSError:
            continue
        return int(text) if text.isdigit() and int(text) < _NO_LIMIT else None
    return None


def fit_to_memory(limits: ListenerLimits, memory: int | None) -> ListenerLimits:
    """Lower the memory of connections to what the container's limit leaves. `memory` is the limit; None: no limit."""
    if memory is None:
        return limits
    others = OWN_BYTES + limits.brokers_bytes + limits.administrators_bytes + limits.strangers_bytes
    left = max(memory - others, memory // 8)
    if left >= limits.connections_bytes:
        return limits
    log.warning(
        "the container's memory does not hold --max-connections and --queued-max-request-bytes: raise its limit, or "
        "lower the settings",
        memory_mib=memory >> 20,
        needed_mib=(others + limits.connections_bytes) >> 20,
        left_for_connections_mib=left >> 20,
    )
    return replace(limits, connections_bytes=left)
