"""Each error of each API has one meaning, as the tables in the docstring say."""

import re
from collections.abc import Iterator
from typing import Final

import pytest

from controller_core.controller.loop import answer_meanings
from controller_core.controller.loop.answer_meanings import Meaning, interpret_answer, interpret_partition_error
from controller_core.wire.messages import (
    ControlRequest,
    ErrorCode,
    LeaderAndIsrRequest,
    StopReplicaRequest,
    UpdateMetadataRequest,
)

WORDS: Final = {
    "obeyed": Meaning.OBEYED,
    "raise the epoch": Meaning.RAISE_EPOCH,
    "tell a person": Meaning.TELL_PERSON,
    "send everything again after": Meaning.SEND_AGAIN,
    "the replica is offline": Meaning.REPLICA_OFFLINE,
    "delete when the broker starts": Meaning.DELETE_AT_START,
}
REQUESTS: Final[dict[str, type[ControlRequest]]] = {
    "LeaderAndIsr": LeaderAndIsrRequest,
    "StopReplica": StopReplicaRequest,
    "UpdateMetadata": UpdateMetadataRequest,
}
OF_REQUESTS, OF_PARTITIONS = (answer_meanings.__doc__ or "").split("error of a partition")


def rows(table: str) -> Iterator[tuple[type[ControlRequest], ErrorCode, Meaning]]:
    """Return the meaning of each error in answers to each request, from a table."""
    said: dict[tuple[type[ControlRequest], ErrorCode], Meaning] = {}
    for requests, errors, words in re.findall(r"^\| ([\w, ]+) \| (.+?) \| (.+?) \|$", table, re.MULTILINE):
        for request in REQUESTS if requests == "any" else requests.split(", "):
            if request in REQUESTS:
                codes = (
                    list(ErrorCode) if errors == "all others" else [ErrorCode[e.lower()] for e in errors.split(", ")]
                )
                meaning = next(meaning for begin, meaning in WORDS.items() if words.startswith(begin))
                for code in codes:
                    said.setdefault((REQUESTS[request], code), meaning)
    assert len(said) % len(ErrorCode) == 0
    yield from ((request, code, meaning) for (request, code), meaning in said.items())


@pytest.mark.parametrize("request_type", REQUESTS.values())
def test_the_error_of_a_whole_request_means_what_the_table_says(request_type: type[ControlRequest]) -> None:
    said = {code: meaning for request, code, meaning in rows(OF_REQUESTS) if request is request_type}
    assert {code: interpret_answer(request_type, code) for code in ErrorCode} == said


@pytest.mark.parametrize("request_type", [LeaderAndIsrRequest, StopReplicaRequest])
def test_the_error_of_a_partition_means_what_the_table_says(request_type: type[ControlRequest]) -> None:
    said = {code: meaning for request, code, meaning in rows(OF_PARTITIONS) if request is request_type}
    assert {code: interpret_partition_error(request_type, code) for code in ErrorCode} == said


def test_update_metadata_has_no_errors_of_partitions() -> None:
    assert interpret_partition_error(UpdateMetadataRequest, ErrorCode.none) is Meaning.OBEYED
