"""All answers at once: which question needs which layer is said here alone."""

from collections.abc import Mapping

from pyspark.sql import DataFrame

from controller_pipeline import schemas
from controller_pipeline.answers.controllers import controllers
from controller_pipeline.answers.intervals.within import Within
from controller_pipeline.answers.isr_flaps import isr_flaps
from controller_pipeline.answers.leadership import leadership
from controller_pipeline.answers.options import Options
from controller_pipeline.answers.outages.availability import availability, downtime_by_cause
from controller_pipeline.answers.outages.detection import led_by_the_dead
from controller_pipeline.answers.outages.exposure import exposure
from controller_pipeline.answers.outages.failovers import failovers
from controller_pipeline.answers.outages.incidents import incidents
from controller_pipeline.answers.outages.rack_availability import rack_availability
from controller_pipeline.answers.outages.unclean_elections import unclean_elections
from controller_pipeline.answers.reassignments import reassignments
from controller_pipeline.schemas import Table


def answer_all(layers: Mapping[Table, DataFrame], options: Options | None = None) -> dict[Table, DataFrame]:
    """Each table of `schemas.ANSWERS`, in that order, from EVENTS, KNOWN_SPANS, PARTITION_INTERVALS and BROKER_INTERVALS.

    Nothing is computed here; most answers read the partitions' intervals, so who wants all of them should keep those.
    """
    options = options or Options()
    events, known_spans = layers[schemas.EVENTS], layers[schemas.KNOWN_SPANS]
    partitions = layers[schemas.PARTITION_INTERVALS]
    found = {
        schemas.INCIDENTS: incidents(partitions, known_spans),
        schemas.FAILOVERS: failovers(partitions, known_spans, events, options),
        schemas.UNCLEAN_ELECTIONS: unclean_elections(partitions),
        schemas.REASSIGNMENTS: reassignments(partitions, options),
        schemas.CONTROLLERS: controllers(known_spans, events),
    }
    found |= answer_by_day({**layers, schemas.INCIDENTS: found[schemas.INCIDENTS]}, options)
    return {table: found[table] for table in schemas.ANSWERS}


def answer_by_day(
    layers: Mapping[Table, DataFrame], options: Options, within: Within | None = None
) -> dict[Table, DataFrame]:
    """The answers that have a row for each day, as `answer_all`, and from INCIDENTS as well.

    `within`: of that part of the history alone, so that the rows of a day which it cuts are of the part of the day."""
    partitions, brokers = layers[schemas.PARTITION_INTERVALS], layers[schemas.BROKER_INTERVALS]
    dead = led_by_the_dead(partitions, layers[schemas.KNOWN_SPANS], layers[schemas.EVENTS], options)
    return {
        schemas.AVAILABILITY: availability(partitions, dead, options, within),
        schemas.DOWNTIME_BY_CAUSE: downtime_by_cause(layers[schemas.INCIDENTS], options, within),
        schemas.RACK_AVAILABILITY: rack_availability(partitions, brokers, within),
        schemas.ISR_FLAPS: isr_flaps(partitions, within),
        schemas.EXPOSURE: exposure(partitions, brokers, within),
        schemas.LEADERSHIP: leadership(partitions, brokers, within),
    }
