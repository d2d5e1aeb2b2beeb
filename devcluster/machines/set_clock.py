"""A wall clock that is set while a process runs: wrong by days, for that process and nobody else.

It is libfaketime, between the process and the kernel's clock. Time that only measures goes on as it does.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from devcluster.building.toolchain import BuildError, MissingToolError, require

_LIBRARY: Final = "faketime/libfaketimeMT.so.1"
_FOLDERS: Final = "/usr/lib"


def why_impossible() -> str | None:
    """Why no clock can be set here; None where it can. Installs what is missing, on Debian as root."""
    try:
        require("faketime")
    except (MissingToolError, BuildError) as error:
        return f"a clock that is set needs libfaketime: {error}"
    return None if _library() else f"a clock that is set needs libfaketime: there is no {_LIBRARY} below {_FOLDERS}"


class SetClock:
    """Right at first. `file` is its own."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self.set_right()

    @property
    def env(self) -> Mapping[str, str]:
        """The environment of the process that has it."""
        return {
            "LD_PRELOAD": str(_library()),
            "FAKETIME_TIMESTAMP_FILE": str(self._file),
            "FAKETIME_NO_CACHE": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
            "NO_FAKE_STAT": "1",
        }

    def jump(self, days: int) -> None:
        """From now on it is wrong by so many days; below zero it is behind."""
        new = self._file.with_suffix(".new")
        new.write_text(f"{days:+d}d")
        new.replace(self._file)

    def set_right(self) -> None:
        self.jump(0)


def _library() -> Path | None:
    return next(Path(_FOLDERS).glob(f"*/{_LIBRARY}"), None)
