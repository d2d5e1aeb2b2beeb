"""The seed of slow motion, for those who need nothing else of it: importing the rest takes a second."""

import os
from typing import Final

SLOW_MOTION: Final = "KONTROLLER_SLOW_MOTION"


def slow_motion_seed() -> str | None:
    """Return the seed of the environment; None without slow motion."""
    return os.environ.get(SLOW_MOTION) or None
