"""The description of the schema names all that there is."""

from pathlib import Path
from typing import get_args

import pytest

from controller_core.controller.loop.events import Event, RequestReceived, RoleDue, RoleEvent, SessionEnded
from controller_core.controller.recording import term_journal
from controller_core.journal.changes import Kind
from controller_core.journal.records import Delta, Line
from controller_core.process.run import SERVED_APIS

DESCRIPTION = (Path(__file__).resolve().parents[3] / "docs" / "journal.md").read_text()

CAUSES = DESCRIPTION.split("## Causes\n")[1].split("\n## ")[0]
NOT_BY_THEIR_NAMES = (*get_args(RoleEvent), RequestReceived)
HAPPENED = [event for event in get_args(Event) if event not in NOT_BY_THEIR_NAMES]


@pytest.mark.parametrize("name", [*Line.model_fields, *Delta.model_fields, *Kind])
def test_every_field_and_kind_is_described(name: str) -> None:
    assert f"`{name}`" in DESCRIPTION


@pytest.mark.parametrize(
    "cause",
    [
        term_journal.name_cause(RoleDue()),
        term_journal.STOPPED,
        term_journal.BROKER_FAILED,
        term_journal.BROKER_RESTARTED,
        term_journal.BROKER_STARTED,
        *map(term_journal.name_cause_of_type, HAPPENED),
        *(term_journal.name_cause_of_type(api.versions.newest) for api in SERVED_APIS),
    ],
)
def test_every_cause_is_described(cause: str) -> None:
    assert f"`{cause}`" in CAUSES


def test_the_table_of_causes_has_no_others() -> None:
    described = {line.split("`")[1] for line in CAUSES.splitlines() if line.startswith("| `")}
    assert described == {
        term_journal.name_cause(SessionEnded()),
        term_journal.STOPPED,
        term_journal.BROKER_FAILED,
        term_journal.BROKER_RESTARTED,
        term_journal.BROKER_STARTED,
        *map(term_journal.name_cause_of_type, HAPPENED),
    }
