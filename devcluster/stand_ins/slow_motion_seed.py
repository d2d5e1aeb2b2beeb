"""The seed of slow motion, in a module of its own because importing the rest takes a second."""

import os
from typing import Final

SLOW_MOTION: Final = "KONTROLLER_SLOW_MOTION"


def slow_motion_seed() -> str | None:
    """Return the seed of the environment, or None without slow motion."""
    return os.environ.get(SLOW_MOTION) or None
