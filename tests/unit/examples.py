"""The number of examples of slow property tests."""

from typing import Any

from hypothesis import settings


def examples(count: int, **more: Any) -> settings:
    """Return settings with so many examples; `make nightly` runs ten times as many."""
    is_night = settings.get_current_profile_name() == "nightly"
    return settings(max_examples=count * 10 if is_night else count, **more)
