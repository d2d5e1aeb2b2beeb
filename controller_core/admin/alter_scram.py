"""AlterUserScramCredentials: users' SCRAM credentials in ZooKeeper, from where brokers read them (KIP-554).

What is wrong with one alteration of a user refuses all of that user's, and nobody else's.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from kio.schema.alter_user_scram_credentials.v0.request import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from kio.schema.alter_user_scram_credentials.v0.response import (
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
)
from kio.schema.errors import ErrorCode

from controller_core.admin.refusals import Refused
from controller_core.controller.config_writes import ensure_paths, notify, sanitized, write_config
from controller_core.controller.isr import NO_THROTTLE
from controller_core.controller.served_api import ServedApi
from controller_core.controller.term import Term
from controller_core.model.scram import MAX_ITERATIONS, SCRAM_MECHANISMS, SaltedPassword, credential
from controller_core.wire.versions import Versions
from controller_core.zk import codecs, paths
from controller_core.zk.codecs import MalformedZnode
from controller_core.zk.session import ZkNode

Alteration = ScramCredentialDeletion | ScramCredentialUpsertion


@dataclass(frozen=True, slots=True, kw_only=True)
class UserConfig:
    """A user's configuration as it was read."""

    node: ZkNode | None
    config: Mapping[str, str]


async def on_alter_scram(term: Term, request: AlterUserScramCredentialsRequest) -> AlterUserScramCredentialsResponse:
    """Writes the credentials of the users whose alterations are all sound; quotas in the same place stay."""
    by_user = _by_user(request)
    refused: dict[str, Refused] = {}
    remaining = list(by_user)
    await ensure_paths(term, [paths.CONFIG, paths.USER_CONFIGS, paths.CONFIG_CHANGES])
    while remaining:
        users = await _read(term, remaining, refused)
        for user, present in users.items():
            if user in refused:
                continue
            try:
                _check(by_user[user], present.config)
            except Refused as error:
                refused[user] = error
        sound = [user for user in remaining if user not in refused]
        outcome = await term.writer.write(
            {
                user: [
                    write_config(
                        paths.user_config(sanitized(user)),
                        _altered(users[user].config, by_user[user]),
                        users[user].node,
                    ),
                    notify(f"users/{sanitized(user)}"),
                ]
                for user in sound
            }
        )
        remaining = list(outcome.failed)
    return _response([(user, refused.get(user)) for user in by_user])


def refusal(request: AlterUserScramCredentialsRequest, error_code: ErrorCode) -> AlterUserScramCredentialsResponse:
    """The answer that refuses every user of the request."""
    return _response([(user, Refused(error_code)) for user in _by_user(request)])


def _by_user(request: AlterUserScramCredentialsRequest) -> dict[str, list[Alteration]]:
    by_user: dict[str, list[Alteration]] = {}
    alterations: list[Alteration] = [*request.upsertions, *request.deletions]
    for alteration in alterations:
        by_user.setdefault(alteration.name, []).append(alteration)
    return by_user


async def _read(term: Term, users: list[str], refused: dict[str, Refused]) -> dict[str, UserConfig]:
    """The users' configurations; users without a name are looked up nowhere and refused by the checks."""
    named = [user for user in users if user]
    nodes = await term.zk.read_many([paths.user_config(sanitized(user)) for user in named])
    configs = {user: UserConfig(node=None, config={}) for user in users}
    for user, node in zip(named, nodes, strict=True):
        try:
            config = codecs.decode_config(node.data, paths.user_config(sanitized(user))) if node else {}
        except MalformedZnode as error:
            refused[user] = Refused(ErrorCode.unknown_server_error, str(error))
        else:
            configs[user] = UserConfig(node=node, config=config)
    return configs


def _check(alterations: list[Alteration], present: Mapping[str, str]) -> None:
    """Raises `Refused` for the first thing that is wrong, in Kafka's order."""
    for alteration in alterations:
        _check_alone(alteration)
    twice = [number for number, count in Counter(each.mechanism for each in alterations).items() if count > 1]
    if twice:
        message = "A user credential cannot be altered twice in the same request"
        raise Refused(ErrorCode.duplicate_resource, message)
    for alteration in alterations:
        is_deletion = isinstance(alteration, ScramCredentialDeletion)
        if is_deletion and SCRAM_MECHANISMS[alteration.mechanism].name not in present:
            message = "Attempt to delete a user credential that does not exist"
            raise Refused(ErrorCode.resource_not_found, message)


def _check_alone(alteration: Alteration) -> None:
    if not alteration.name:
        raise Refused(ErrorCode.unacceptable_credential, "Username must not be empty")
    mechanism = SCRAM_MECHANISMS.get(alteration.mechanism)
    if mechanism is None:
        raise Refused(ErrorCode.unsupported_sasl_mechanism, "Unknown SCRAM mechanism")
    if isinstance(alteration, ScramCredentialUpsertion):
        if alteration.iterations < mechanism.min_iterations:
            raise Refused(ErrorCode.unacceptable_credential, "Too few iterations")
        if alteration.iterations > MAX_ITERATIONS:
            raise Refused(ErrorCode.unacceptable_credential, "Too many iterations")


def _altered(present: Mapping[str, str], alterations: list[Alteration]) -> dict[str, str]:
    config = dict(present)
    for alteration in alterations:
        mechanism = SCRAM_MECHANISMS[alteration.mechanism]
        if isinstance(alteration, ScramCredentialUpsertion):
            password = SaltedPassword(
                salt=alteration.salt, salted=alteration.salted_password, iterations=alteration.iterations
            )
            config[mechanism.name] = credential(mechanism, password)
        else:
            del config[mechanism.name]
    return config


def _response(results: list[tuple[str, Refused | None]]) -> AlterUserScramCredentialsResponse:
    return AlterUserScramCredentialsResponse(
        throttle_time=NO_THROTTLE,
        results=tuple(
            AlterUserScramCredentialsResult(
                user=user,
                error_code=refused.error_code if refused else ErrorCode.none,
                error_message=refused.message if refused else None,
            )
            for user, refused in results
        ),
    )


API: Final = ServedApi(versions=Versions(AlterUserScramCredentialsRequest), answer=on_alter_scram, refuse=refusal)
