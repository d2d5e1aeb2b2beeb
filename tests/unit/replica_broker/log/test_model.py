"""After any operations, a log equals a list of batches."""

from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st

from controller_core.model.ids import LeaderEpoch
from replica_broker.log.log import Log
from replica_broker.log.record_batches import Compression, RecordBatch, place_batches, read_batches
from simulation.replicas.disk import SimulatedDisk
from tests.unit.replica_broker.log.batches import NOW_MS, ManualClock, batch
from tests.unit.replica_broker.log.logs import all_bytes, open_log


@dataclass(slots=True)
class Model:
    """A log as a list of batches."""

    start: int = 0
    end: int = 0
    batches: list[bytes] = field(default_factory=list)

    def headers(self) -> list[RecordBatch]:
        return list(read_batches(b"".join(self.batches)))

    def append(self, data: bytes, epoch: LeaderEpoch) -> None:
        written = place_batches(data, self.end, epoch, None)
        for it in read_batches(written):
            self.batches.append(written[it.position : it.end])
            self.end = it.next_offset

    def leave_out(self, offsets: int, data: bytes, epoch: LeaderEpoch) -> bytes:
        self.end += offsets
        self.append(data, epoch)
        return self.batches[-1]

    def cut(self, offset: int) -> None:
        while self.batches and self.headers()[-1].last_offset >= offset:
            self.end = self.headers()[-1].base_offset
            self.batches.pop()
        if self.batches:
            self.end = self.headers()[-1].next_offset
        self.start = min(self.start, self.end)

    def read(self, offset: int, max_bytes: int, below: int) -> bytes:
        found = b""
        for it, data in zip(self.headers(), self.batches, strict=True):
            if it.last_offset < offset:
                continue
            if it.base_offset >= below or (found and len(found) + len(data) > max_bytes):
                break
            found += data
        return found


_values = st.lists(st.integers(0, 60).map(bytes), min_size=1, max_size=3)
_times = st.integers(0, 40)
_steps = st.one_of(
    st.tuples(st.just("append"), _values, _times),
    st.tuples(st.just("append"), _values, _times),
    st.tuples(st.just("follow"), _values, st.integers(0, 5)),
    st.tuples(st.just("cut"), st.floats(0, 1), st.just(0)),
    st.tuples(st.just("anew"), st.integers(0, 50), st.just(0)),
    st.tuples(st.just("epoch"), st.integers(1, 3), st.just(0)),
    st.tuples(st.just("close"), st.just(0), st.just(0)),
    st.tuples(st.just("abandon"), st.just(0), st.just(0)),
    st.tuples(st.just("segment size"), st.sampled_from([300, 400, 4000]), st.just(0)),
)


@given(st.lists(_steps, max_size=18), st.data())
def test_a_log_is_a_list_of_batches(steps: list[tuple[str, object, int]], data: st.DataObject) -> None:
    disk, clock, model, epoch = SimulatedDisk(), ManualClock(), Model(), LeaderEpoch(0)
    log, segment_bytes = open_log(disk, clock), 400
    for kind, what, number in steps:
        if kind == "append":
            assert isinstance(what, list)
            sent = batch(*what, times_ms=[NOW_MS + number] * len(what))
            log.append_as_leader(sent, epoch, NOW_MS)
            model.append(sent, epoch)
        elif kind == "follow":
            assert isinstance(what, list)
            if model.batches or not number:
                log.append_as_follower(model.leave_out(number, batch(*what), epoch))
        elif kind == "cut":
            assert isinstance(what, float)
            offset = model.start + int(what * (model.end + 2 - model.start))
            assert log.truncate_to(offset) == log.log_end_offset
            model.cut(offset)
        elif kind == "anew":
            assert isinstance(what, int)
            log.restart_at(what)
            model = Model(start=what, end=what)
        elif kind == "epoch":
            assert isinstance(what, int)
            epoch = LeaderEpoch(epoch + what)
            log.begin_epoch(epoch)
        elif kind == "segment size":
            assert isinstance(what, int)
            segment_bytes = what
        elif kind in ("close", "abandon"):
            log.close() if kind == "close" else log.abandon()
            log = open_log(disk, clock, is_clean=kind == "close", segment_bytes=segment_bytes)
            epoch = log.latest_epoch or epoch
        assert (log.log_start_offset, log.log_end_offset) == (model.start, model.end)
    _require_same(log, model, data)


def _require_same(log: Log, model: Model, data: st.DataObject) -> None:
    assert all_bytes(log) == b"".join(model.batches)
    assert log.size_bytes == len(all_bytes(log))
    headers = model.headers()
    for _ in range(3):
        offset = data.draw(st.integers(model.start, model.end))
        below = data.draw(st.integers(model.start, model.end))
        max_bytes = data.draw(st.integers(0, 700))
        got, wanted = log.read(offset, max_bytes, below=below), model.read(offset, max_bytes, below)
        assert wanted.startswith(got)
        assert bool(got) == bool(wanted)  # a read ends at the end of its segment
    time_ms = NOW_MS + data.draw(st.integers(-1, 41))
    wanted_offset = next((it.base_offset for it in headers if it.max_timestamp_ms >= time_ms), None)
    found = log.find_offset(time_ms, below=model.end)
    assert (found and found.offset) == wanted_offset
    latest_ms = max((it.max_timestamp_ms for it in headers), default=None)
    latest = log.find_latest_offset(below=model.end)
    assert (latest and latest.timestamp_ms) == latest_ms
    if headers:
        assert latest is not None
        assert latest.offset == next(it.base_offset for it in headers if it.max_timestamp_ms == latest_ms)
    assert all(it.compression is Compression.NONE for it in headers)
    for it in headers:
        assert log.find_epoch_end(it.leader_epoch)[1] > it.last_offset
