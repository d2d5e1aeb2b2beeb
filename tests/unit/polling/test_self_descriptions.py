"""The brokers' descriptions of themselves are refreshed now and then."""

from controller_core.model.ids import BrokerEpoch, BrokerId
from controller_core.model.metadata import Broker, Endpoint
from controller_core.polling.self_descriptions import SelfDescriptions
from tests.unit.polling.quorum import API_VERSIONS, LOG_DIRS, Quorum, serve


def broker_of(quorum: Quorum) -> Broker:
    host, port = quorum.address
    at = Endpoint(listener="PLAINTEXT", security_protocol="PLAINTEXT", host=host, port=port)
    return Broker(id=BrokerId(1), epoch=BrokerEpoch(1), endpoints=(at,))


async def cordons_seen(*, all_again_s: float) -> tuple[list[bool], int]:
    """Return the broker's cordon at two looks, before and after it is removed, and the number of requests."""
    quorum, seen = Quorum(log_dirs=(True,)), []
    async with serve(quorum) as open_kept:
        client, _ = open_kept()
        descriptions = SelfDescriptions(all_again_s=all_again_s)
        for log_dirs in ((True,), (False,)):
            quorum.log_dirs = log_dirs
            seen.append((await descriptions.read([broker_of(quorum)], client))[BrokerId(1)].is_cordoned)
        client.close()
    return seen, quorum.asked[API_VERSIONS]


async def test_a_cordon_that_is_taken_away_is_seen_when_brokers_are_asked_again() -> None:
    assert await cordons_seen(all_again_s=0) == ([True, False], 2)


async def test_log_directories_that_do_not_answer_hide_nothing_else() -> None:
    quorum = Quorum(log_dirs=(True,), unanswered={LOG_DIRS})
    async with serve(quorum, patience_ms=200) as open_kept:
        client, _ = open_kept()
        said = (await SelfDescriptions().read([broker_of(quorum)], client))[BrokerId(1)]
        client.close()
    assert said.features
    assert not said.is_cordoned


async def test_brokers_that_have_said_it_a_moment_ago_are_not_asked() -> None:
    assert await cordons_seen(all_again_s=3600) == ([True, True], 1)
