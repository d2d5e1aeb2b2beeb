"""The generation of a store as a value in a file, and the locks of its writers and readers."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from kontroller.history.generations.errors import Damaged, NotWritten, StoreBusy
from kontroller.history.generations.generation import (
    NOTHING,
    Made,
    Part,
    cluster_of,
    generation_of,
    is_left_over,
    new_write,
    numbers_in,
    replace_clusters,
    replace_days,
)
from kontroller.history.generations.locks import WriterLock, find_local_folder, read_lock, removal_lock

TWO_CLUSTERS = (Part("3-aa/of=a/day=1"), Part("3-aa/of=a/day=2"), Part("3-aa/of=b/day=1"))
OF_JANUARY = tuple(Part(f"3-aa/of=c/day=2026-01-0{day}") for day in (1, 2, 3))
HOLD = """
import sys, time
from pathlib import Path
from kontroller.history.generations.locks import WriterLock
with WriterLock(folder=Path(sys.argv[1])).hold():
    print("held", flush=True)
    time.sleep(1000)
"""


class TestAGeneration:
    def test_comes_back_from_its_file(self) -> None:
        generation = NOTHING.make_next({"events": OF_JANUARY}).make_next({"spans": (Part("2-bb"),)})
        assert generation.number == 2
        assert generation_of(generation.text(), "its file") == generation

    def test_has_the_tables_of_the_one_before_that_were_not_written(self) -> None:
        generation = NOTHING.make_next({"events": OF_JANUARY, "spans": (Part("1-aa"),)}).make_next(
            {"spans": (Part("2-bb"),)}
        )
        assert generation.parts == {"events": OF_JANUARY, "spans": (Part("2-bb"),)}

    @pytest.mark.parametrize("text", ["", '{"number": 3', '{"number": 3, "parts": {"events": 4}}'])
    def test_that_cannot_be_read_says_what_to_do(self, text: str) -> None:
        with pytest.raises(Damaged, match=r"/history/layers/generations/3\.json .* restore it from a backup"):
            generation_of(text, "/history/layers/generations/3.json")

    def test_replaces_the_days_that_are_new_and_keeps_the_others(self) -> None:
        new = (Part("4-bb/of=c/day=2026-01-02"), Part("4-bb/of=d/day=2026-01-01"))
        assert replace_days(OF_JANUARY, new) == (OF_JANUARY[0], new[0], OF_JANUARY[2], new[1])

    def test_replaces_all_days_of_clusters_that_are_new_however_many_there_are_now(self) -> None:
        new = (Part("4-bb/of=a/day=2"), Part("4-bb/of=c/day=1"))
        assert replace_clusters(TWO_CLUSTERS, {"a", "c"}, new) == (new[0], TWO_CLUSTERS[2], new[1])

    def test_knows_clusters_by_their_names_as_folders(self) -> None:
        names = ("1-a/of=a%2Fb %3D/day=1", "1-a/of=ü", "1-a/of=__HIVE_DEFAULT_PARTITION__/day=2", "1-a/of=%2541")
        assert [cluster_of(Part(name)) for name in names] == ["a/b =", "ü", "", "%41"]

    def test_is_in_the_order_of_its_number_among_other_files(self) -> None:
        names = ["0000000010.json", "0000000009.json", "0000000011.json.new", "notes.json", ".0000000010.json.crc"]
        assert numbers_in(names) == [9, 10]


def make(number: int, *parts: str, by: str = "these") -> Made:
    return Made(by=by, number=number, parts={"raw": tuple(map(Part, parts))})


class TestWhatIsNew:
    BEFORE = make(5, "3-a/of=a/day=1", "5-b/of=a/day=2", "5-b/of=b/day=1")

    def test_is_what_was_written_since(self) -> None:
        now = make(7, "3-a/of=a/day=1", "6-c/of=a/day=2", "5-b/of=b/day=1", "7-d/of=c/day=1")
        assert now.news(self.BEFORE) == {"raw": ("6-c/of=a/day=2", "7-d/of=c/day=1")}

    def test_is_nothing_where_only_the_number_is_another_one(self) -> None:
        assert make(9, *self.BEFORE.parts["raw"]).news(self.BEFORE) == {"raw": ()}

    def test_is_all_of_a_table_that_was_not_there(self) -> None:
        now = Made(by="these", number=6, parts={**self.BEFORE.parts, "found": (Part("6-c/of=a"),)})
        assert now.news(self.BEFORE) == {"raw": (), "found": ("6-c/of=a",)}

    @pytest.mark.parametrize(
        "now",
        [
            make(5, *BEFORE.parts["raw"], by="others"),
            make(4, "3-a/of=a/day=1", "4-x/of=a/day=2", "5-b/of=b/day=1"),
            make(4, "3-a/of=a/day=1", "5-b/of=a/day=2"),
            make(5, "3-a/of=a/day=1", "5-b/of=a/day=2", "5-x/of=b/day=1"),
        ],
        ids=["other definitions", "an older part", "a day that is gone", "another generation of the same number"],
    )
    def test_cannot_be_told_and_all_is_made_anew_with(self, now: Made) -> None:
        assert now.news(self.BEFORE) is None

    def test_cannot_be_told_where_nothing_says_what_was_made(self) -> None:
        assert self.BEFORE.news(NOTHING.made) is None

    def test_is_kept_in_the_file_of_the_generation_that_was_made(self) -> None:
        generation = NOTHING.make_next({"events": OF_JANUARY}, self.BEFORE)
        assert generation_of(generation.text(), "its file") == generation
        assert generation_of('{"number": 3, "parts": {}}', "a file of before").made is None


class TestAWrite:
    def test_has_a_name_of_its_own_at_each_attempt(self) -> None:
        assert new_write(7) != new_write(7)

    def test_is_left_over_when_the_generation_that_it_was_for_is_another_one(self) -> None:
        assert is_left_over(new_write(7), newest=7)

    def test_is_not_while_it_may_become_the_next_one(self) -> None:
        assert not is_left_over(new_write(8), newest=7)

    def test_is_nothing_that_somebody_else_put_there(self) -> None:
        assert not is_left_over("my-notes", newest=7)


class TestTheLockOfWhoChanges:
    def test_names_its_holder_to_the_next(self, tmp_path: Path) -> None:
        with (
            WriterLock(folder=tmp_path).hold(),
            pytest.raises(StoreBusy, match=rf"is being changed by process {os.getpid()} on .* since 20"),
            WriterLock(folder=tmp_path).hold(),
        ):
            pass

    def test_is_held_as_often_as_its_holder_wants(self, tmp_path: Path) -> None:
        lock = WriterLock(folder=tmp_path)
        with lock.hold():
            with lock.hold():
                pass
            with pytest.raises(StoreBusy), WriterLock(folder=tmp_path).hold():
                pass
        with WriterLock(folder=tmp_path).hold():
            pass

    def test_ends_with_its_process_however_that_ends(self, tmp_path: Path) -> None:
        command = [sys.executable, "-c", HOLD, str(tmp_path)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as holder:  # this interpreter
            assert holder.stdout is not None
            assert holder.stdout.readline() == "held\n"
            with pytest.raises(StoreBusy, match=f"process {holder.pid} on"), WriterLock(folder=tmp_path).hold():
                pass
            holder.send_signal(signal.SIGKILL)
        with WriterLock(folder=tmp_path).hold():
            pass

    def test_says_where_it_cannot_be_had(self, tmp_path: Path) -> None:
        (tmp_path / "file").write_text("")
        with (
            pytest.raises(NotWritten, match="cannot be changed: "),
            WriterLock(folder=tmp_path / "file" / "history").hold(),
        ):
            pass


class TestTheLocksOfWhoReads:
    def test_keep_a_file_from_being_removed_until_the_last_has_ended(self, tmp_path: Path) -> None:
        file = tmp_path / "generation"
        file.write_text("")
        with read_lock(file) as is_there, read_lock(file):
            assert is_there
            with removal_lock(file) as is_unread:
                assert not is_unread
        with removal_lock(file) as is_unread:
            assert is_unread

    def test_are_not_to_be_had_of_what_is_gone(self, tmp_path: Path) -> None:
        with read_lock(tmp_path / "generation") as is_there:
            assert not is_there


@pytest.mark.parametrize(
    ("location", "folder"),
    [("/history", Path("/history")), ("history", Path("history")), ("file:///my%20history", Path("/my history"))],
)
def test_a_folder_of_this_machine_can_be_locked(location: str, folder: Path) -> None:
    assert find_local_folder(location) == folder


def test_an_address_of_another_file_system_cannot() -> None:
    assert find_local_folder("s3a://bucket/history") is None
