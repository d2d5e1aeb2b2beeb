"""All answers at once: which question needs which layer is said here alone."""

from collections.abc import Mapping

from pyspark.sql import DataFrame

from controller_pipeline import schemas
from controller_pipeline.answers.controllers import controllers
from controller_pipeline.answers.isr_flaps import isr_flaps
from controller_pipeline.answers.leadership import leadership
from controller_pipeline.answers.options import Options
from controller_pipeline.answers.outages.availability import availability, downtime_by_cause
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
    partitions, brokers = layers[schemas.PARTITION_INTERVALS], layers[schemas.BROKER_INTERVALS]
    all_incidents = incidents(partitions, known_spans)
    return {
        schemas.AVAILABILITY: availability(partitions, options),
        schemas.DOWNTIME_BY_CAUSE: downtime_by_cause(all_incidents, options),
        schemas.RACK_AVAILABILITY: rack_availability(partitions, brokers),
        schemas.INCIDENTS: all_incidents,
        schemas.FAILOVERS: failovers(partitions, known_spans, events),
        schemas.ISR_FLAPS: isr_flaps(partitions),
        schemas.EXPOSURE: exposure(partitions, brokers),
        schemas.UNCLEAN_ELECTIONS: unclean_elections(partitions),
        schemas.LEADERSHIP: leadership(partitions, brokers),
        schemas.REASSIGNMENTS: reassignments(partitions, options),
        schemas.CONTROLLERS: controllers(known_spans, events),
    }
