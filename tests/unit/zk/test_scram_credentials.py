"""Users' credentials in ZooKeeper, which a server looks up at each login."""

import asyncio

import pytest
from structlog.testing import capture_logs

from controller_core.model.scram import (
    SCRAM_MECHANISMS,
    CredentialsOutOfReach,
    SaltedPassword,
    make_credential,
    read_credential,
)
from controller_core.zk import codecs, paths, scram_credentials
from controller_core.zk.scram_credentials import ZkScramCredentials
from controller_core.zk.session import Create, SetData
from simulation.zookeeper import SimulatedZooKeeper
from simulation.zookeeper_session import SimulatedSession

SHA_256, SHA_512 = SCRAM_MECHANISMS[1], SCRAM_MECHANISMS[2]
WRITTEN = make_credential(SHA_256, SaltedPassword(salt=b"salt", salted=b"salted", iterations=4096))


@pytest.fixture
def session(zookeeper: SimulatedZooKeeper) -> SimulatedSession:
    zookeeper.transact(
        [
            Create(path=paths.CONFIG),
            Create(path=paths.USER_CONFIGS),
            Create(path=paths.user_config("CN%3Dalice"), data=codecs.encode_config({SHA_256.name: WRITTEN})),
            Create(path=paths.user_config("bob"), data=codecs.encode_config({"producer_byte_rate": "1"})),
            Create(path=paths.user_config("broken"), data=b"no json, a secret"),
            Create(path=paths.user_config("half"), data=codecs.encode_config({SHA_256.name: "salt=c2FsdA==,a secret"})),
        ],
        zookeeper.new_session_id(),
    )
    return zookeeper.session()


async def test_a_user_has_the_credential_that_stands_under_his_name(session: SimulatedSession) -> None:
    credentials = ZkScramCredentials(session)
    assert await credentials.find_credential(SHA_256.name, "CN=alice") == read_credential(WRITTEN)
    assert await credentials.find_credential(SHA_512.name, "CN=alice") is None


@pytest.mark.parametrize("user", ["nobody", "bob", "", ".", "..", "../config", "a/b", "x" * 20_000, "ü", "\n"])
async def test_who_has_none_has_none_whatever_he_calls_himself(session: SimulatedSession, user: str) -> None:
    assert await ZkScramCredentials(session).find_credential(SHA_256.name, user) is None


@pytest.mark.parametrize("user", ["broken", "half"])
async def test_one_that_cannot_be_read_is_none_and_is_not_shown(session: SimulatedSession, user: str) -> None:
    with capture_logs() as logged:
        assert await ZkScramCredentials(session).find_credential(SHA_256.name, user) is None
    assert [line["mechanism"] for line in logged] == [SHA_256.name]
    assert "secret" not in str(logged)


async def test_one_that_changes_holds_at_the_next_login(
    session: SimulatedSession, zookeeper: SimulatedZooKeeper
) -> None:
    credentials = ZkScramCredentials(session)
    assert await credentials.find_credential(SHA_256.name, "CN=alice") is not None
    path = paths.user_config("CN%3Dalice")
    zookeeper.transact([SetData(path=path, data=codecs.encode_config({}))], zookeeper.new_session_id())
    assert await credentials.find_credential(SHA_256.name, "CN=alice") is None


async def test_without_zookeeper_nobody_is_taken_to_be_wrong(
    session: SimulatedSession, zookeeper: SimulatedZooKeeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scram_credentials, "TIMEOUT_S", 0.05)
    zookeeper.disconnect(session)
    credentials = ZkScramCredentials(session)
    asked = [credentials.find_credential(SHA_256.name, "CN=alice") for _ in range(3 * scram_credentials.AT_ONCE)]
    for answer in await asyncio.gather(*asked, return_exceptions=True):
        assert isinstance(answer, CredentialsOutOfReach)
