"""The connection that loses its place when there are too many."""

from collections.abc import Callable
from functools import partial

from controller_core.process.http_access.places import Place, Places


class Connections:
    """Connections that have taken places, and the names of those that have lost theirs."""

    def __init__(self, *, most: int, most_of_an_address: int) -> None:
        self.places = Places(most=most, most_of_an_address=most_of_an_address)
        self.lost: list[str] = []

    def take(self, address: str, name: str, *, is_known: bool = False) -> Place:
        place = Place(address, self._note_loss(name), is_known=is_known)
        self.places.take(place)
        return place

    def _note_loss(self, name: str) -> Callable[[], None]:
        return partial(self.lost.append, name)


def test_an_address_with_too_many_loses_the_one_without_progress_for_the_longest_time() -> None:
    connections = Connections(most=100, most_of_an_address=2)
    first = connections.take("10.0.0.1", "first")
    connections.take("10.0.0.2", "other address")
    connections.take("10.0.0.1", "second")
    connections.places.note_progress(first)
    connections.take("10.0.0.1", "third")
    assert connections.lost == ["second"]
    assert connections.places.count == 3


def test_when_all_places_are_taken_the_address_with_the_most_loses_one() -> None:
    connections = Connections(most=4, most_of_an_address=3)
    connections.take("10.0.0.1", "probe")
    for number in range(3):
        connections.take("10.0.0.2", f"stranger {number}")
    connections.take("10.0.0.3", "another")
    assert connections.lost == ["stranger 0"]


def test_readers_who_have_shown_who_they_are_lose_their_places_last() -> None:
    connections = Connections(most=3, most_of_an_address=3)
    for number in range(2):
        connections.take("10.0.0.1", f"reader {number}", is_known=True)
    connections.take("10.0.0.2", "stranger")
    connections.take("10.0.0.3", "another")
    assert connections.lost == ["stranger"]
    connections.take("10.0.0.1", "reader 2", is_known=True)
    connections.take("10.0.0.1", "reader 3", is_known=True)
    assert connections.lost == ["stranger", "another", "reader 0"]


def test_a_place_is_given_back_once() -> None:
    connections = Connections(most=1, most_of_an_address=1)
    first = connections.take("10.0.0.1", "first")
    connections.places.give_back(first)
    connections.places.note_progress(first)
    connections.take("10.0.0.1", "second")
    connections.places.give_back(first)
    assert (connections.lost, connections.places.count) == ([], 1)
