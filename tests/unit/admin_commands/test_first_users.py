"""Users that are created in ZooKeeper before the first broker starts: new ones, existing ones, and the
notifications."""

import hashlib
from pathlib import Path
from typing import Final

import pytest
from typer.testing import CliRunner

from controller_core.model.scram import SaltedPassword, make_credential
from controller_core.zk import codecs, paths
from controller_core.zk.scram_credentials import ZkScramCredentials
from controller_core.zk.session import Create, Delete
from kontroller.brokers.first_users import (
    MAX_PASSWORD_BYTES,
    MECHANISMS,
    FirstUser,
    UnusableUsers,
    make_users,
    read_users,
)
from kontroller.command_line import main
from simulation.zookeeper import SimulatedZooKeeper
from simulation.zookeeper_session import SimulatedSession

SHA_256, SHA_512 = MECHANISMS
ALICE: Final = FirstUser(name="alice", password="a wonderland's secret")


@pytest.fixture
def session() -> SimulatedSession:
    """Return a session of an empty cluster."""
    return SimulatedZooKeeper().session()


async def config_of(session: SimulatedSession, user: str) -> dict[str, str]:
    path = paths.user_config(paths.sanitize(user))
    (node,) = await session.read_many([path])
    return codecs.decode_config(node.data, path) if node else {}


async def read_notifications(session: SimulatedSession) -> list[str]:
    """Return the users about whom brokers are notified."""
    (names,) = await session.children_many([paths.CONFIG_CHANGES])
    nodes = await session.read_many([f"{paths.CONFIG_CHANGES}/{name}" for name in sorted(names or ())])
    return [node.data.decode() for node in nodes if node is not None]


async def test_a_user_is_admitted_by_his_password_and_brokers_are_told(session: SimulatedSession) -> None:
    assert await make_users(session, [ALICE], [SHA_512]) == ["alice"]
    stored = await ZkScramCredentials(session).find_credential(SHA_512, "alice")
    assert stored is not None
    salted = hashlib.pbkdf2_hmac("sha512", ALICE.password.encode(), stored.salt, stored.iterations)
    wanted = make_credential(MECHANISMS[SHA_512], SaltedPassword(salt=stored.salt, salted=salted, iterations=8192))
    assert await config_of(session, "alice") == {SHA_512: wanted}
    assert ['"users/alice"' in each for each in await read_notifications(session)] == [True]
    assert ALICE.password not in str(await config_of(session, "alice")) + repr(ALICE)


async def test_who_has_this_password_keeps_what_he_has(session: SimulatedSession) -> None:
    await make_users(session, [ALICE], [SHA_512])
    before = await config_of(session, "alice")
    assert await make_users(session, [ALICE], [SHA_512]) == []
    assert await config_of(session, "alice") == before
    assert len(await read_notifications(session)) == 1


async def test_another_password_and_another_mechanism_are_made_and_the_rest_stays(session: SimulatedSession) -> None:
    await make_users(session, [ALICE], [SHA_512])
    path = paths.user_config("alice")
    kept = {**(await config_of(session, "alice")), "producer_byte_rate": "1", SHA_256: "no credential"}
    (node,) = await session.read_many([path])
    assert node is not None
    await session.transact([Delete(path=path, version=node.version)])
    await session.transact([Create(path=path, data=codecs.encode_config(kept))])
    changed = FirstUser(name="alice", password="another")
    assert await make_users(session, [ALICE, changed], [SHA_512, SHA_256]) == ["alice", "alice"]
    now = await config_of(session, "alice")
    assert now["producer_byte_rate"] == "1"
    assert now[SHA_512] != kept[SHA_512]
    assert now[SHA_256].startswith("salt=")


def test_a_folder_as_kubernetes_mounts_a_secret_has_its_keys_alone(tmp_path: Path) -> None:
    (tmp_path / "..2026_01_31").mkdir()
    (tmp_path / "..2026_01_31" / "kafka").write_text("line\n")
    (tmp_path / "..data").symlink_to("..2026_01_31")
    (tmp_path / "kafka").symlink_to("..data/kafka")
    assert read_users(tmp_path) == (FirstUser(name="kafka", password="line"),)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (None, "has no file"),
        (b"", "is not a password"),
        (b"\n", "is not a password"),
        (b"\xff\xfe", "is not a password"),
        (b"s" * (MAX_PASSWORD_BYTES + 1), "is not a password"),
    ],
)
def test_what_is_no_password_is_named_and_not_told(tmp_path: Path, data: bytes | None, said: str) -> None:
    if data is not None:
        (tmp_path / "kafka").write_bytes(data)
    with pytest.raises(UnusableUsers, match=said) as refused:
        read_users(tmp_path)
    assert "sss" not in str(refused.value)


def test_a_folder_below_is_no_user(tmp_path: Path) -> None:
    (tmp_path / "kafka").mkdir()
    with pytest.raises(UnusableUsers, match="kafka is not a file"):
        read_users(tmp_path)
    with pytest.raises(UnusableUsers, match="cannot be read: No such file"):
        read_users(tmp_path / "absent")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--directory", "/no/where"), "cannot be read"),
        (("--directory", "/no/where", "--mechanism", "PLAIN"), "PLAIN is none of SCRAM-SHA-256, SCRAM-SHA-512"),
    ],
)
def test_a_command_that_cannot_work_says_so_before_anybody_is_asked(options: tuple[str, ...], said: str) -> None:
    result = CliRunner().invoke(main, ["scram-users", "--zookeeper", "zk:2181", *options])
    assert result.exit_code == 2
    assert said in " ".join(result.output.split())
