"""How good something is, in four words: each has a sign, so that nobody needs colours to see it."""

from typing import Final, Literal

Tone = Literal["good", "warn", "bad", "unknown"]
SIGNS: Final[dict[Tone, str]] = {"good": "\u2713", "warn": "!", "bad": "\u2715", "unknown": "?"}
MOSTLY_KNOWN: Final = 0.9
"""Of a period: from there on, what went well may be called good."""


def tone_of(ratio: float | None, *, warned_from: float = 0.999) -> Tone:
    """Of an availability, where nothing was promised."""
    return "unknown" if ratio is None else "good" if ratio >= 0.9999 else "warn" if ratio >= warned_from else "bad"


def tone_of_budget(spent: float) -> Tone:
    """Of the share of an error budget that is spent."""
    return "good" if spent <= 0.5 else "warn" if spent <= 1 else "bad"
