"""Structured logs on standard error: JSON lines for collectors, or columns for people."""

import logging
import sys
from typing import Final

import orjson
import structlog

LEVELS: Final = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}


def configure_logging(log_format: str, log_level: str = "info") -> None:
    """Log as `json` or for the `console`, from a level of `LEVELS` up. Libraries log the same lines, from warnings up."""
    level = LEVELS[log_level]
    structlog.configure(
        processors=make_processors(log_format),
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.WriteLoggerFactory(file=sys.stderr),
        cache_logger_on_first_use=True,
    )
    of_libraries = logging.StreamHandler(sys.stderr)
    of_libraries.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[structlog.stdlib.add_logger_name],
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *make_processors(log_format)],
        )
    )
    logging.basicConfig(level=max(level, logging.WARNING), handlers=[of_libraries])


def make_processors(log_format: str) -> list[structlog.types.Processor]:
    """Return the processors that turn an event into a line."""
    renderers: dict[str, structlog.types.Processor] = {
        "json": structlog.processors.JSONRenderer(
            serializer=lambda event, **_: orjson.dumps(event, default=str, option=orjson.OPT_NON_STR_KEYS).decode()
        ),
        "console": structlog.dev.ConsoleRenderer(),
    }
    return [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.format_exc_info,
        renderers[log_format],
    ]
