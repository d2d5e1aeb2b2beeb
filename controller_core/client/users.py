"""SCRAM users: sets, deletes and lists their passwords (KIP-554).

A password is never sent. Only the keys that SCRAM derives from it (RFC 5802) are."""

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

from controller_core.client.cluster import Call
from controller_core.client.errors import InvalidArgument, require
from controller_core.model.scram import MAX_ITERATIONS, SCRAM_MECHANISMS

_CODES: Final = {mechanism.name: i8(code) for code, mechanism in SCRAM_MECHANISMS.items()}
_SALT_BYTES: Final = 24


async def set_user(call: Call, user: str, password: str, *, mechanism: str, iterations: int) -> None:
    """Set a user's password. Raises `InvalidArgument` and `Refused`."""
    code = _find_code(mechanism)
    if not user or not password:
        raise InvalidArgument("a user needs a name and a password: give both")
    known = SCRAM_MECHANISMS[code]
    if not known.min_iterations <= iterations <= MAX_ITERATIONS:
        raise InvalidArgument(f"{iterations} iterations: choose {known.min_iterations} to {MAX_ITERATIONS}")
    salt = secrets.token_bytes(_SALT_BYTES)
    salted = hashlib.pbkdf2_hmac(known.digest, password.encode(), salt, iterations)
    upsertion = ScramCredentialUpsertion(
        name=user, mechanism=code, iterations=i32(iterations), salt=salt, salted_password=salted
    )
    await _alter(call, AlterUserScramCredentialsRequest(deletions=(), upsertions=(upsertion,)))


async def delete_user(call: Call, user: str, mechanism: str) -> None:
    """Delete a user's password. Raises `InvalidArgument`, and `Refused` if there is none."""
    deletion = ScramCredentialDeletion(name=user, mechanism=_find_code(mechanism))
    await _alter(call, AlterUserScramCredentialsRequest(deletions=(deletion,), upsertions=()))


async def list_users(call: Call) -> dict[str, dict[str, int]]:
    """Return the users with passwords: for each user the mechanisms with their iterations."""
    request = DescribeUserScramCredentialsRequest(users=None)
    response = await call.ask_controller_or_broker(request, DescribeUserScramCredentialsResponse, changes_nothing=True)
    require("the users", response.error_code, response.error_message)
    return {
        each.user: {SCRAM_MECHANISMS[info.mechanism].name: int(info.iterations) for info in each.credential_infos}
        for each in response.results
        if each.error_code is ErrorCode.none
    }


async def _alter(call: Call, request: AlterUserScramCredentialsRequest) -> None:
    response = await call.ask_controller(request, AlterUserScramCredentialsResponse)
    for each in response.results:
        require(f"user {each.user}", each.error_code, each.error_message)


def _find_code(mechanism: str) -> i8:
    try:
        return _CODES[mechanism]
    except KeyError:
        raise InvalidArgument(f"{mechanism} is not a SCRAM mechanism: choose {', '.join(_CODES)}") from None
