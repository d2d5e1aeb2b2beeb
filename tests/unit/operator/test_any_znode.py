"""With any content in any znode, the operator's view shows the topics that make sense, and names the bad znodes."""

from hypothesis import given

from controller_core.model.ids import TopicName
from controller_core.zk import paths
from controller_core.zk.session import SessionId, ZkNode, ZkVersion
from controller_core.zk.snapshots.known_znodes import KnownZnodes
from tests.unit.controller.test_any_znode import EXAMPLES, Znode, some_znodes

GOOD = TopicName("good")


def node(data: bytes) -> ZkNode:
    return ZkNode(data=data, version=ZkVersion(1), czxid=1, mzxid=1, ephemeral_owner=SessionId(0))


@EXAMPLES
@given(written=some_znodes)
def test_whatever_is_written_the_good_topic_is_in_the_view(written: list[Znode]) -> None:
    known = KnownZnodes()
    due = set()
    for parent in (paths.BROKER_IDS, paths.TOPICS):
        names = {path.removeprefix(f"{parent}/").partition("/")[0] for path in _list_below(parent, written)}
        due.update(known.take_children(parent, sorted({*names, *([GOOD] if parent == paths.TOPICS else [])})))
    good = known.take(paths.topic(GOOD), node(b'{"partitions":{"0":[1]}}'))
    state = b'{"leader":1,"leader_epoch":0,"controller_epoch":1,"isr":[1]}'
    for path in good:
        known.take(path, node(state))
    for znode in written:
        if znode.path in due or not znode.path.startswith((f"{paths.BROKER_IDS}/", f"{paths.TOPICS}/")):
            due.update(known.take(znode.path, node(znode.data)))
    (found,) = [topic for topic in known.take_snapshot().topics.values() if topic.name == GOOD]
    assert found.partitions.keys() == {0}


def _list_below(parent: str, written: list[Znode]) -> list[str]:
    return [znode.path for znode in written if znode.path.startswith(f"{parent}/")]
