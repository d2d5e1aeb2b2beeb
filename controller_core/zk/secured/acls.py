"""Who may do what with a znode that is made here: everybody, or as Kafka has it where `zookeeper.set.acl` is set.

Then whoever makes a znode may do everything with it, and everybody may read it, but for what has secrets in it: users'
credentials, brokers' configurations with their passwords, delegation tokens. `/consumers` is for consumers of old, which
log in as nobody in particular, and stays open. (Kafka's `ZkData.defaultAcls`.)
"""

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

_INT: Final = struct.Struct("!i")
_ALL: Final = 31
_READ: Final = 1


def _encoded(entries: Sequence[tuple[int, str, str]]) -> bytes:
    """Permissions, scheme and id of each entry, as a request to create a znode has them."""
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
"""ZooKeeper puts in whoever is logged in, by all ways in which he is."""

OPEN: Final = _encoded([(_ALL, "world", "anyone")])
CREATORS_ALONE: Final = _encoded([_CREATOR])
READABLE: Final = _encoded([_CREATOR, (_READ, "world", "anyone")])

_SENSITIVE: Final = ("/config/users", "/config/brokers", "/delegation_token/tokens")
_OF_EVERYBODY: Final = "/consumers"


@dataclass(frozen=True, slots=True)
class ZnodeAcls:
    """The ACLs of znodes by their paths, as bytes of a request."""

    are_set: bool = False
    """As `zookeeper.set.acl`. Whoever makes znodes must be logged in then."""

    def of(self, path: str) -> bytes:
        """The ACL of a znode to be made; its path is without the chroot."""
        if not self.are_set or path == _OF_EVERYBODY:
            return OPEN
        return CREATORS_ALONE if path.startswith(_SENSITIVE) else READABLE


OPEN_ACLS: Final = ZnodeAcls()
