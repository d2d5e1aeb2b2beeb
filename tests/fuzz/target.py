"""A fuzz target: a reader of bytes, with initial examples."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

CORPUS: Final = Path(__file__).parent / "corpus"


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """One kind of input."""

    name: str
    examples: Callable[[], Iterable[bytes]]
    """Valid inputs."""
    read: Callable[[bytes], None]
    """Reads any bytes. An exception is a finding: the reader catches the errors that describe malformed bytes."""
    most_bytes: int = 4096
    """The maximum size of inputs."""

    @property
    def corpus(self) -> Path:
        """The folder of the kept inputs, one file each."""
        return CORPUS / self.name

    def list_inputs(self) -> list[bytes]:
        """Return the kept inputs, and the examples."""
        return [*(path.read_bytes() for path in sorted(self.corpus.glob("*"))), *self.examples()]
