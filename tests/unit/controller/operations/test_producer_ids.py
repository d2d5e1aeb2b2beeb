"""AllocateProducerIds: blocks of ids that no two brokers ever share."""

import pytest
from kio.schema.types import BrokerId as WireBrokerId
from kio.static.primitive import i64

from controller_core.model.ids import BrokerId
from controller_core.wire.messages import AllocateProducerIdsRequest, AllocateProducerIdsResponse, ErrorCode
from controller_core.zk import codecs, paths
from simulation.cluster import Cluster


@pytest.fixture
async def served(cluster: Cluster) -> Cluster:
    cluster.start_brokers(1, 2)
    await cluster.serve()
    return cluster


async def ask(
    cluster: Cluster, number: int, epoch: int | None = None, sender: int | None = None
) -> AllocateProducerIdsResponse:
    known = cluster.broker(number).epoch if epoch is None else epoch
    request = AllocateProducerIdsRequest(broker_id=WireBrokerId(sender or number), broker_epoch=i64(known))
    response = await cluster.ask(BrokerId(number), request)
    assert isinstance(response, AllocateProducerIdsResponse)
    return response


async def block(cluster: Cluster, number: int) -> range:
    response = await ask(cluster, number)
    assert response.error_code is ErrorCode.none
    return range(response.producer_id_start, response.producer_id_start + response.producer_id_len)


async def test_blocks_follow_each_other_whoever_asks(served: Cluster) -> None:
    blocks = [await block(served, number) for number in (1, 2, 1)]
    assert blocks == [range(1000), range(1000, 2000), range(2000, 3000)]
    data = served.data(paths.PRODUCER_ID_BLOCK)
    assert data is not None
    written = codecs.decode_producer_id_block(data)
    assert (written.broker, written.first, written.last) == (1, 2000, 2999)


async def test_the_next_controller_goes_on_after_the_last_block(served: Cluster) -> None:
    await block(served, 1)
    await served.active.kill()
    await served.serve()
    assert await block(served, 2) == range(1000, 2000)


async def test_a_block_whose_answer_was_lost_is_not_given_again(served: Cluster) -> None:
    served.zk.lose_next_response(served.active.session)
    assert await block(served, 1) == range(1000)
    assert await block(served, 2) == range(1000, 2000)


async def test_the_empty_znode_that_brokers_create_is_the_beginning(served: Cluster) -> None:
    served.put(paths.PRODUCER_ID_BLOCK, b"")
    assert await block(served, 1) == range(1000)


async def test_an_unreadable_block_gives_nobody_ids_and_is_left_for_a_person(served: Cluster) -> None:
    served.put(paths.PRODUCER_ID_BLOCK, b"garbled")
    response = await ask(served, 1)
    assert (response.error_code, response.producer_id_len) == (ErrorCode.unknown_server_error, 0)
    assert served.data(paths.PRODUCER_ID_BLOCK) == b"garbled"
    assert served.active.terms == 1


async def test_only_a_broker_that_is_known_gets_ids(served: Cluster) -> None:
    assert (await ask(served, 1, epoch=1)).error_code is ErrorCode.stale_broker_epoch
    assert (await ask(served, 1, sender=9)).error_code is ErrorCode.broker_id_not_registered
    assert not served.exists(paths.PRODUCER_ID_BLOCK)
