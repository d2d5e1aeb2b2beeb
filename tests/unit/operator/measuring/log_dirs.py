"""Answers of brokers about their log directories."""

from kio.schema.describe_log_dirs.v4 import DescribeLogDirsResponse
from kio.schema.describe_log_dirs.v4.response import DescribeLogDirsResult
from kio.schema.errors import ErrorCode
from kio.static.primitive import i64

from controller_core.wire.messages import NO_THROTTLE


def directory(path: str, total: int, usable: int, code: ErrorCode = ErrorCode.none) -> DescribeLogDirsResult:
    return DescribeLogDirsResult(
        error_code=code, log_dir=path, topics=(), total_bytes=i64(total), usable_bytes=i64(usable)
    )


def make_failed(path: str) -> DescribeLogDirsResult:
    return directory(path, -1, -1, ErrorCode.kafka_storage_error)


def make_response(*directories: DescribeLogDirsResult) -> DescribeLogDirsResponse:
    return DescribeLogDirsResponse(throttle_time=NO_THROTTLE, error_code=ErrorCode.none, results=directories)
