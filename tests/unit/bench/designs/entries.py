"""Entries of a transaction log, as ZooKeeper writes them."""

import struct
from pathlib import Path

CREATE, DELETE, SET_DATA, CHECK, MULTI, OPEN, CLOSE, REFUSED = 1, 2, 5, 13, 14, -10, -11, -1
SESSION = 0x1000F05A0000000
DIGEST = struct.pack(">iq", 2, 7)


def buffer(content: bytes) -> bytes:
    return struct.pack(">i", len(content)) + content


def encode_create(path: str, data: bytes = b"") -> bytes:
    anyone = struct.pack(">ii", 1, 31) + buffer(b"world") + buffer(b"anyone")
    return buffer(path.encode()) + buffer(data) + anyone + struct.pack(">bi", 0, 1)


def encode_change(path: str, data: bytes) -> bytes:
    return buffer(path.encode()) + buffer(data) + struct.pack(">i", 1)


def several(*parts: tuple[int, bytes]) -> bytes:
    return struct.pack(">i", len(parts)) + b"".join(struct.pack(">i", kind) + buffer(part) for kind, part in parts)


def encode_close(*paths: str) -> bytes:
    return struct.pack(">i", len(paths)) + b"".join(buffer(path.encode()) for path in paths)


def entry(kind: int, content: bytes, *, time_ms: int = 1_000) -> bytes:
    """Return the bytes that are decoded: a header and the transaction, with the digest that ZooKeeper appends."""
    return struct.pack(">qiqqi", SESSION, 4, 9, time_ms, kind) + content + DIGEST


def add_frame(content: bytes) -> bytes:
    return struct.pack(">qi", 0, len(content)) + content + b"B"


def write_log(folder: Path, *entries: bytes, name: str = "log.1", ahead: int = 100) -> Path:
    """Write a server's data folder with one log, and zeros after its entries."""
    file = folder / "version-2" / name
    file.parent.mkdir(exist_ok=True)
    file.write_bytes(b"ZKLG" + bytes(12) + b"".join(map(add_frame, entries)) + bytes(ahead))
    return folder
