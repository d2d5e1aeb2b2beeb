"""With any content in any znode, a recorder goes on, and records the later changes."""

import asyncio
from typing import Final

from hypothesis import example, given

from controller_core.zk import paths
from simulation.checks import simulate_cluster
from tests.unit.controller.test_any_znode import EXAMPLES, Znode, some_znodes, write
from tests.unit.recorder.test_recorder import serve

BAD_TOPIC: Final = b'{"partitions":{"0":[1],"1":[2147483648],"x":null}}'


@EXAMPLES
@given(written=some_znodes.map(lambda znodes: [znode for znode in znodes if znode.path != paths.CLUSTER_ID]))
@example(written=[Znode(f"{paths.TOPICS}/other", BAD_TOPIC), Znode(f"{paths.BROKER_IDS}/{'9' * 4400}", b"{}")])
def test_whatever_is_written_a_recorder_goes_on(written: list[Znode]) -> None:
    """Another cluster's id is the one thing that ends a recording."""

    async def run() -> None:
        async with simulate_cluster() as cluster:
            watched = await serve(cluster, 1, 2, 3)
            for znode in written:
                write(cluster, znode)
            await watched.look()
            cluster.create_topic("created-afterwards", [1, 2])
            await cluster.settle()
            lines = await watched.look()
            assert any(line.topic == "created-afterwards" and line.kind == "leadership" for line in lines)

    asyncio.run(run())
