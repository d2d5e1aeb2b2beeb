"""The progress of a move, in words."""

from kontroller.cli.administering.progress import Speed

MB = 1_000_000


def test_what_is_left_how_fast_it_goes_and_how_long_yet_is_said_once_it_is_known() -> None:
    speed = Speed()
    assert speed.describe(None, 0.0) == "partitions; bytes left unknown"
    assert speed.describe(100 * MB, 10.0) == "partitions, 100.0 MB left"
    assert speed.describe(80 * MB, 20.0) == "partitions, 80.0 MB left, 2.0 MB/s, 40 s left"
    assert speed.describe(40 * MB, 40.0) == "partitions, 40.0 MB left, 2.0 MB/s, 20 s left"


def test_what_becomes_more_is_measured_anew() -> None:
    speed = Speed()
    speed.describe(10 * MB, 0.0)
    assert speed.describe(500 * MB, 10.0) == "partitions, 500.0 MB left"
    assert speed.describe(400 * MB, 20.0) == "partitions, 400.0 MB left, 10.0 MB/s, 40 s left"


def test_a_time_is_given_in_the_units_of_people() -> None:
    speed = Speed()
    speed.describe(100_000 * MB, 0.0)
    assert speed.describe(99_999 * MB, 1.0).endswith("1.0 MB/s, 27 h 46 min left")
    assert speed.describe(99_700 * MB, 300.0).endswith("27 h 41 min left")
    quick = Speed()
    quick.describe(1_000 * MB, 0.0)
    assert quick.describe(900 * MB, 10.0).endswith("1 min 30 s left")
