"""AlterUserScramCredentials: SCRAM credentials of users in ZooKeeper, where brokers read them (KIP-554).

One invalid alteration refuses all alterations of the same user, and of no other user.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
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

from controller_core.admin.refusals import ItemRefused, make_unwritten_refusal
from controller_core.controller.loop.slices import slice_up
from controller_core.controller.serving.served_api import ServedApi
from controller_core.controller.term.term import Term
from controller_core.controller.znodes.config_writes import ensure_paths, notify, write_config
from controller_core.model.scram import (
    MAX_ITERATIONS,
    MAX_USER_NAME_LENGTH,
    SCRAM_MECHANISMS,
    SaltedPassword,
    make_credential,
)
from controller_core.wire.codecs.versions import Versions
from controller_core.wire.messages import NO_THROTTLE
from controller_core.zk import codecs, paths
from controller_core.zk.codecs import MalformedZnode
from controller_core.zk.compare_and_set import Unwritten, compare_and_set_each, find_unwritten
from controller_core.zk.session import Delete, WriteOp, ZkNode

Alteration = ScramCredentialDeletion | ScramCredentialUpsertion

_WRITE_WEIGHT: Final = 5
"""Weight of a user's write in units of one checked alteration. Keys are derived by many hashes, so writes take
longer."""


async def on_alter_scram(term: Term, request: AlterUserScramCredentialsRequest) -> AlterUserScramCredentialsResponse:
    """Write the credentials of all users whose alterations are valid. Quotas in the same znode are kept."""
    by_user = _group_by_user([alteration async for alteration in slice_up(_alterations(request))])
    refused = {
        user: why
        async for user, alterations in slice_up(by_user.items(), lambda item: len(item[1]))
        if (why := _why_unsound(alterations)) is not None
    }

    async def attempt(users: Sequence[str]) -> dict[str, Unwritten]:
        writes: dict[str, list[WriteOp]] = {}
        configs = [paths.user_config(paths.sanitize(user)) for user in users]
        # Quotas of a user's clients are children of the same znode.
        nodes, below = await term.zk.read_many(configs), await term.zk.children_many(configs)
        async for user, node, clients in slice_up(zip(users, nodes, below, strict=True), lambda _: _WRITE_WEIGHT):
            try:
                write = _write(user, by_user[user], node, has_clients=bool(clients))
                writes[user] = [write, notify(f"users/{paths.sanitize(user)}")]
                _require_room(term, writes[user])
            except ItemRefused as error:
                writes.pop(user, None)
                refused[user] = error
        return find_unwritten((await term.writer.write(writes)).failed)

    if sound := [user for user in by_user if user not in refused]:
        await ensure_paths(term, [paths.CONFIG, paths.USER_CONFIGS, paths.CONFIG_CHANGES])
        refused |= {
            user: make_unwritten_refusal(error) for user, error in (await compare_and_set_each(sound, attempt)).items()
        }
    return _response([_result(user, refused.get(user)) async for user in slice_up(by_user)])


def refusal(request: AlterUserScramCredentialsRequest, error_code: ErrorCode) -> AlterUserScramCredentialsResponse:
    """Return the answer that refuses every user of the request."""
    return _response(_result(user, ItemRefused(error_code)) for user in _group_by_user(_alterations(request)))


def _alterations(request: AlterUserScramCredentialsRequest) -> Iterator[Alteration]:
    yield from request.deletions
    yield from request.upsertions


def _group_by_user(alterations: Iterable[Alteration]) -> dict[str, list[Alteration]]:
    by_user: dict[str, list[Alteration]] = {}
    for alteration in alterations:
        by_user.setdefault(alteration.name, []).append(alteration)
    return by_user


def _why_unsound(alterations: list[Alteration]) -> ItemRefused | None:
    """Return the problem of the alterations, whatever credentials the user has. Like Kafka, name the last of
    several."""
    wrong = [why for each in alterations if (why := _why_unsound_alone(each)) is not None]
    if wrong:
        return wrong[-1]
    if len({each.mechanism for each in alterations}) < len(alterations):
        return ItemRefused(
            ErrorCode.duplicate_resource, "A user credential cannot be altered twice in the same request"
        )
    return None


def _why_unsound_alone(alteration: Alteration) -> ItemRefused | None:
    name_complaint = _name_complaint(alteration.name)
    if name_complaint is not None:
        return ItemRefused(ErrorCode.unacceptable_credential, name_complaint)
    mechanism = SCRAM_MECHANISMS.get(alteration.mechanism)
    if mechanism is None:
        return ItemRefused(ErrorCode.unsupported_sasl_mechanism, "Unknown SCRAM mechanism")
    if isinstance(alteration, ScramCredentialDeletion):
        return None
    complaint = None
    if alteration.iterations < mechanism.min_iterations:
        complaint = "Too few iterations"
    elif alteration.iterations > MAX_ITERATIONS:
        complaint = "Too many iterations"
    elif not alteration.salted_password:
        complaint = "The salted password must not be empty"
    return ItemRefused(ErrorCode.unacceptable_credential, complaint) if complaint else None


def _name_complaint(name: str) -> str | None:
    """Return the problem of a user's name, or None. The name becomes a znode's name, and ZooKeeper closes the
    connection of a client that uses an invalid path."""
    if not name:
        return "Username must not be empty"
    if name in (".", ".."):
        return f"Username must not be '{name}', which ZooKeeper cannot keep"
    if len(paths.sanitize(name)) > MAX_USER_NAME_LENGTH:
        return f"Username must not be longer than {MAX_USER_NAME_LENGTH} characters of ASCII, or fewer others"
    return None


def _write(user: str, alterations: list[Alteration], node: ZkNode | None, *, has_clients: bool) -> WriteOp:
    """Return the write of a user's altered configuration. Raises `ItemRefused`.

    Like Kafka, delete the znode if the user has neither settings nor quotas of single clients left.
    """
    path = paths.user_config(paths.sanitize(user))
    try:
        present = codecs.decode_config(node.data, path) if node else {}
    except MalformedZnode as error:
        raise ItemRefused(ErrorCode.unknown_server_error, str(error)) from error
    for alteration in alterations:
        is_deletion = isinstance(alteration, ScramCredentialDeletion)
        if is_deletion and SCRAM_MECHANISMS[alteration.mechanism].name not in present:
            message = "Attempt to delete a user credential that does not exist"
            raise ItemRefused(ErrorCode.resource_not_found, message)
    config = _apply_alterations(present, alterations)
    if node is not None and not config and not has_clients:
        return Delete(path=path, version=node.version)
    return write_config(path, config, node)


def _require_room(term: Term, write: list[WriteOp]) -> None:
    why_too_large = term.writer.why_too_large(write)
    if why_too_large is not None:
        message = f"The credential does not fit into a znode, use a shorter salt: {why_too_large}"
        raise ItemRefused(ErrorCode.unacceptable_credential, message)


def _apply_alterations(present: Mapping[str, str], alterations: list[Alteration]) -> dict[str, str]:
    config = dict(present)
    for alteration in alterations:
        mechanism = SCRAM_MECHANISMS[alteration.mechanism]
        if isinstance(alteration, ScramCredentialUpsertion):
            password = SaltedPassword(
                salt=alteration.salt, salted=alteration.salted_password, iterations=alteration.iterations
            )
            config[mechanism.name] = make_credential(mechanism, password)
        else:
            del config[mechanism.name]
    return config


def _result(user: str, refused: ItemRefused | None) -> AlterUserScramCredentialsResult:
    return AlterUserScramCredentialsResult(
        user=user,
        error_code=refused.error_code if refused else ErrorCode.none,
        error_message=refused.message if refused else None,
    )


def _response(results: Iterable[AlterUserScramCredentialsResult]) -> AlterUserScramCredentialsResponse:
    return AlterUserScramCredentialsResponse(throttle_time=NO_THROTTLE, results=tuple(results))


API: Final = ServedApi(versions=Versions(AlterUserScramCredentialsRequest), answer=on_alter_scram, refuse=refusal)
