"""Secrets stand in no log line and no error, in no encoding, even if something goes wrong."""

import base64
import dataclasses
import io
import urllib.parse
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest
import structlog
from kio.schema.alter_user_scram_credentials.v0.request import AlterUserScramCredentialsRequest
from kio.schema.create_delegation_token.v3.response import CreateDelegationTokenResponse
from kio.schema.errors import ErrorCode
from kio.schema.incremental_alter_configs.v1.request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kio.static.primitive import i8, i16

from controller_core.admin import alter_scram
from controller_core.process.logging import make_processors
from controller_core.wire.codecs.frames import encode_request, read_request_head
from controller_core.wire.codecs.redaction import redact
from controller_core.wire.codecs.versions import Versions
from controller_core.wire.listener.owned_api import AnswerFailedError, OwnedApi
from controller_core.zk import codecs, paths
from controller_core.zk.codecs import MalformedZnode
from controller_core.zk.session import BadVersion, Create, FailedOp, SetData, WriteOp, ZkError
from simulation.cluster import CONTROLLER, Cluster
from tests.unit.admin.test_alter_scram import upsert

SALT = bytes(range(0x81, 0x91))
SALTED = bytes(range(0xC0, 0xE0))
KEYSTORE_PASSWORD = "correct horse battery staple"

ALTER_SCRAM = AlterUserScramCredentialsRequest(deletions=(), upsertions=(upsert("alice", salt=SALT, salted=SALTED),))
ALTER_CONFIGS = IncrementalAlterConfigsRequest(
    resources=(
        AlterConfigsResource(
            resource_type=i8(4),
            resource_name=str(CONTROLLER),
            configs=(
                AlterableConfig(name="ssl.keystore.password", config_operation=i8(0), value=KEYSTORE_PASSWORD),
                AlterableConfig(name="unclean.leader.election.enable", config_operation=i8(0), value="true"),
            ),
        ),
    ),
    validate_only=False,
)


