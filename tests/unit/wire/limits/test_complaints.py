"""The log lines about the errors of others: however many there are, the log has few."""

import structlog
from structlog.testing import capture_logs

from controller_core.wire.limits.complaints import MOST_OF_AN_ADDRESS, MOST_SUBJECTS, Complaints


def complain(complaints: Complaints, *subjects: int) -> list[int]:
    """Complain about subjects. Return those that the log has lines about."""
    with capture_logs() as lines:
        for subject in subjects:
            is_logged = complaints.warn(subject, "refused", subject=subject)
            assert is_logged is (bool(lines) and lines[-1]["subject"] == subject)
    return [line["subject"] for line in lines]


def test_a_subject_has_one_line_in_an_interval() -> None:
    complaints = Complaints(structlog.get_logger())
    assert complain(complaints, 1, 2) == [1, 2]
    assert complain(complaints, 2, 1, 3) == [3]


def test_after_the_interval_there_is_a_line_again() -> None:
    complaints = Complaints(structlog.get_logger(), interval_s=0)
    assert complain(complaints, 1, 2) == [1, 2]
    assert complain(complaints, 1, 2) == [1, 2]


def test_subjects_without_end_have_a_limited_number_of_lines() -> None:
    complaints = Complaints(structlog.get_logger())
    assert len(complain(complaints, *range(3 * MOST_SUBJECTS))) == MOST_SUBJECTS
    assert complain(complaints, *range(3 * MOST_SUBJECTS)) == []


def test_an_address_with_many_errors_leaves_room_for_lines_about_others() -> None:
    complaints = Complaints(structlog.get_logger())
    with capture_logs() as lines:
        for number in range(2 * MOST_SUBJECTS):
            complaints.warn(("10.0.0.1", number), "refused", address="10.0.0.1", why=number)
        assert complaints.warn(("10.0.0.2", 0), "refused", address="10.0.0.2", why=0)
    assert [line["address"] for line in lines] == ["10.0.0.1"] * MOST_OF_AN_ADDRESS + ["10.0.0.2"]


def test_after_the_interval_an_address_has_its_number_of_lines_again() -> None:
    complaints = Complaints(structlog.get_logger(), interval_s=0)
    with capture_logs() as lines:
        for number in range(2 * MOST_OF_AN_ADDRESS):
            complaints.warn(number, "refused", address="10.0.0.1")
    assert len(lines) == 2 * MOST_OF_AN_ADDRESS


def test_usual_events_are_limited_like_errors() -> None:
    complaints = Complaints(structlog.get_logger())
    with capture_logs() as lines:
        assert [complaints.inform("a", "left", why="idle") for _ in range(2)] == [True, False]
    assert lines == [{"event": "left", "why": "idle", "log_level": "info"}]
