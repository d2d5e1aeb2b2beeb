"""The sentences about an episode tell the records, and no more."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from controller_core.journal import inference
from kontroller.history.reports.period import DAY, MINUTE, SECOND
from kontroller.history.reports.rendering.causes import SAID, describe_cause
from kontroller.history.reports.rendering.telling import At, plain, tell_story
from kontroller.history.reports.stories import Ending, Loss, Outage, Story
from kontroller.history.sources import log_lines
from tests.unit.reports.facts import outage

ROOT = Path(__file__).resolve().parents[3]
BEGAN = 20_000 * DAY + 133 * MINUTE
LOST = Loss(broker=3, at_us=BEGAN - 80_000)


def list_documented() -> set[str]:
    """The causes of docs/journal.md: those of controllers, of requests, and those that recorders guess."""
    text = (ROOT / "docs" / "journal.md").read_text()
    causes, guessed = (re.split(r"\n#+ ", text.split(f"# {name}\n")[1])[0] for name in ("Causes", "Guessed causes"))
    rows = [line.split("|")[1] for part in (causes, guessed) for line in part.splitlines() if line.startswith("| `")]
    requests = causes.split("A request that the controller answers")[1]
    return set(re.findall(r"`(\w+)`", " ".join([*rows, requests])))


CAUSES = sorted(
    {*list_documented(), *log_lines.CAUSES.values()}
    | {value for name, value in vars(inference).items() if name.isupper() and isinstance(value, str)}
)


def sentence(*outages: Outage, losses: tuple[Loss, ...] = (), more: int = 0, unclean: int = 0, where: str = "") -> str:
    story = Story(losses=losses, losses_total=len(losses), outages=outages, unclean=unclean, unclean_where=where)
    return plain(tell_story(story, sum(one.incidents for one in outages) + more))


def test_the_causes_are_found() -> None:
    assert len(CAUSES) > 40
    assert {"broker_failed", "unobserved", "elect_leaders", "describe_configs", "journal_due"} <= set(CAUSES)


@pytest.mark.parametrize("cause", CAUSES)
def test_every_cause_that_is_ever_recorded_has_words(cause: str) -> None:
    assert cause in SAID
    began = sentence(outage(cause=cause, began_us=BEGAN, ended_by="balance_due"))
    assert re.fullmatch(r"[A-Z][^;]* at 02:13:00; orders-3 had no leader for 3 min 12 s, until [^;]*\.", began)
    ended = sentence(outage(cause="balance_due", began_us=BEGAN, ended_by=cause))
    assert ended.endswith(f", until {describe_cause(cause)}.")


def test_a_broker_that_died_and_came_back_is_named() -> None:
    waited = outage(cause="broker_failed", began_us=BEGAN, partitions=4, where="orders (4)", led_by=(3,))
    assert sentence(waited, losses=(LOST,)) == (
        "Broker 3 was lost at 02:12:59; 4 partitions, orders (4), had no leader for up to 3 min 12 s, "
        "until broker 3 was back."
    )


def test_another_broker_that_led_next_is_not_called_back() -> None:
    other = outage(cause="broker_failed", began_us=BEGAN, led_by=(5,))
    assert sentence(other, losses=(LOST,)).endswith("until a broker started.")
    later = Loss(broker=5, at_us=BEGAN + DAY)
    assert sentence(other, losses=(LOST, later)).endswith("until a broker started.")


def test_an_unclean_election_says_who_was_elected_and_that_data_may_be_lost() -> None:
    unclean = outage(cause="broker_failed", began_us=BEGAN, led_by=(6,), is_unclean=True)
    assert sentence(unclean, losses=(LOST,), unclean=1, where="orders-3") == (
        "Broker 3 was lost at 02:12:59; orders-3 had no leader for 3 min 12 s, until broker 6, which was not in sync, was "
        "elected. Data of orders-3 may be lost."
    )
    assert sentence(unclean=2, where="orders (2)") == (
        "2 partitions, orders (2), got a leader that was not in sync: data may be lost."
    )


def test_losses_that_were_not_the_cause_are_not_told_as_one() -> None:
    moved = outage(cause="alter_partition", began_us=BEGAN, problem="under_min_isr", ended_by="alter_partition")
    assert sentence(moved, losses=(LOST,)) == (
        "Leaders changed their ISRs at 02:13:00; orders-3 was under min ISR for 3 min 12 s, "
        "until leaders changed their ISRs."
    )


@pytest.mark.parametrize(
    ("ending", "words"),
    [
        ("history", "and this had not changed when the history ended."),
        ("period", "and this had not changed when the period ended."),
        ("unknown", "what followed is unknown."),
    ],
)
def test_what_did_not_end_in_what_is_known_is_said_to_go_on(ending: Ending, words: str) -> None:
    assert sentence(outage(cause="broker_failed", began_us=BEGAN, ending=ending, ended_by="")).endswith(words)


def test_each_cause_is_a_sentence_in_the_order_of_time() -> None:
    first = outage(cause="broker_failed", began_us=BEGAN, problem="under_min_isr", where="payments-1")
    second = outage(cause="broker_failed", began_us=BEGAN + MINUTE, where="orders-3")
    third = outage(
        cause="topic_deletions_requested", began_us=BEGAN + 30 * SECOND, longest_us=0, ended_by="topic_deleted"
    )
    text = sentence(third, second, first, losses=(LOST,), more=2)
    assert text.count(". ") == 2
    assert text.index("payments-1") < text.index("had no leader") < text.index("Topics were being deleted at 02:13:30")
    assert "for a moment, until the topic was deleted" in text
    assert text.endswith("2 more incidents are not described here.")


def test_two_losses_are_told_with_their_times_and_many_without() -> None:
    lost = outage(cause="broker_failed", began_us=BEGAN)
    two = (LOST, Loss(broker=5, at_us=BEGAN + SECOND))
    assert sentence(lost, losses=two).startswith("Broker 3 was lost at 02:12:59 and broker 5 at 02:13:01; ")
    many = tuple(Loss(broker=broker, at_us=BEGAN + broker * MINUTE) for broker in range(1, 7))
    assert sentence(lost, losses=many).startswith("Brokers 1, 2, 3, 4, 5 and 6 were lost, from 02:14:00 on; ")
    some = Story(losses=many, losses_total=40, outages=(lost,))
    assert plain(tell_story(some, 1)).startswith(
        "Brokers 1, 2, 3, 4, 5, 6 and others were lost, 40 times in total, from 02:14:00 on"
    )


def test_a_cause_of_a_later_version_is_named_and_times_are_apart_from_text() -> None:
    pieces = tell_story(Story(outages=(outage(cause="quorum_moved\u202e", began_us=BEGAN),)), 1)
    assert pieces[0] == "The controller handled quorum_moved\ufffd"
    assert At(at_us=BEGAN) in pieces


def test_the_client_who_asked_for_a_change_is_named() -> None:
    moved = outage(cause="alter_partition_reassignments", began_us=BEGAN, asked_by="User:alice from 10.0.0.7")
    assert sentence(moved).startswith("Reassignments were requested by User:alice from 10.0.0.7 at 02:13:00; ")
    others = outage(cause="alter_partition_reassignments", began_us=BEGAN, asked_by="User:\u202ebob")
    assert sentence(moved, others).startswith("Reassignments were requested by User:alice from 10.0.0.7 and others at")


def test_a_broker_that_hung_while_it_was_registered_is_named_as_the_reason() -> None:
    hung = outage(cause="alter_partition", began_us=BEGAN, problem="under_min_isr", ended_by="alter_partition")
    assert sentence(replace(hung, out_of_sync=(5,))) == (
        "Leaders changed their ISRs at 02:13:00; orders-3 was under min ISR for 3 min 12 s, while broker 5 was out of sync "
        "but registered (slow, hung or cut off), until leaders changed their ISRs."
    )
    both = sentence(replace(hung, out_of_sync=(5, 6), gone=(3,)))
    assert ", while broker 3 was gone and brokers 5 and 6 were out of sync but registered" in both
    assert "while 7 brokers were gone" in sentence(replace(hung, gone=tuple(range(7))))


def test_a_lost_broker_that_the_sentence_begins_with_is_not_named_twice() -> None:
    lost = replace(outage(cause="broker_failed", began_us=BEGAN, led_by=(3,)), gone=(3,))
    assert "gone" not in sentence(lost, losses=(LOST,))
    assert "while broker 4 was gone" in sentence(replace(lost, gone=(3, 4)), losses=(LOST,))
    moved = replace(lost, cause="topic_modified")
    assert "while broker 3 was gone" in sentence(moved, losses=(LOST,))


def test_guessed_causes_are_called_guesses() -> None:
    story = Story(outages=(outage(cause="broker_failed", began_us=BEGAN),), is_inferred=True)
    assert "guesses of a recorder" in plain(tell_story(story, 1))
    assert plain(tell_story(Story(), 0)) == ""
