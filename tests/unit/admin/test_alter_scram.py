"""AlterUserScramCredentials: the credentials that brokers will find in a user's configuration."""

import hashlib
from base64 import b64decode
from collections.abc import AsyncIterator, Sequence

import pytest
from kio.schema.alter_user_scram_credentials.v0.request import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from kio.schema.errors import ErrorCode
from kio.static.primitive import i8, i32

from controller_core.zk import codecs, paths
from controller_core.zk.session import Create
from simulation.checks import simulate_cluster
from simulation.cluster import Cluster

SHA_256, SHA_512 = 1, 2
SALT = b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")
"""The salt of the example in RFC 7677, whose password is `pencil`."""


SALTED = hashlib.pbkdf2_hmac("sha256", b"pencil", SALT, 4096)


def upsert(
    name: str, mechanism: int = SHA_256, iterations: int = 4096, *, salt: bytes = SALT, salted: bytes = SALTED
) -> ScramCredentialUpsertion:
    return ScramCredentialUpsertion(
        name=name, mechanism=i8(mechanism), iterations=i32(iterations), salt=salt, salted_password=salted
    )


def delete(name: str, mechanism: int = SHA_256) -> ScramCredentialDeletion:
    return ScramCredentialDeletion(name=name, mechanism=i8(mechanism))


async def codes(
    cluster: Cluster,
    upsertions: Sequence[ScramCredentialUpsertion] = (),
    deletions: Sequence[ScramCredentialDeletion] = (),
) -> dict[str, ErrorCode]:
    response = await cluster.request(
        AlterUserScramCredentialsRequest(upsertions=tuple(upsertions), deletions=tuple(deletions))
    )
    return {result.user: result.error_code for result in response.results}


def config(cluster: Cluster, user: str) -> dict[str, str]:
    data = cluster.data(paths.user_config(paths.sanitize(user)))
    return codecs.decode_config(data) if data else {}


@pytest.fixture
async def served() -> AsyncIterator[Cluster]:
    async with simulate_cluster() as cluster:
        cluster.start_brokers(1)
        await cluster.serve()
        yield cluster


async def test_the_credential_of_the_rfcs_example_is_written_in_kafkas_form_and_brokers_are_notified(
    served: Cluster,
) -> None:
    assert await codes(served, [upsert("alice")]) == {"alice": ErrorCode.none}
    assert config(served, "alice") == {
        "SCRAM-SHA-256": (
            "salt=W22ZaJ0SNY7soEsUEjb6gQ==,stored_key=WG5d8oPm3OtcPnkdi4Uo7BkeZkBFzpcXkuLmtbsT4qY=,"
            "server_key=wfPLwcE6nTWhTAmQ7tl2KeoiWGPlZqQxSrmfPwDl2dU=,iterations=4096"
        )
    }
    (name,) = served.zk.tree.children(paths.CONFIG_CHANGES) or ()
    notification = served.data(paths.config_change(name))
    assert notification is not None
    assert codecs.decode_config_change(notification) == "users/alice"


async def test_quotas_and_the_other_mechanism_stay(served: Cluster) -> None:
    await codes(served, [upsert("alice"), upsert("alice", SHA_512)])
    path = paths.user_config("alice")
    served.put(path, codecs.encode_config({**config(served, "alice"), "producer_byte_rate": "5"}))
    assert await codes(served, deletions=[delete("alice")]) == {"alice": ErrorCode.none}
    assert set(config(served, "alice")) == {"SCRAM-SHA-512", "producer_byte_rate"}


