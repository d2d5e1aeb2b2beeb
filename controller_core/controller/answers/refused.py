"""The consequences of brokers' refusals of control requests; `loop.answer_meanings` has the table of meanings.

A broker that refuses a request is sent everything again, under a later controller epoch if it knows one. Partitions that
it refuses by themselves are sent under a later leader epoch, because a broker may refuse the same one for ever. A replica
that its broker cannot serve counts as offline. Refused deletions are handled in `answers.answered`, where they are
awaited.
"""

from collections.abc import Collection, Iterator
from typing import Final

import structlog
from kio.schema.errors import ErrorCode

from controller_core.controller.loop.answer_meanings import Meaning, interpret_answer, interpret_partition_error
from controller_core.controller.loop.events import BrokerAnswered, ResendDue
from controller_core.controller.operations import brokers, log_dirs
from controller_core.controller.reassigning import reassignment
from controller_core.controller.state.read_only_state import ReadOnlyState
from controller_core.controller.term import epoch_raise
from controller_core.controller.term.controller_epochs import find_epoch_after_refusal
from controller_core.controller.term.refusals import WHOLE, KnownEpochs, OfEpoch, Refusal
from controller_core.controller.term.rights import Remembers
from controller_core.controller.term.term import Term
from controller_core.controller.znodes.partition_states import raise_partition_epochs
from controller_core.model.ids import BrokerId, LeaderEpoch, PartitionReplica, TopicPartition
from controller_core.wire.codecs.answers import is_all_well
from controller_core.wire.messages import LeaderAndIsrResponse

log = structlog.get_logger()

PATIENCE: Final = 2
"""After this number of refusals in a row another replica leads, if one is in sync and its broker obeys."""
_HIGHEST_LEADER_EPOCH: Final = LeaderEpoch((1 << 31) - (1 << 24))
"""Nothing is raised above this leader epoch, so that raises never use up the numbers of the type, int32."""


async def on_broker_answered(term: Term, answered: BrokerAnswered) -> None:
    """Record if a registered broker obeyed the request as a whole, and handle its refusal."""
    known = term.state.brokers.get(answered.broker)
    if known is None or known.epoch != answered.broker_epoch:
        return
    error = answered.response.error_code
    meaning = interpret_answer(type(answered.request), error)
    if meaning is Meaning.OBEYED:
        _note_obedience(term, answered)
        return
    request = type(answered.request).__name__
    term.counts.count_refusal(request, error.name, meaning)
    log.error(
        "broker refused a control request", broker=known.id, request=request, error=error.name, meaning=meaning.value
    )
    if meaning is Meaning.DELETE_AT_START:
        _note_obedience(term, answered)  # deletions that failed are awaited elsewhere
        return
    if meaning is Meaning.RAISE_EPOCH and await _raise_epoch(term, answered):
        return
    refused: list[TopicPartition] = []
    if isinstance(answered.response, LeaderAndIsrResponse):
        refused = [partition for partition, _ in _answers(term.state, answered.broker, answered.response)]
    reason, is_urgent = _reason(answered, error.name), meaning is Meaning.SEND_AGAIN
    refusal = brokers.send_everything_later(term, known.id, known.epoch, reason, (WHOLE, *refused), is_urgent=is_urgent)
    if refused:
        if error is ErrorCode.not_leader_or_follower:
            _refuse_epochs(term.state, refusal, refused)
        await _give_up_leaderships(term, answered, refused)


def _refuse_epochs(state: ReadOnlyState, refusal: Refusal, partitions: Collection[TopicPartition]) -> None:
    """Record that a broker may refuse the present leader epochs for ever.

    That of a partition is raised after the first such refusal in a row, the second, the fourth and so on.
    """
    refusal.count(map(OfEpoch, partitions))
    for partition in partitions:
        if refusal.in_a_row[OfEpoch(partition)].bit_count() == 1 and partition in state.states:
            refusal.epochs.setdefault(partition, KnownEpochs(state.states[partition].leader_and_isr.leader_epoch))


async def on_leader_and_isr_answered(term: Term, answered: BrokerAnswered, response: LeaderAndIsrResponse) -> None:
    """Record which replicas of a broker are offline, and act on changes."""
    broker = term.state.brokers.get(answered.broker)
    if broker is None or broker.epoch != answered.broker_epoch or response.error_code is not ErrorCode.none:
        return
    offline = term.state.failed_replicas.get(broker.id, frozenset())
    if not offline and is_all_well(response):
        return
    failed: list[TopicPartition] = []
    repaired: list[TopicPartition] = []
    refused: list[TopicPartition] = []
    for partition, error in _answers(term.state, broker.id, response):
        meaning = report_partition(term, answered, partition, error)
        if meaning is Meaning.OBEYED and partition in offline:
            repaired.append(partition)
        elif meaning is Meaning.REPLICA_OFFLINE and partition not in offline:
            failed.append(partition)
        if meaning is Meaning.TELL_PERSON:
            reason = _reason(answered, f"{error.name} of {partition}")
            refusal = brokers.send_everything_later(term, broker.id, broker.epoch, reason, (partition,))
            _refuse_epochs(term.state, refusal, (partition,))
            refused.append(partition)
        elif error is ErrorCode.unknown_server_error:
            brokers.send_everything_later(term, broker.id, broker.epoch, _reason(answered, error.name))
    if repaired:
        await log_dirs.on_replicas_become_online(term, broker.id, repaired)
    if failed:
        await log_dirs.on_replicas_become_offline(term, broker.id, failed)
    if refused:
        await _give_up_leaderships(term, answered, refused)


