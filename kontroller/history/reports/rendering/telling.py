"""The story of an episode: "Broker 3 was lost at 02:13:04; 4 partitions had no leader for 3 min, until it was back."

There is a sentence for each cause, in the order of the records. "Lost" means that a broker's registration ended; the
history does not record if the broker died or was cut off. The lost brokers are named if they are the cause.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from kontroller.history.reports import words
from kontroller.history.reports.facts import seconds
from kontroller.history.reports.period import SECOND
from kontroller.history.reports.rendering.causes import OF_LOST_BROKERS, UNSEEN, describe_cause
from kontroller.history.reports.stories import Outage, Story

RETURNS = frozenset({"broker_started", "broker_restarted"})
MOST_TIMES = 3
MOST_NAMED = 6
"""The brokers whose absence a sentence names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class At:
    """A time of day in a sentence."""

    at_us: int


Piece = str | At


def tell_story(story: Story, incidents: int) -> tuple[Piece, ...]:
    """Return the story of an episode. `incidents`: the number of all its incidents; those without a sentence are
    counted.

    Names are not escaped."""
    outages = sorted(story.outages, key=lambda one: (_first_of(story.outages, one.cause), one.cause, one.began_us))
    pieces: list[Piece] = []
    for cause, its in groupby(outages, key=lambda one: one.cause):
        pieces += [*_sentence(cause, list(its), story), " "]
    rest = incidents - sum(one.incidents for one in story.outages)
    if rest > 0 and outages:
        pieces.append(f"{rest:,} more {'incident is' if rest == 1 else 'incidents are'} not described here. ")
    if story.unclean:
        pieces.append(_unclean(story))
    if story.is_inferred:
        pieces.append("The causes are guesses of a recorder, which only observes. ")
    return tuple(pieces)


def _unclean(story: Story) -> str:
    where = _where(story.unclean, story.unclean_where)
    if any(one.is_unclean for one in story.outages):
        return f"Data of {where.removesuffix(',')} may be lost. "
    return f"{where} got a leader that was not in sync: data may be lost. "


def plain(pieces: Sequence[Piece]) -> str:
    """Return the text without markup, with times in UTC."""
    return "".join(piece if isinstance(piece, str) else clock(piece) for piece in pieces).strip()


def clock(at: At) -> str:
    return words.clock(at.at_us, SECOND)


def _first_of(outages: Sequence[Outage], cause: str) -> int:
    return min(one.began_us for one in outages if one.cause == cause)


def _sentence(cause: str, outages: Sequence[Outage], story: Story) -> list[Piece]:
    pieces = _begin_sentence(cause, outages, story)
    for one in outages:
        pieces.append(f"; {_effect(one, story)}")
    return [*pieces, "."]


def _begin_sentence(cause: str, outages: Sequence[Outage], story: Story) -> list[Piece]:
    first = At(at_us=min(one.began_us for one in outages))
    if cause in OF_LOST_BROKERS and story.losses:
        return _describe_losses(story)
    return [
        _capitalize(describe_cause(cause)),
        _name_clients(outages),
        ", seen at " if cause in UNSEEN else " at ",
        first,
    ]


def _name_clients(outages: Sequence[Outage]) -> str:
    clients = sorted({one.asked_by for one in outages if one.asked_by})
    others = " and others" if len(clients) > 1 else ""
    return f" by {words.visible(clients[0])}{others}" if clients else ""


def _describe_losses(story: Story) -> list[Piece]:
    """Name the lost brokers, each with its time if they are few."""
    losses = story.losses
    if len(losses) == story.losses_total <= MOST_TIMES:
        pieces: list[Piece] = [f"Broker {losses[0].broker} was lost at ", At(at_us=losses[0].at_us)]
        for loss in losses[1:]:
            pieces += [f"{' and' if loss is losses[-1] else ','} broker {loss.broker} at ", At(at_us=loss.at_us)]
        return pieces
    names = [str(broker) for broker in dict.fromkeys(loss.broker for loss in losses)]
    who = f"{', '.join(names)} and others" if story.losses_total > len(losses) else words.join_words(names)
    times = f"{story.losses_total:,} times in total" if story.losses_total > len(names) else ""
    return [f"Brokers {who} were lost, {times}{', ' if times else ''}from ", At(at_us=losses[0].at_us), " on"]


def _effect(one: Outage, story: Story) -> str:
    state = "had no leader" if one.problem == "leaderless" else "were under min ISR"
    state = state.replace("were", "was") if one.partitions == 1 else state
    why, ending = _say_why(one, story), _describe_ending(one, story)
    return f"{_where(one.partitions, one.where)} {state} {_how_long(one)}{why}{ending}"


def _say_why(one: Outage, story: Story) -> str:
    """Return the brokers that were missing, except lost ones that the sentence begins with."""
    told = {loss.broker for loss in story.losses} if one.cause in OF_LOST_BROKERS else set()
    gone = [broker for broker in one.gone if broker not in told]
    said = [f"{_name_brokers(gone)} gone"] if gone else []
    if one.out_of_sync:
        said.append(f"{_name_brokers(one.out_of_sync)} out of sync but registered (slow, hung or cut off)")
    return f", while {words.join_words(said)}" if said else ""


def _name_brokers(brokers: Sequence[int]) -> str:
    if len(brokers) > MOST_NAMED:
        return f"{len(brokers):,} brokers were"
    names = words.join_words([str(broker) for broker in brokers])
    return f"broker {names} was" if len(brokers) == 1 else f"brokers {names} were"


def _where(partitions: int, where: str) -> str:
    where = words.visible(where)
    return where if partitions == 1 else f"{words.format_count(partitions, 'partition')}, {where},"


def _how_long(one: Outage) -> str:
    if one.longest_us <= 0:
        return "for a moment"
    return f"for {'up to ' if one.incidents > 1 else ''}{words.duration(seconds(one.longest_us))}"


def _describe_ending(one: Outage, story: Story) -> str:
    match one.ending:
        case "history":
            return ", and this had not changed when the history ended"
        case "period":
            return ", and this had not changed when the period ended"
        case "unknown":
            return "; what followed is unknown"
        case "change":
            return f", until {_describe_change(one, story)}"


def _describe_change(one: Outage, story: Story) -> str:
    leaders = words.join_words([str(broker) for broker in one.led_by])
    whose, were = (f"broker {leaders}", "was") if len(one.led_by) == 1 else (f"brokers {leaders}", "were")
    if one.is_unclean and leaders:
        return f"{whose}, which {were} not in sync, {were} elected"
    lost = {loss.broker for loss in story.losses if loss.at_us < one.ended_us}
    if leaders and one.ended_by in RETURNS and lost >= set(one.led_by):
        return f"{whose} {were} back"
    return describe_cause(one.ended_by)


def _capitalize(text: str) -> str:
    return text[:1].upper() + text[1:]
