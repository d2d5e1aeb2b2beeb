"""The completions of the shell, from the commands and from the cluster."""

import pytest
import typer
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document
from typer.core import TyperGroup

from controller_core.client.admin_client import AdminClient
from controller_core.client.errors import Unreachable
from controller_core.client.features import FeatureMetadata
from controller_core.client.topics.administration import TopicList
from controller_core.client.transport.request_client import Address
from controller_core.model.ids import TopicName
from controller_core.model.snapshot import Snapshot
from kontroller.cli.administering.groups import GROUPS
from kontroller.cli.administering.interactive import Known, Words, look, run_line
from kontroller.cli.endings import OneLine
from tests.unit.model.draining.test_broker_stop import place, snapshot_of


@pytest.fixture(scope="module")
def whole() -> TyperGroup:
    root = typer.Typer(cls=OneLine)
    for name, commands in GROUPS.items():
        root.add_typer(commands, name=name)
    whole = typer.main.get_command(root)
    assert isinstance(whole, TyperGroup)
    return whole


@pytest.fixture(scope="module")
def words(whole: TyperGroup) -> Words:
    known = Known(topics=("orders", "orders.eu", "audit"), brokers=("1", "2"), features=("f", "g"))
    return Words(
        groups={name: each for name, each in whole.commands.items() if isinstance(each, TyperGroup)}, known=known
    )


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ("", ["cluster", "elect", "exit", "features", "help", "quit", "reassign", "topics"]),
        ("to", ["topics"]),
        ("topics ", ["alter", "create", "delete", "describe", "list"]),
        ("topics de", ["delete", "describe"]),
        ("topics describe --to", ["--topic"]),
        ("topics describe --topic ord", ["orders", "orders.eu"]),
        ("topics describe --topic nowhere", []),
        ("features disable --features f,", ["f", "g"]),
        ("topics create --replica-assignment ", ["1", "2"]),
        ("topics create --replica-assignment 1:2,2:", ["1", "2"]),
        ("topics create --replica-assignment 1:2", ["2"]),
        ("features update --feature-upgrade ", ["f", "g"]),
        ("topics describe --topic a:", []),
        ("nothing ", []),
        ("topics nothing --to", []),
        ("features update --feature-up", ["--feature-upgrade"]),
    ],
)
def test_what_may_come_next_is_offered(words: Words, typed: str, expected: list[str]) -> None:
    offered = words.get_completions(Document(typed), CompleteEvent(completion_requested=True))
    assert [each.text for each in offered] == expected


class DescribedCluster(AdminClient):
    """Says that it is this cluster; without one it says nothing."""

    cluster: Snapshot | None = None

    async def describe_cluster(self, *, timeout_ms: int | None = None) -> Snapshot:
        if self.cluster is None:
            raise Unreachable("nobody answers")
        return self.cluster

    async def list_topics(self, *, timeout_ms: int | None = None) -> TopicList:
        return TopicList(alive=(TopicName("orders"),), marked_for_deletion=None)

    async def describe_features(self, *, of_controller: bool = False, timeout_ms: int | None = None) -> FeatureMetadata:
        return FeatureMetadata(
            finalized={"f": 1}, epoch=1, supported={}, answered_by=Address("h", 1), updates_by_version=2
        )


def make_cluster(*brokers: int, controller: int) -> Snapshot:
    """Return a cluster with a partition on broker 1."""
    return snapshot_of(place([1], [1]), alive=brokers, controller=controller)


async def test_a_controller_is_offered_as_a_broker_where_it_is_one() -> None:
    admin, known = DescribedCluster({"bootstrap.servers": "h:1"}), Known()
    admin.cluster = make_cluster(1, 2, 1000, controller=1000)
    await look(admin, known)
    assert (known.brokers, known.topics, known.controller) == (("1", "2"), ("orders",), "1000")
    admin.cluster = make_cluster(1, 2, controller=1)
    await look(admin, known)
    assert (known.brokers, known.controller) == (("1", "2"), "1"), "the prompt follows it"


async def test_what_is_not_told_now_stays_as_it_was() -> None:
    admin, known = DescribedCluster({"bootstrap.servers": "h:1"}), Known(controller="1", brokers=("1",))
    await look(admin, known)
    assert known == Known(controller="?", brokers=("1",))


@pytest.mark.parametrize("end", [ValueError("what nobody thought of"), KeyboardInterrupt(), SystemExit(3)])
def test_a_command_that_breaks_does_not_end_the_shell(
    whole: TyperGroup,
    words: Words,
    end: BaseException,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def break_off(*_: object, **__: object) -> None:
        raise end

    monkeypatch.setattr(TyperGroup, "main", break_off)
    run_line(whole, words.groups, "cluster describe")
    said = capsys.readouterr().err
    assert ("ValueError: what nobody thought of" in said) == isinstance(end, ValueError)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("topics create", "kontroller: Missing option '--topic'"),
        ('topics "', "kontroller: 'topics \"' cannot be read: No closing quotation"),
        ("topic list", "kontroller: 'topic' is not a command: cluster, topics"),
    ],
)
def test_a_line_that_is_wrong_is_said_in_one_line(
    whole: TyperGroup, words: Words, line: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    run_line(whole, words.groups, line)
    told = capsys.readouterr()
    assert (told.out, len(told.err.splitlines())) == ("", 1)
    assert told.err.startswith(said)
