"""Which generation is the present one, who reads an older one, and the end of those that nobody reads."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from controller_pipeline.generations.folders import Folders
from controller_pipeline.generations.generation import (
    FOLDER,
    NOTHING,
    Generation,
    file_of,
    generation_of,
    is_left_over,
    numbers_in,
    write_of,
)
from controller_pipeline.generations.locks import on_this_machine, read_lock, removal_lock


def newest(folders: Folders) -> Generation:
    """Raises `StoreError`."""
    numbers = numbers_in(folders.names(FOLDER))
    return _generation(folders, numbers[-1]) if numbers else NOTHING


@contextmanager
def being_read(folders: Folders, generation: Generation) -> Iterator[bool]:
    """Keeps a generation while the block runs, where there are locks; false if it is there no more."""
    here = on_this_machine(folders.location)
    if here is None or generation.number == NOTHING.number:
        yield True
        return
    with read_lock(here / generation.file) as is_there:
        yield is_there


def remove_what_is_left_of_others(folders: Folders, present: Generation) -> None:
    """Removes the older generations that nobody reads, what only they have, and what a change that failed has
    written. Where it was interrupted it is done again: a generation's file goes last. Raises `StoreError`."""
    used = set(present.all_parts())
    with ExitStack() as locks:
        old = []
        for number in numbers_in(folders.names(FOLDER)):
            if number < present.number:
                generation = _generation(folders, number)
                if locks.enter_context(_is_unread(folders, generation)):
                    old.append(generation)
                else:
                    used |= generation.all_parts()
        for generation in old:
            for table, part in sorted(generation.all_parts() - used):
                folders.remove(f"{table}/{part}")
            folders.remove(generation.file)
    _remove_unused_writes(folders, present, {(table, write_of(part)) for table, part in used})


def _remove_unused_writes(folders: Folders, present: Generation, used: set[tuple[str, str]]) -> None:
    for table in folders.names(""):
        if table == FOLDER:
            continue
        for write in folders.names(table):
            if (table, write) not in used and is_left_over(write, present.number):
                folders.remove(f"{table}/{write}")


@contextmanager
def _is_unread(folders: Folders, generation: Generation) -> Iterator[bool]:
    here = on_this_machine(folders.location)
    if here is None:
        yield True
        return
    with removal_lock(here / generation.file) as is_unread:
        yield is_unread


def _generation(folders: Folders, number: int) -> Generation:
    file = file_of(number)
    return generation_of(folders.read(file), folders.at(file))
