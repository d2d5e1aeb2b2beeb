"""How the plugin's commands end, so that scripts know whose turn it is."""

from enum import IntEnum


class ExitCode(IntEnum):
    """The exit code of every command of the plugin."""

    GOOD = 0
    """Healthy, nothing to do, or done as asked."""
    ERROR = 1
    """The command is wrong, or the API server did not do what it was asked for."""
    CHANGES = 2
    """A KafkaCluster is degraded or not Ready. With --fail-on-changes: something is unhealthy, moves, differs, or would be
    changed."""
    WAITS = 3
    """Something waits for a person. Goes before the one above."""


def exit_code(*, waits: bool, changes: bool, fails_on_changes: bool, is_degraded: bool = False) -> ExitCode:
    """What was found, as an exit code. A degraded cluster needs no option to be told."""
    if waits:
        return ExitCode.WAITS
    return ExitCode.CHANGES if is_degraded or (changes and fails_on_changes) else ExitCode.GOOD
