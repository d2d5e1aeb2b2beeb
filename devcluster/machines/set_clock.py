"""A wall clock that tests set while a process runs: wrong by days, for that process only.

libfaketime stands between the process and the kernel's clock. Monotonic time is not changed.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from devcluster.building.toolchain import BuildError, MissingToolError, require

_LIBRARY: Final = "faketime/libfaketimeMT.so.1"
_FOLDERS: Final = "/usr/lib"


def why_impossible() -> str | None:
    """Return the reason why no clock can be set here, or None. Installs missing programs, on Debian as root."""
    try:
        require("faketime")
    except (MissingToolError, BuildError) as error:
        return f"a clock that is set needs libfaketime: {error}"
    return None if _library() else f"a clock that is set needs libfaketime: there is no {_LIBRARY} below {_FOLDERS}"


class SetClock:
    """A clock that is right at first. `file` must be its own."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self.set_right()

    @property
    def env(self) -> Mapping[str, str]:
        """The environment of a process that uses the clock."""
        return {
            "LD_PRELOAD": str(_library()),
            "FAKETIME_TIMESTAMP_FILE": str(self._file),
            "FAKETIME_NO_CACHE": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
            "NO_FAKE_STAT": "1",
        }

    def jump(self, days: int) -> None:
        """Make the clock wrong by this number of days; below zero it is behind."""
        new = self._file.with_suffix(".new")
        new.write_text(f"{days:+d}d")
        new.replace(self._file)

    def set_right(self) -> None:
        self.jump(0)


def _library() -> Path | None:
    return next(Path(_FOLDERS).glob(f"*/{_LIBRARY}"), None)
