"""Lines of Kafka's text logs, with Spark's regular expressions: none may take long for a long line.

An input chooses words of real logs and the repetitions of each: a byte for the word, two for the number. Spark's
expressions are Java's. Both engines search in the same way here, so an input that is slow in Python is slow in Java.
"""

import re
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Final

from kontroller.history.sources import log_lines
from tests.fuzz.target import Target

_LOGS: Final = Path(__file__).parents[2] / "spark" / "data" / "text_logs"
_MOST_CHARACTERS: Final = 1 << 17
_WORD: Final = re.compile(r"[A-Za-z]+|[0-9]+|.")
_LINES: Final = tuple((re.compile(f"^({line.begin})"), re.compile(line.pattern)) for line in log_lines.LINES)
_CAUSES: Final = tuple(re.compile(pattern) for pattern in log_lines.CAUSES)
_SPEAKER: Final = re.compile(log_lines.SPEAKER)
_TIME: Final = re.compile(log_lines.TIME)


def _sample() -> list[str]:
    """Return a line of each kind in real logs."""
    files = (path for path in sorted(_LOGS.rglob("*.log*")) if path.suffix != ".gz")
    lines = [line for path in files for line in path.read_text().splitlines()]
    kinds = [_SPEAKER, *(pattern for _, pattern in _LINES)]
    told = [(line, speaker[3] if (speaker := _SPEAKER.search(line)) else line) for line in lines]
    found = [next((line for line, message in told if kind.search(message)), None) for kind in kinds]
    return [line for line in found if line is not None]


SAMPLE: Final = _sample()
WORDS: Final = tuple(dict.fromkeys(word for line in SAMPLE for word in _WORD.findall(line)))[:256]
_NUMBERS: Final = dict(zip(WORDS, count(), strict=False))


def examples() -> Iterator[bytes]:
    for line in SAMPLE:
        yield b"".join(bytes([_NUMBERS[word], 0, 1]) for word in _WORD.findall(line) if word in _NUMBERS)


def read(data: bytes) -> None:
    line = _line(data)
    _TIME.search(line)
    speaker = _SPEAKER.search(line)
    message = speaker[3] if speaker else line
    for begin, pattern in _LINES:
        begin.search(message)
        pattern.search(message)
    for cause in _CAUSES:
        cause.search(message)


def _line(data: bytes) -> str:
    pieces, room = [], _MOST_CHARACTERS
    for start in range(0, len(data) - 2, 3):
        word = WORDS[data[start] % len(WORDS)]
        times = min(int.from_bytes(data[start + 1 : start + 3]), room // len(word))
        pieces.append(word * times)
        room -= times * len(word)
    return "".join(pieces)


TARGET: Final = Target(name="text_logs", examples=examples, read=read, most_bytes=1024)
