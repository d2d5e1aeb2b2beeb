"""Users that log in by SCRAM: their passwords set, deleted and listed (KIP-554).

A password is never sent: what is, are the keys that SCRAM makes of it (RFC 5802).
"""

import hashlib
import secrets
from typing import Final

from kio.schema.alter_user_scram_credentials.v0 import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
)
from kio.schema.alter_user_scram_credentials.v0.request import ScramCredentialDeletion, ScramCredentialUpsertion
from kio.schema.describe_user_scram_credentials.v0 import (
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
)
from kio.schema.errors import ErrorCode
from kio.static.primitive import i8, i32

from controller_admin.client.cluster import Call
from controller_admin.client.errors import InvalidArgument, Refused

_MECHANISMS: Final = {"SCRAM-SHA-256": i8(1), "SCRAM-SHA-512": i8(2)}
_HASHES: Final = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
_SALT_BYTES: Final = 24
_FEWEST_ITERATIONS: Final = 4096
_MOST_ITERATIONS: Final = 16384
"""What Kafka takes."""


async def set_user(call: Call, user: str, password: str, *, mechanism: str, iterations: int) -> None:
    """Raises `InvalidArgument` and `Refused`."""
    code = _code(mechanism)
    if not user or not password:
        raise InvalidArgument("a user needs a name and a password: give both")
    if not _FEWEST_ITERATIONS <= iterations <= _MOST_ITERATIONS:
        raise InvalidArgument(f"{iterations} iterations: choose {_FEWEST_ITERATIONS} to {_MOST_ITERATIONS}")
    salt = secrets.token_bytes(_SALT_BYTES)
    salted = hashlib.pbkdf2_hmac(_HASHES[mechanism], password.encode(), salt, iterations)
    upsertion = ScramCredentialUpsertion(
        name=user, mechanism=code, iterations=i32(iterations), salt=salt, salted_password=salted
    )
    await _alter(call, AlterUserScramCredentialsRequest(deletions=(), upsertions=(upsertion,)))


async def delete_user(call: Call, user: str, mechanism: str) -> None:
    """Raises `InvalidArgument`, and `Refused` where there is none."""
    deletion = ScramCredentialDeletion(name=user, mechanism=_code(mechanism))
    await _alter(call, AlterUserScramCredentialsRequest(deletions=(deletion,), upsertions=()))


async def users(call: Call) -> dict[str, dict[str, int]]:
    """The users that have passwords: for each the mechanisms, and how many iterations each has."""
    request = DescribeUserScramCredentialsRequest(users=None)
    response = await call.ask_controller(request, DescribeUserScramCredentialsResponse, changes_nothing=True)
    _require("the users", response.error_code, response.error_message)
    names = {code: name for name, code in _MECHANISMS.items()}
    return {
        each.user: {names[info.mechanism]: int(info.iterations) for info in each.credential_infos}
        for each in response.results
        if each.error_code is ErrorCode.none
    }


async def _alter(call: Call, request: AlterUserScramCredentialsRequest) -> None:
    response = await call.ask_controller(request, AlterUserScramCredentialsResponse)
    for each in response.results:
        _require(f"user {each.user}", each.error_code, each.error_message)


def _code(mechanism: str) -> i8:
    try:
        return _MECHANISMS[mechanism]
    except KeyError:
        raise InvalidArgument(f"{mechanism} is no mechanism of SCRAM: choose {', '.join(_MECHANISMS)}") from None


def _require(what: str, code: ErrorCode, message: str | None) -> None:
    if code is not ErrorCode.none:
        raise Refused(what, code, message)
