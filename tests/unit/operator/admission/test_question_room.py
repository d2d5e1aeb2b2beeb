"""Questions take room when their bytes arrive, and when they are judged; no address takes all of it."""

import pytest

from controller_operator.admission.question_room import (
    FREE_BYTES,
    MOST_BYTES,
    MOST_BYTES_OF_AN_ADDRESS,
    MOST_JUDGED,
    MOST_JUDGED_OF_AN_ADDRESS,
    NoRoom,
    QuestionRoom,
)


def test_one_address_cannot_take_all_bytes() -> None:
    room = QuestionRoom()
    with room.enter("a") as large:
        large.receive(FREE_BYTES + MOST_BYTES_OF_AN_ADDRESS)
        with room.enter("a") as more, pytest.raises(NoRoom, match="bytes of questions at once from one address"):
            more.receive(FREE_BYTES + 1)
        with room.enter("b") as other:
            other.receive(FREE_BYTES + 1)


def test_a_question_of_ordinary_size_has_room_when_all_bytes_are_taken() -> None:
    room = QuestionRoom()
    with room.enter("a") as first, room.enter("b") as second:
        first.receive(FREE_BYTES + MOST_BYTES // 2)
        second.receive(FREE_BYTES + MOST_BYTES // 2)
        with room.enter("c") as small:
            small.receive(FREE_BYTES)
            with pytest.raises(NoRoom, match=r"^too many bytes of questions at once$"):
                small.receive(1)


def test_one_address_cannot_have_all_questions_judged() -> None:
    room = QuestionRoom()
    with pytest.raises(NoRoom, match="questions at once from one address"):
        _judge_many(room, "a", MOST_JUDGED_OF_AN_ADDRESS + 1)
    assert MOST_JUDGED_OF_AN_ADDRESS < MOST_JUDGED


def test_who_leaves_makes_room() -> None:
    room = QuestionRoom()
    for _ in range(3):
        _judge_many(room, "a", MOST_JUDGED_OF_AN_ADDRESS)
        with room.enter("a") as large:
            large.receive(FREE_BYTES + MOST_BYTES_OF_AN_ADDRESS)


def _judge_many(room: QuestionRoom, address: str, number: int) -> None:
    if number:
        with room.enter(address) as place:
            place.begin()
            _judge_many(room, address, number - 1)
