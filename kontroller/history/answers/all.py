"""All answers at once. Only this module knows the layers that each answer needs."""

from collections.abc import Mapping

from pyspark.sql import DataFrame

from kontroller.history import schemas
from kontroller.history.answers.controllers import controllers
from kontroller.history.answers.intervals.within import Within
from kontroller.history.answers.isr_flaps import isr_flaps
from kontroller.history.answers.leadership import leadership
from kontroller.history.answers.options import Options
from kontroller.history.answers.outages.availability import availability, downtime_by_cause
from kontroller.history.answers.outages.detection import find_dead_leaderships
from kontroller.history.answers.outages.exposure import exposure
from kontroller.history.answers.outages.failovers import failovers
from kontroller.history.answers.outages.incidents import incidents
from kontroller.history.answers.outages.rack_availability import rack_availability
from kontroller.history.answers.outages.unclean_elections import unclean_elections
from kontroller.history.answers.reassignments import reassignments
from kontroller.history.answers.requests import requests
from kontroller.history.schemas import Table


def answer_all(layers: Mapping[Table, DataFrame], options: Options | None = None) -> dict[Table, DataFrame]:
    """Return each table of `schemas.ANSWERS` in that order, from EVENTS, KNOWN_SPANS, PARTITION_INTERVALS and
    BROKER_INTERVALS.

    Nothing is computed here. Most answers read the partitions' intervals, so cache them if you need all answers.
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
        schemas.REQUESTS: requests(events, known_spans),
    }
    found |= answer_by_day({**layers, schemas.INCIDENTS: found[schemas.INCIDENTS]}, options)
    return {table: found[table] for table in schemas.ANSWERS}


def answer_by_day(
    layers: Mapping[Table, DataFrame], options: Options, within: Within | None = None
) -> dict[Table, DataFrame]:
    """Return the answers with a row for each day, from the layers of `answer_all` and INCIDENTS.

    `within`: restrict the answers to that part of the history, so that the rows of a cut day cover only its part."""
    partitions, brokers = layers[schemas.PARTITION_INTERVALS], layers[schemas.BROKER_INTERVALS]
    dead = find_dead_leaderships(partitions, layers[schemas.KNOWN_SPANS], layers[schemas.EVENTS], options)
    return {
        schemas.AVAILABILITY: availability(partitions, dead, options, within),
        schemas.DOWNTIME_BY_CAUSE: downtime_by_cause(layers[schemas.INCIDENTS], options, within),
        schemas.RACK_AVAILABILITY: rack_availability(partitions, brokers, within),
        schemas.ISR_FLAPS: isr_flaps(partitions, within),
        schemas.EXPOSURE: exposure(partitions, brokers, within),
        schemas.LEADERSHIP: leadership(partitions, brokers, within),
    }
