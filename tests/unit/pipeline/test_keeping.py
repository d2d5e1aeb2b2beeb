"""The format of tables is chosen once, and stays."""

import pytest

from kontroller.history.generations.errors import OtherFormat
from kontroller.history.generations.generation import NOTHING, generation_of
from kontroller.history.generations.keeping import Format, Keeping

DELTA = Keeping(format=Format.DELTA, days={"": 30, "events": 90})


class TestHowTablesAreKept:
    def test_stays_when_nothing_else_is_asked_for(self) -> None:
        assert DELTA.then(Keeping()) == DELTA

    def test_is_parquet_until_somebody_asks_for_delta(self) -> None:
        assert not Keeping().is_delta
        assert Keeping(format=Format.PARQUET).then(Keeping(format=Format.DELTA)).is_delta

    def test_in_delta_cannot_become_parquet_which_its_readers_would_not_notice(self) -> None:
        with pytest.raises(OtherFormat, match="omit --format, or ingest its journals into a new folder"):
            DELTA.then(Keeping(format=Format.PARQUET))

    def test_as_parquet_has_no_older_versions(self) -> None:
        with pytest.raises(OtherFormat, match="use --keep-days with --format delta"):
            Keeping().then(Keeping(days={"": 3}))

    def test_is_in_the_generation_which_is_as_it_always_was_where_nothing_was_asked_for(self) -> None:
        generation = NOTHING.make_next({}, keeping=DELTA)
        assert generation_of(generation.text(), "its file") == generation
        assert generation.make_next({}).keeping == DELTA
        assert "keeping" not in NOTHING.make_next({}).text()


class TestDays:
    def test_are_those_of_the_table_or_else_of_the_others_or_else_a_week(self) -> None:
        assert [DELTA.days_of("events"), DELTA.days_of("proofs"), Keeping().days_of("proofs")] == [90, 30, 7]

    def test_that_are_asked_for_replace_those_of_the_same_tables(self) -> None:
        assert DELTA.then(Keeping(days={"events": 2})).days == {"": 30, "events": 2}
