"""Creates SCRAM users in ZooKeeper before the first broker starts: brokers that log in to each other are such users.

Passwords are files, as Kubernetes mounts a Secret, so that they are in no command line. ZooKeeper gets only the SCRAM
credentials (RFC 5802), in the format of kafka-configs. Idempotent: existing credentials are kept, so this can run at
every start. No user is deleted."""

import hashlib
import secrets
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from controller_core.controller.znodes.config_writes import notify, write_config
from controller_core.model.scram import (
    MAX_USER_NAME_LENGTH,
    SCRAM_MECHANISMS,
    SaltedPassword,
    ScramMechanism,
    make_credential,
    read_credential,
)
from controller_core.zk import codecs, paths
from controller_core.zk.compare_and_set import compare_and_set, ensure_znodes, make_reader
from controller_core.zk.session import Create, WriteOp, ZkNode, ZkSession

MECHANISMS: Final = {mechanism.name: mechanism for mechanism in SCRAM_MECHANISMS.values()}
ITERATIONS: Final = 8192
MAX_PASSWORD_BYTES: Final = 4096
_SALT_BYTES: Final = 24


class UnusableUsers(Exception):
    """The folder has no users, or a file that is not a password. The message names the file, but nothing of its
    content."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstUser:
    """A user and the password."""

    name: str
    password: str = field(repr=False)


def read_users(folder: Path) -> tuple[FirstUser, ...]:
    """Read a user from each file: its name, and its text without the final line end.

    Names that begin with a dot are Kubernetes' own. Raises `UnusableUsers`."""
    try:
        files = sorted(each for each in folder.iterdir() if not each.name.startswith("."))
        users = tuple(FirstUser(name=each.name, password=_read_password(each)) for each in files)
    except OSError as error:
        raise UnusableUsers(f"{folder} cannot be read: {error.strerror}") from error
    if not users:
        raise UnusableUsers(f"{folder} has no file: give each user a file with the password, named like the user")
    return users


async def make_users(zk: ZkSession, users: Iterable[FirstUser], mechanisms: Sequence[str]) -> list[str]:
    """Create the users that do not exist with these passwords, and return their names.

    Raises `ZkError`, `MalformedZnode` and `Contended`; users that were created before the error stay."""
    parents = (paths.CONFIG, paths.USER_CONFIGS, paths.CONFIG_CHANGES)
    await ensure_znodes(zk, [Create(path=path) for path in parents], zk.transact)
    return [user.name for user in users if await _make_user(zk, user, mechanisms)]


async def _make_user(zk: ZkSession, user: FirstUser, mechanisms: Sequence[str]) -> bool:
    name = paths.sanitize(user.name)
    path = paths.user_config(name)

    def writes(node: ZkNode | None) -> list[WriteOp]:
        present = codecs.decode_config(node.data, path) if node else {}
        made = dict(_list_missing_credentials(user.password, present, mechanisms))
        return [write_config(path, {**present, **made}, node), notify(f"users/{name}")] if made else []

    return (await compare_and_set(make_reader(zk, path), writes, zk.transact)).is_written


def _list_missing_credentials(
    password: str, present: dict[str, str], mechanisms: Sequence[str]
) -> Iterator[tuple[str, str]]:
    """Yield the credentials that are missing, or belong to another password."""
    for name in mechanisms:
        if not _is_of(password, MECHANISMS[name], present.get(name)):
            yield name, _derive_credential(password, MECHANISMS[name], secrets.token_bytes(_SALT_BYTES), ITERATIONS)


def _is_of(password: str, mechanism: ScramMechanism, present: str | None) -> bool:
    # The salt and iterations of the present credential are reused, because SCRAM keys can only be compared with the
    # same ones.
    try:
        known = read_credential(present or "")
    except ValueError:
        return False
    return secrets.compare_digest(_derive_credential(password, mechanism, known.salt, known.iterations), present or "")


def _derive_credential(password: str, mechanism: ScramMechanism, salt: bytes, iterations: int) -> str:
    salted = hashlib.pbkdf2_hmac(mechanism.digest, password.encode(), salt, iterations)
    return make_credential(mechanism, SaltedPassword(salt=salt, salted=salted, iterations=iterations))


def _read_password(file: Path) -> str:
    if len(paths.sanitize(file.name)) > MAX_USER_NAME_LENGTH:
        raise UnusableUsers(f"{file} is too long a name for a user")
    if not file.is_file():
        raise UnusableUsers(f"{file} is not a file: give each user a file with the password")
    with file.open("rb") as opened:
        data = opened.read(MAX_PASSWORD_BYTES + 1)
    try:
        text = data.decode().removesuffix("\n").removesuffix("\r")
    except UnicodeDecodeError:
        text = ""
    if not text or len(data) > MAX_PASSWORD_BYTES:
        raise UnusableUsers(f"{file} is not a password: it has to be text of at most {MAX_PASSWORD_BYTES} bytes")
    return text