@pytest.mark.parametrize(
    ("upsertions", "deletions", "code"),
    [
        ([upsert("")], [], ErrorCode.unacceptable_credential),
        ([upsert(".")], [], ErrorCode.unacceptable_credential),
        ([upsert("..")], [], ErrorCode.unacceptable_credential),
        ([], [delete("..")], ErrorCode.unacceptable_credential),
        ([upsert("/" * 10_000)], [], ErrorCode.unacceptable_credential),
        ([upsert("alice", salt=b"s" * 1_000_000)], [], ErrorCode.unacceptable_credential),
        ([upsert("alice", salted=b"")], [], ErrorCode.unacceptable_credential),
        ([upsert("alice", 9)], [], ErrorCode.unsupported_sasl_mechanism),
        ([upsert("alice", iterations=4095)], [], ErrorCode.unacceptable_credential),
        ([upsert("alice", iterations=16_385)], [], ErrorCode.unacceptable_credential),
        ([], [delete("alice")], ErrorCode.resource_not_found),
        ([], [delete("alice", 0)], ErrorCode.unsupported_sasl_mechanism),
        ([upsert("alice"), upsert("alice")], [], ErrorCode.duplicate_resource),
        ([upsert("alice")], [delete("alice")], ErrorCode.duplicate_resource),
    ],
)
async def test_what_is_wrong_refuses_the_user_and_nobody_else(
    served: Cluster,
    upsertions: list[ScramCredentialUpsertion],
    deletions: list[ScramCredentialDeletion],
    code: ErrorCode,
) -> None:
    answered = await codes(served, [*upsertions, upsert("bob")], deletions)
    assert answered["bob"] is ErrorCode.none
    assert [answered[user] for user in answered if user != "bob"] == [code]
    assert config(served, "alice") == {}
    assert "SCRAM-SHA-256" in config(served, "bob")


async def test_one_bad_alteration_of_a_user_refuses_the_good_ones_too(served: Cluster) -> None:
    assert await codes(served, [upsert("alice"), upsert("alice", 9)]) == {"alice": ErrorCode.unsupported_sasl_mechanism}
    assert config(served, "alice") == {}


@pytest.mark.parametrize("name", ["a/b", "ü", "with space", "*", "~", "a+b", "...", "n" * 3000])
async def test_any_name_is_a_user(served: Cluster, name: str) -> None:
    assert await codes(served, [upsert(name)]) == {name: ErrorCode.none}
    assert "SCRAM-SHA-256" in config(served, name)


async def test_of_several_things_that_are_wrong_with_a_user_the_last_upsertion_is_named(served: Cluster) -> None:
    both = [upsert("alice", 9), upsert("alice", iterations=1)]
    assert await codes(served, both, [delete("alice", 9)]) == {"alice": ErrorCode.unacceptable_credential}
    assert await codes(served, both[::-1]) == {"alice": ErrorCode.unsupported_sasl_mechanism}


async def test_where_nothing_is_asked_or_everything_refused_nothing_is_written(served: Cluster) -> None:
    before = served.zk.tree.zxid
    assert await codes(served) == {}
    assert await codes(served, [upsert(".")]) == {".": ErrorCode.unacceptable_credential}
    assert served.zk.tree.zxid == before


def test_names_are_encoded_as_kafka_does() -> None:
    assert [paths.sanitize(name) for name in ("a b", "a*b", "a~b", "a+b", "ü", "a.b-c_d")] == [
        "a%20b",
        "a%2Ab",
        "a%7Eb",
        "a%2Bb",
        "%C3%BC",
        "a.b-c_d",
    ]


async def test_an_unreadable_configuration_is_reported_and_left_alone(served: Cluster) -> None:
    await codes(served, [upsert("alice")])
    served.put(paths.user_config("alice"), b"{not json")
    assert await codes(served, [upsert("alice"), upsert("bob")]) == {
        "alice": ErrorCode.unknown_server_error,
        "bob": ErrorCode.none,
    }
    assert served.data(paths.user_config("alice")) == b"{not json"


async def test_no_credential_is_in_the_logs(served: Cluster) -> None:
    await codes(served, [upsert("alice")])
    assert "stored_key" not in str(served.logs)


async def test_nothing_is_kept_of_a_user_who_has_nothing_left(served: Cluster) -> None:
    await codes(served, [upsert("alice"), upsert("bob")])
    served.write(Create(path=f"{paths.user_config('bob')}/clients"))
    answered = await codes(served, deletions=[delete("alice"), delete("bob")])
    assert answered == {"alice": ErrorCode.none, "bob": ErrorCode.none}
    assert not served.exists(paths.user_config("alice"))
    assert config(served, "bob") == {}, "there may be quotas of single clients below"
    assert served.exists(paths.user_config("bob"))
