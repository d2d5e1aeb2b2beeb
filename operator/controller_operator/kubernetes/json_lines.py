"""A stream of JSON values, one a line, as a watch is answered: lines of any length, whatever pieces they come in."""

from collections.abc import AsyncIterator

from aiohttp import StreamReader


async def json_lines(content: StreamReader) -> AsyncIterator[bytes]:
    """Every whole line. What the stream ends in the middle of is no line: its connection was cut."""
    pieces: list[bytes] = []
    async for chunk in content.iter_any():
        first, *others = chunk.split(b"\n")
        pieces.append(first)
        for other in others:
            if line := b"".join(pieces).strip():
                yield line
            pieces = [other]
