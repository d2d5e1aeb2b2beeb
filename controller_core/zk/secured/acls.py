"""The ACLs of new znodes: open to everybody, or like Kafka's with `zookeeper.set.acl` (`ZkData.defaultAcls`).

With `zookeeper.set.acl` the creator of a znode may do everything, and everybody may read it, except for secrets: users'
credentials, brokers' configurations with their passwords, and delegation tokens. `/consumers` stays open, because old
consumers write to it without a login.
"""

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

_INT: Final = struct.Struct("!i")
_ALL: Final = 31
_READ: Final = 1


def _encode_acl(entries: Sequence[tuple[int, str, str]]) -> bytes:
    """Encode permissions, scheme and id of each entry, as in a request to create a znode."""
    pieces = [_INT.pack(len(entries))]
    for permissions, scheme, name in entries:
        pieces += (
            _INT.pack(permissions),
            _INT.pack(len(scheme)),
            scheme.encode(),
            _INT.pack(len(name)),
            name.encode(),
        )
    return b"".join(pieces)


_CREATOR: Final = (_ALL, "auth", "")
"""ZooKeeper replaces it by all identities of the connection."""

OPEN: Final = _encode_acl([(_ALL, "world", "anyone")])
CREATORS_ALONE: Final = _encode_acl([_CREATOR])
READABLE: Final = _encode_acl([_CREATOR, (_READ, "world", "anyone")])

_SENSITIVE: Final = ("/config/users", "/config/brokers", "/delegation_token/tokens")
_OF_EVERYBODY: Final = "/consumers"


@dataclass(frozen=True, slots=True)
class ZnodeAcls:
    """The ACLs of znodes by their paths, as bytes of a request."""

    are_set: bool = False
    """Like `zookeeper.set.acl`. If True, the process must be logged in to create znodes."""

    def find_acl(self, path: str) -> bytes:
        """Return the ACL of a new znode. Its path is without the chroot."""
        if not self.are_set or path == _OF_EVERYBODY:
            return OPEN
        return CREATORS_ALONE if path.startswith(_SENSITIVE) else READABLE


OPEN_ACLS: Final = ZnodeAcls()
