"""The seam to Hadoop's file systems, which are what Spark writes to: local ones, HDFS, object stores.

Hadoop says with a false result, not an exception, that it did not delete or rename something, and tells errors as Java's.
Here every result is looked at, and each error is `NotWritten`, with what to change.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

from py4j.java_gateway import is_instance_of
from py4j.protocol import Py4JJavaError
from pyspark import SparkContext
from pyspark.sql import SparkSession

from kontroller.history.generations.errors import NotWritten

_ADVICE: Final = (
    "Nothing that was kept is lost. See whether this user may write there, whether there is room, and whether anything "
    "else holds it; then run the command again"
)
_UNREAD: Final = "FAILED_READ_FILE"
"""What Spark says of a file that it reads, also while it writes another."""


@dataclass(frozen=True, slots=True, kw_only=True)
class File:
    """`name`: below the folder that it was looked for in. `changed_ms`: when, since 1970."""

    name: str
    size_bytes: int
    changed_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Folders:
    """What is below `location`, a path or URI. Names are relative to it. All raise `NotWritten`."""

    spark: SparkSession
    location: str

    def at(self, name: str) -> str:
        return f"{self.location.rstrip('/')}/{name}"

    def names(self, folder: str) -> list[str]:
        """What is in a folder; nothing, where there is none."""
        with told(f"{self.at(folder)} cannot be listed"):
            path, files = self._found(folder)
            return [status.getPath().getName() for status in files.listStatus(path)] if files.exists(path) else []

    def clusters(self, folder: str) -> list[str]:
        """The folders of clusters that a divided write has made, as `of=CLUSTER`."""
        return [name for name in self.names(folder) if name.startswith("of=")]

    def days(self, folder: str) -> list[str]:
        """Those of clusters and days, as `of=CLUSTER/day=DAY`."""
        return [f"{cluster}/{day}" for cluster in self.clusters(folder) for day in self.names(f"{folder}/{cluster}")]

    def files(self, folder: str, part: str) -> list[File]:
        """The files of data in a part of a folder, named as below the folder; none, where it is not there."""
        with told(f"{self.at(folder)}/{part} cannot be listed"):
            path, files = self._found(f"{folder}/{part}")
            if not files.exists(path):
                return []
            above = len(files.makeQualified(path).toUri().getPath()) - len(part)
            each = files.listFiles(path, True)
            found = []
            while each.hasNext():
                status = each.next()
                name = status.getPath().toUri().getPath()[above:]
                found.append(File(name=name, size_bytes=status.getLen(), changed_ms=status.getModificationTime()))
        return sorted((file for file in found if _is_data(file.name)), key=lambda file: file.name)

    def read(self, name: str) -> str:
        return self.read_bytes(name).decode()

    def read_bytes(self, name: str) -> bytes:
        with told(f"{self.at(name)} cannot be read"):
            path, files = self._found(name)
            stream = files.open(path)
            try:
                return bytes(self._jvm.org.apache.commons.io.IOUtils.toByteArray(stream))
            finally:
                stream.close()

    def exists(self, name: str) -> bool:
        with told(f"{self.at(name)} cannot be read"):
            path, files = self._found(name)
            return bool(files.exists(path))

    def create(self, name: str, content: str | bytes) -> bool:
        """Makes a file, as a whole or not at all; false where there is one of that name. Of two that make it at once one
        succeeds on HDFS, and on local file systems; an object store does not promise that."""
        with told(f"{self.at(name)} cannot be written"):
            path, files = self._found(name)
            written, _ = self._found(f"{name}.new")
            stream = files.create(written, True)
            try:
                stream.write(bytearray(content.encode() if isinstance(content, str) else content))
            finally:
                stream.close()
            if files.exists(path) or not files.rename(written, path):
                files.delete(written, False)
                if files.exists(path):
                    return False
                raise NotWritten(f"{self.at(name)} cannot be put in its place. {_ADVICE}")
            return True

    def remove(self, name: str) -> None:
        """Removes a file or folder with all that is in it; what is not there is removed."""
        with told(f"{self.at(name)} cannot be removed"):
            path, files = self._found(name)
            if not files.delete(path, True) and files.exists(path):
                raise NotWritten(
                    f"{self.at(name)} cannot be removed, and is needed no more; until it is gone, nothing is "
                    f"written. {_ADVICE}"
                )

    def _found(self, name: str) -> tuple[Any, Any]:
        """A path and its file system."""
        path = self._jvm.org.apache.hadoop.fs.Path(self.at(name))
        return path, path.getFileSystem(self._context._jsc.hadoopConfiguration())

    @property
    def _context(self) -> Any:
        return self.spark.sparkContext

    @property
    def _jvm(self) -> Any:
        return self._context._jvm


def _is_data(name: str) -> bool:
    """Whether Spark reads it as data: what it writes beside that begins with one of these."""
    return not any(folder.startswith(("_", ".")) for folder in name.split("/"))


@contextmanager
def told(what: str) -> Iterator[None]:
    """Tells Java's errors of files as `NotWritten`, which begins with `what`; others are what they were."""
    try:
        yield
    except Py4JJavaError as error:
        reason = _reason(error)
        if reason is None:
            raise
        raise NotWritten(f"{what}: {reason}. {_ADVICE}") from error


def _reason(error: Py4JJavaError) -> str | None:
    """What went wrong with a file that was to be written, if that is what the error or a cause of it says."""
    reason, exception = None, error.java_exception
    while exception is not None:
        if _UNREAD in (exception.getMessage() or ""):
            return None
        if is_instance_of(SparkContext._gateway, exception, "java.io.IOException"):
            name = exception.getClass().getSimpleName()
            reason = f"{name}: {exception.getMessage()}".partition("\n")[0]
        exception = exception.getCause()
    return reason