def encodings(secret: bytes) -> Iterator[str]:
    """Return all usual encodings of these bytes. Of base64, only the part that does not depend on neighbouring
    bytes."""
    yield repr(secret)[2:-1]
    yield secret.decode("latin-1")
    yield secret.decode(errors="replace")
    yield str(list(secret))[1:-1]
    yield urllib.parse.quote_from_bytes(secret)
    yield from (secret.hex(), secret.hex().upper(), secret.hex(":"), secret.hex(" "))
    for shift in range(3):
        whole = secret[shift : shift + (len(secret) - shift) // 3 * 3]
        yield from (base64.b64encode(whole).decode(), base64.urlsafe_b64encode(whole).decode())
    yield secret.decode("utf-16-be", errors="replace")


def assert_silent(text: str, *secrets: bytes) -> None:
    for secret in secrets:
        for written in encodings(secret):
            assert written not in text
            assert repr(written)[1:-1] not in text


@contextmanager
def production_logs(log_format: str) -> Iterator[io.StringIO]:
    """The lines as a process would write them."""
    before, written = structlog.get_config(), io.StringIO()
    structlog.configure(
        processors=make_processors(log_format),
        logger_factory=structlog.WriteLoggerFactory(file=written),
        wrapper_class=structlog.make_filtering_bound_logger(0),
        cache_logger_on_first_use=False,
    )
    try:
        yield written
    finally:
        structlog.configure(**before)


def say_nothing(_: WriteOp) -> ZkError:
    return ZkError("an answer that nobody knows")


def name_the_write(op: WriteOp) -> ZkError:
    error = ZkError(f"refused: {op}, {op!r}")
    error.__cause__ = BadVersion(FailedOp(index=1, op=op))
    return error


def credentials_of(ops: Sequence[WriteOp]) -> list[WriteOp]:
    return [op for op in ops if isinstance(op, Create | SetData) and b"SCRAM-SHA-256" in op.data]


@pytest.mark.parametrize("log_format", ["json", "console"])
@pytest.mark.parametrize("fail", [say_nothing, name_the_write])
async def test_an_unexpected_error_while_credentials_are_altered_says_nothing_of_them(
    cluster: Cluster, log_format: str, fail: Callable[[WriteOp], ZkError]
) -> None:
    cluster.start_brokers(1)
    await cluster.serve()
    cluster.surprises_expected = True
    written: list[bytes] = []

    def intervene(ops: Sequence[WriteOp]) -> None:
        for op in credentials_of(ops):
            written.append(op.data)  # type: ignore[union-attr]  # those have data
            raise fail(op)

    cluster.zk.interventions.append(intervene)
    with production_logs(log_format) as logs:
        await cluster.request(ALTER_SCRAM)
    (credential, *_) = [value.encode() for value in codecs.decode_config(written[0]).values()]
    assert "unexpected error" in logs.getvalue()
    assert "alice" in logs.getvalue(), "who it was about is said"
    assert_silent(logs.getvalue(), SALT, SALTED, credential)


async def test_an_unexpected_error_while_configurations_are_altered_says_nothing_of_their_values(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster.start_brokers(1)
    await cluster.serve()
    cluster.surprises_expected = True

    def stumble_over(*_: object) -> None:
        raise RuntimeError("nobody expected that")

    monkeypatch.setattr("controller_core.admin.cluster.own_configs._check_operation", stumble_over)
    with production_logs("json") as logs:
        await cluster.request(ALTER_CONFIGS)
    assert "IncrementalAlterConfigsRequest" in logs.getvalue()
    assert_silent(logs.getvalue(), KEYSTORE_PASSWORD.encode())


async def test_an_error_that_names_its_request_says_nothing_of_what_is_secret_in_it() -> None:
    async def fail(request: AlterUserScramCredentialsRequest) -> Any:
        raise ValueError(f"no idea what to do with {request}, {request.upsertions!r}")

    api = OwnedApi(alter_scram.API.versions, fail)
    content = encode_request(ALTER_SCRAM, 1, "test")[4:]
    with pytest.raises(AnswerFailedError, match="alice") as failed:
        await api.respond(read_request_head(content), content)
    assert_silent(f"{failed.value} {failed.value!r} {failed.value.__cause__!r}", SALT, SALTED)


@pytest.mark.parametrize(
    "data", [b'{"config":{"SCRAM-SHA-256":["%s"]}}', b'{"config":"%s"}', b'"%s"', b'{"config":{"a":"%s"', b"%s"]
)
def test_a_configuration_that_makes_no_sense_is_reported_without_what_it_holds(data: bytes) -> None:
    with pytest.raises(MalformedZnode, match="/config/users/alice") as malformed:
        codecs.decode_config(data % KEYSTORE_PASSWORD.encode(), paths.user_config("alice"))
    assert malformed.value.__suppress_context__ or malformed.value.__context__ is None
    assert_silent(str(malformed.value), KEYSTORE_PASSWORD.encode())


def test_znodes_and_writes_show_where_and_not_what() -> None:
    op = SetData(path="/config/users/alice", data=KEYSTORE_PASSWORD.encode())
    shown = f"{op} {Create(path=op.path, data=op.data)} {BadVersion(FailedOp(index=0, op=op))}"
    assert "/config/users/alice" in shown
    assert_silent(shown, KEYSTORE_PASSWORD.encode())


def test_delegation_tokens_show_no_hmac_and_what_is_long_shows_its_beginning() -> None:
    known = {"principal_type": "User", "principal_name": "alice", "token_id": "t" * 5_000, "hmac": SALTED}
    token: Any = object.__new__(redact(CreateDelegationTokenResponse))
    for field in dataclasses.fields(CreateDelegationTokenResponse):
        object.__setattr__(token, field.name, known.get(field.name, ErrorCode.none))
    assert "hmac=<32 bytes>" in repr(token)
    assert len(repr(token)) < 1_000
    assert_silent(repr(token), SALTED)


def test_a_request_of_very_many_parts_shows_in_little_room() -> None:
    versions = Versions(IncrementalAlterConfigsRequest, oldest=0)
    resource = AlterConfigsResource(
        resource_type=i8(4),
        resource_name="n" * 30_000,
        configs=ALTER_CONFIGS.resources[0].configs * 1_000,
    )
    request = versions.newest(resources=(resource,) * 1_000, validate_only=False)
    assert len(repr(request)) < 10_000
    assert "<995 more>" in repr(request)
    assert "ssl.keystore.password" in repr(request)
    assert_silent(repr(request), KEYSTORE_PASSWORD.encode())
    assert versions.request_type(0).__version__ == i16(0)
