"""SCRAM credentials of users, which Kafka keeps in ZooKeeper below `/config/users`. They are read at each login.

So a changed password counts from the next login on, also for a standby. However many users log in at once, only a few
reads go to ZooKeeper at the same time, each with a timeout.
"""

import asyncio
from typing import Final

import structlog

from controller_core.model.scram import (
    MAX_USER_NAME_LENGTH,
    CredentialsOutOfReach,
    StoredCredential,
    read_credential,
)
from controller_core.zk import codecs, paths
from controller_core.zk.codecs import MalformedZnode
from controller_core.zk.session import ZkError, ZkSession

AT_ONCE: Final = 16
TIMEOUT_S: Final = 5.0

log = structlog.get_logger()


class ZkScramCredentials:
    """The SCRAM credentials of a cluster."""

    def __init__(self, zk: ZkSession) -> None:
        self._zk = zk
        self._room = asyncio.Semaphore(AT_ONCE)

    async def find_credential(self, mechanism: str, user: str) -> StoredCredential | None:
        """Return a user's credential, or None if there is none for the mechanism or it is unreadable. Raises
        `CredentialsOutOfReach`."""
        name = paths.sanitize(user)
        if name in ("", ".", "..") or len(name) > MAX_USER_NAME_LENGTH:
            return None
        try:
            async with asyncio.timeout(TIMEOUT_S), self._room:
                (node,) = await self._zk.read_many([paths.user_config(name)])
        except (ZkError, TimeoutError) as error:
            raise CredentialsOutOfReach(
                f"users' credentials cannot be read: {str(error) or 'ZooKeeper did not answer in time'}"
            ) from error
        return _credential(mechanism, node.data) if node is not None else None


def _credential(mechanism: str, data: bytes) -> StoredCredential | None:
    try:
        text = codecs.decode_config(data, paths.USER_CONFIGS).get(mechanism)
        return None if text is None else read_credential(text)
    except (MalformedZnode, ValueError) as error:
        log.warning(
            "a user's credential is unreadable and cannot be used to log in", mechanism=mechanism, error=str(error)
        )
        return None
