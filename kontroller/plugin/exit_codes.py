"""Exit codes of the plugin's commands, so that scripts know who has to act."""

from enum import IntEnum


class ExitCode(IntEnum):
    """The exit code of every command of the plugin."""

    GOOD = 0
    """Healthy, nothing to do, or done as asked."""
    ERROR = 1
    """The command is wrong, or the API server refused it."""
    CHANGES = 2
    """A KafkaCluster is degraded or not Ready. With --fail-on-changes: something is unhealthy, moves, differs, or would be
    changed."""
    WAITS = 3
    """Something waits for a person. Has precedence over CHANGES."""


def exit_code(*, waits: bool, changes: bool, fails_on_changes: bool, is_degraded: bool = False) -> ExitCode:
    """Return the exit code for what was found. A degraded cluster needs no option."""
    if waits:
        return ExitCode.WAITS
    return ExitCode.CHANGES if is_degraded or (changes and fails_on_changes) else ExitCode.GOOD
