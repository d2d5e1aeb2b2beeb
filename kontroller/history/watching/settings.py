"""The settings of a watch."""

from pathlib import Path
from typing import Final

from pydantic import Field, field_validator, model_validator

from controller_core.journal import LINE_BYTES, SEGMENT_BYTES
from controller_core.process.settings import CommonSettings, Several
from kontroller.history.alarms.records import Rules
from kontroller.history.sources.caps import Caps
from kontroller.history.sources.journal_tls import JournalTls, UnusableCertificates
from kontroller.history.sources.journal_tokens import JournalTokens

STANDARD_OUTPUT: Final = "-"
_BOOTSTRAP: Final = r"^[^:/,\s]+:\d{1,5}(,[^:/,\s]+:\d{1,5})*$"
_MICROSECONDS: Final = 1_000_000


class WatchSettings(CommonSettings):
    """The settings, from the command line, then from the environment (`KONTROLLER_*`)."""

    journal: Several[str] = Field(
        default=(), description="Folder of journal files, or a controller's http://HOST:9404/journal."
    )
    journal_token_file: Several[str] = Field(
        default=(),
        description="[URL=]FILE: file with the token for the journal at URL; without URL, for all journals that have no "
        "other token.",
    )
    journal_ca: Path | None = Field(
        default=None,
        description="File with the authorities of https:// journals, as PEM. Default: those of the system.",
    )
    journal_certificate: Path | None = Field(
        default=None, description="File with the certificate to show to https:// journals, as PEM. Default: none."
    )
    journal_key: Path | None = Field(
        default=None,
        description="File with the key of --journal-certificate, as PEM. Default: that file has the key, too.",
    )
    max_line_bytes: int = Field(
        default=LINE_BYTES,
        ge=1 << 10,
        le=1 << 30,
        description="Bytes of a line of a journal. Longer lines are skipped.",
    )
    max_file_bytes: int = Field(
        default=SEGMENT_BYTES,
        ge=1 << 16,
        description="Bytes of a file that a server lists. A journal with a larger one counts as unreadable.",
    )
    topic: str | None = Field(
        default=None,
        pattern=r"^[a-zA-Z0-9._-]{1,249}$",
        description="Kafka topic that controllers write their journals to. Needs --bootstrap-server.",
    )
    bootstrap_server: str | None = Field(
        default=None, pattern=_BOOTSTRAP, description="Brokers of the journal's topic: HOST:PORT[,HOST:PORT...]."
    )
    properties: Path | None = Field(
        default=None,
        description="File with the security settings of the topic's brokers: a server.properties, or a part of it.",
    )
    leaderless_after_seconds: float = Field(
        default=30, ge=0, le=86_400, description="Seconds that a partition may be without a leader."
    )
    under_min_isr_after_seconds: float = Field(
        default=30,
        ge=0,
        le=86_400,
        description="Seconds that a partition may have fewer in-sync replicas than min.insync.replicas.",
    )
    min_insync_replicas: int = Field(
        default=1, ge=1, description="min.insync.replicas of topics for which no record has it."
    )
    journal_alive_interval_seconds: float = Field(
        default=10,
        gt=0,
        le=3600,
        description="Seconds without a record after which the controllers' journals get a heartbeat: their setting.",
    )
    silent_after_seconds: float = Field(
        default=30, gt=0, le=86_400, description="Seconds without any record after which a cluster counts as silent."
    )
    poll_interval_seconds: float = Field(
        default=1, ge=0.05, le=60, description="Seconds between reads of a journal that was read to its end."
    )
    checkpoint: Path | None = Field(
        default=None,
        description="File for the state of the watch, so that a restart neither repeats nor forgets an alarm.",
    )
    output: str = Field(
        default=STANDARD_OUTPUT,
        min_length=1,
        description="File to which alarms are appended as lines of JSON; - for standard output.",
    )
    alertmanager: Several[str] = Field(default=(), description="Alertmanager, such as http://HOST:9093.")
    alertmanager_resend_seconds: float = Field(
        default=60,
        ge=1,
        le=3600,
        description="Seconds between repeated notifications of firing alarms to Alertmanager.",
    )

    @field_validator("journal")
    @classmethod
    def _journals_can_be_read_here(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for place in value:
            if "://" in place and not place.startswith(("http://", "https://")):
                raise ValueError(
                    f"{place} is neither a folder on this machine nor an address such as http://HOST:9404/journal"
                )
        return tuple(dict.fromkeys(value))

    @field_validator("alertmanager")
    @classmethod
    def _alertmanagers_are_addresses(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for url in value:
            if not url.startswith(("http://", "https://")):
                raise ValueError(f"{url} is not an address: give one such as http://alertmanager:9093")
        return tuple(dict.fromkeys(value))

    @model_validator(mode="after")
    def _there_is_something_to_watch(self) -> "WatchSettings":
        if (self.topic is None) != (self.bootstrap_server is None):
            raise ValueError("--topic and --bootstrap-server go together: give both, or neither")
        if not self.journal and self.topic is None:
            raise ValueError(
                "nothing to watch: give --journal FOLDER, --journal http://HOST:9404/journal, or --topic NAME and "
                "--bootstrap-server"
            )
        _ = self.rules, self.tokens
        if self.journal_key is not None and self.journal_certificate is None:
            raise ValueError("--journal-key needs --journal-certificate")
        try:
            self.make_tls().context()
        except UnusableCertificates as error:
            raise ValueError(f"certificates of --journal: {error}") from error
        return self

    @property
    def tokens(self) -> JournalTokens:
        """The tokens for served journals. Raises `ValueError`."""
        return JournalTokens.parse(self.journal_token_file, self.journal)

    def make_tls(self) -> JournalTls:
        """Return the certificates for journals that are served over HTTPS."""
        return JournalTls(authorities=self.journal_ca, certificate=self.journal_certificate, key=self.journal_key)

    @property
    def caps(self) -> Caps:
        """The caps for what journals say."""
        return Caps(line_bytes=self.max_line_bytes, file_bytes=self.max_file_bytes)

    @property
    def rules(self) -> Rules:
        """The conditions of alarms. Raises `ValueError`."""
        return Rules(
            leaderless_after_us=round(self.leaderless_after_seconds * _MICROSECONDS),
            under_min_isr_after_us=round(self.under_min_isr_after_seconds * _MICROSECONDS),
            min_isr=self.min_insync_replicas,
            alive_interval_us=round(self.journal_alive_interval_seconds * _MICROSECONDS),
            silent_after_us=round(self.silent_after_seconds * _MICROSECONDS),
        )
