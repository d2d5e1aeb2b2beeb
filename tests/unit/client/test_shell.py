"""What the shell completes, from the commands and from what the cluster has."""

import pytest
import typer
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document
from typer.core import TyperGroup

from controller_admin.commands.administering.groups import GROUPS
from controller_admin.commands.administering.interactive import Known, Words


@pytest.fixture(scope="module")
def words() -> Words:
    root = typer.Typer()
    for name, commands in GROUPS.items():
        root.add_typer(commands, name=name)
    whole = typer.main.get_command(root)
    assert isinstance(whole, TyperGroup)
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
        ("nothing ", []),
        ("topics nothing --to", []),
        ("features update --feature-up", ["--feature-upgrade"]),
    ],
)
def test_what_may_come_next_is_offered(words: Words, typed: str, expected: list[str]) -> None:
    offered = words.get_completions(Document(typed), CompleteEvent(completion_requested=True))
    assert [each.text for each in offered] == expected