def report_partition(term: Remembers, answered: BrokerAnswered, partition: TopicPartition, error: ErrorCode) -> Meaning:
    """Log and count the error of one partition, unless the broker obeyed. Return the meaning of the error."""
    meaning = interpret_partition_error(type(answered.request), error)
    if meaning is not Meaning.OBEYED:
        request = type(answered.request).__name__
        term.counts.count_refusal(request, error.name, meaning)
        log.error(
            "broker could not apply a partition's state",
            broker=answered.broker,
            request=request,
            topic=partition.topic,
            partition=partition.partition,
            error=error.name,
            meaning=meaning.value,
        )
    return meaning


async def on_resend_due(term: Term, due: ResendDue) -> None:
    """Send a broker everything again, if it is still the one that refused."""
    refusal, known = term.refusals.find(due.broker, due.broker_epoch), term.state.brokers.get(due.broker)
    if refusal is None or known is None or known.epoch != due.broker_epoch:
        return
    refusal.sent_again_under = term.identity.epoch
    epochs, refusal.epochs = refusal.epochs, {}
    # A broker that is shutting down is sent no leaderships, so their epochs need not be raised.
    if known.id not in term.state.shutting_down:
        present = [
            partition
            for partition, known_epochs in epochs.items()
            if term.state.has(partition)
            and not term.state.is_being_deleted(partition.topic)
            and known_epochs.leader_epoch < _HIGHEST_LEADER_EPOCH
        ]
        # Brokers ignore a later leader epoch with an earlier partition epoch than their own, and report no error.
        too_far = await raise_partition_epochs(
            term,
            {partition: later for partition in present if (later := epochs[partition].partition_epoch) is not None},
        )
        if present := [partition for partition in present if partition not in too_far]:
            log.warning("leader epochs raised", broker=known.id, partitions=list(map(str, present))[:20])
            await reassignment.announce(term, present, {each: epochs[each].leader_epoch for each in present})
    await brokers.send_everything(term, {known.id: known})


def _note_obedience(term: Remembers, answered: BrokerAnswered) -> None:
    refusal = term.refusals.find(answered.broker, answered.broker_epoch)
    # Only the answer to the last request proves obedience: earlier ones were sent before everything was sent again.
    if refusal is not None and refusal.sent_again_under is not None and answered.is_last:
        log.info("broker obeys again", broker=answered.broker)
        term.refusals.end(answered.broker)


async def _raise_epoch(term: Term, answered: BrokerAnswered) -> bool:
    """Raise the controller epoch above the refused one, and send the broker everything under the present one.

    Return False if the epoch must not be raised further. Raises `Fenced` if the brokers refuse this process because
    another one has the role.
    """
    broker, broker_epoch = answered.broker, answered.broker_epoch
    refused, error = answered.request.controller_epoch, answered.response.error_code.name
    if refused >= term.identity.epoch:
        epoch = find_epoch_after_refusal(refused, term.refusals.epoch_raises)
        if epoch is None:
            return False
        term.refusals.note_epoch_raise()
        await epoch_raise.raise_epoch(term, epoch, reason=f"broker {broker} knows a later one than {refused}")
        await term.journal.begin_term()
    known = term.refusals.find(broker, broker_epoch)
    if known is None or known.sent_again_under != term.identity.epoch:
        term.refusals.add(broker, broker_epoch, _reason(answered, error))
        await on_resend_due(term, ResendDue(broker, broker_epoch))
    return True


async def _give_up_leaderships(term: Term, answered: BrokerAnswered, refused: Collection[TopicPartition]) -> None:
    """Move the leaderships that a broker keeps refusing to other replicas that are in sync and whose brokers obey.

    If all brokers refuse, each partition keeps its leader and its ISR, because another leader would be no better. A
    broker that refuses other partitions by themselves obeys for this one.
    """
    broker, brokers = answered.broker, term.state.brokers
    refusal = term.refusals.find(broker, answered.broker_epoch)
    if refusal is None:
        return
    is_whole = answered.response.error_code is not ErrorCode.none
    standing = set(term.refusals.find_standing(brokers))

    def is_replaceable(partition: TopicPartition) -> bool:
        if refusal.in_a_row.get(WHOLE if is_whole else partition, 0) < PATIENCE:
            return False
        disobedient = standing if is_whole else term.refusals.find_refusing(partition, brokers)
        others = term.state.find_live_replicas(partition) - disobedient - {broker}
        return not others.isdisjoint(term.state.states[partition].leader_and_isr.isr)

    replaceable = [partition for partition in term.state.find_led_by(refused, {broker}) if is_replaceable(partition)]
    if replaceable:
        await log_dirs.on_replicas_become_offline(term, broker, replaceable)


def _reason(answered: BrokerAnswered, error: str) -> str:
    return f"{type(answered.request).__name__.removesuffix('Request')}: {error}"


def _answers(
    state: ReadOnlyState, broker: BrokerId, response: LeaderAndIsrResponse
) -> Iterator[tuple[TopicPartition, ErrorCode]]:
    """Yield the broker's answer for each of its replicas, except for replicas that it no longer has."""
    for topic in response.topics:
        name = state.find_topic_name(topic.topic_id) if topic.topic_id else None
        if name is None:
            continue
        for answer in topic.partition_errors:
            partition = TopicPartition(name, answer.partition_index)
            if PartitionReplica(partition, broker) in state.replica_status:
                yield partition, answer.error_code
