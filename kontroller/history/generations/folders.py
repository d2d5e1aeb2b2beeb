"""The folders of tables: on this machine, or on Hadoop's file systems, which Spark writes to.

Hadoop returns false, and raises nothing, if it could not delete or rename a file, and its errors are Java's. This
module checks every result, and raises each error as `NotWritten` with advice.
"""

import os
import shutil
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from py4j.java_gateway import is_instance_of
from py4j.protocol import Py4JJavaError
from pyspark import SparkContext
from pyspark.sql import SparkSession

from kontroller.history.generations.errors import NotWritten
from kontroller.history.generations.locks import find_local_folder

_ADVICE: Final = (
    "No stored data is lost. Check the permissions of this user, the free space, and other programs that use the "
    "folder; then run the command again"
)
_IF_ABSENT: Final = "fs.option.create.conditional.overwrite"
"""Hadoop's option, and its name for the ability of a store, to write an object only if its name is free."""
_UNREAD: Final = "FAILED_READ_FILE"
"""Part of Spark's message for a file that it cannot read, also while it writes another one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class File:
    """A file of data. `name` is relative to the listed folder. `changed_ms` is the modification time, in milliseconds
    since 1970."""

    name: str
    size_bytes: int
    changed_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Folders(ABC):
    """The folders below `location`, a path or URI. Names are relative to it. All methods raise `NotWritten`."""

    location: str

    def resolve(self, name: str) -> str:
        return f"{self.location.rstrip('/')}/{name}"

    @abstractmethod
    def names(self, folder: str) -> list[str]:
        """Return the names in a folder, or none if the folder does not exist."""

    def clusters(self, folder: str) -> list[str]:
        """Return the folders of clusters that a divided write has made, as `of=CLUSTER`."""
        return [name for name in self.names(folder) if name.startswith("of=")]

    def days(self, folder: str) -> list[str]:
        """Return the folders of clusters and days that a divided write has made, as `of=CLUSTER/day=DAY`."""
        return [f"{cluster}/{day}" for cluster in self.clusters(folder) for day in self.names(f"{folder}/{cluster}")]

    @abstractmethod
    def files(self, folder: str, part: str) -> list[File]:
        """Return the files of data in a part of a folder, named relative to the folder; none if the part does not
        exist."""

    def read(self, name: str) -> str:
        return self.read_bytes(name).decode()

    @abstractmethod
    def read_bytes(self, name: str) -> bytes: ...

    @abstractmethod
    def exists(self, name: str) -> bool: ...

    @abstractmethod
    def create(self, name: str, content: str | bytes) -> bool:
        """Create a file atomically. Return False if a file of that name exists.

        If two processes create it at once, exactly one succeeds: by a conditional write to an object store, by a rename
        on HDFS, and by a link on this machine, or a rename if its file system has no links. S3 without conditional
        writes is refused."""

    @abstractmethod
    def remove(self, name: str) -> None:
        """Remove a file, or a folder with everything in it. Removing a missing one succeeds."""


def open_folders(spark: SparkSession, location: str) -> Folders:
    """Return the folders below a path or URI. `spark`: for locations that are not on this machine."""
    here = find_local_folder(location)
    return _InHadoop(spark=spark, location=location) if here is None else _Here(location=location, folder=here)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Here(Folders):
    """Folders on this machine."""

    folder: Path

    def names(self, folder: str) -> list[str]:
        with translate_errors(f"{self.resolve(folder)} cannot be listed"):
            path = self.folder / folder
            return os.listdir(path) if path.is_dir() else []

    def files(self, folder: str, part: str) -> list[File]:
        with translate_errors(f"{self.resolve(folder)}/{part} cannot be listed"):
            above = self.folder / folder
            found = []
            for path in (path for path in (above / part).rglob("*") if path.is_file()):
                status = path.stat()
                name, changed_ms = str(path.relative_to(above)), status.st_mtime_ns // 1_000_000
                found.append(File(name=name, size_bytes=status.st_size, changed_ms=changed_ms))
        return sorted((file for file in found if _is_data(file.name)), key=lambda file: file.name)

    def read_bytes(self, name: str) -> bytes:
        with translate_errors(f"{self.resolve(name)} cannot be read"):
            return (self.folder / name).read_bytes()

    def exists(self, name: str) -> bool:
        with translate_errors(f"{self.resolve(name)} cannot be read"):
            return (self.folder / name).exists()

    def create(self, name: str, content: str | bytes) -> bool:
        path = self.folder / name
        written = path.with_name(f"{path.name}.new")
        with translate_errors(f"{self.resolve(name)} cannot be written"):
            path.parent.mkdir(parents=True, exist_ok=True)
            written.write_bytes(content.encode() if isinstance(content, str) else content)
            try:
                return _name_if_free(written, path)
            finally:
                written.unlink(missing_ok=True)

    def remove(self, name: str) -> None:
        path = self.folder / name
        with translate_errors(f"{self.resolve(name)} cannot be removed"):
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)


def _name_if_free(file: Path, path: Path) -> bool:
    try:
        os.link(file, path)
    except FileExistsError:
        return False
    except OSError:
        # The file system has no links.
        if path.exists():
            return False
        file.rename(path)
    return True


@dataclass(frozen=True, slots=True, kw_only=True)
class _InHadoop(Folders):
    """Folders on a file system of Hadoop."""

    spark: SparkSession

    def names(self, folder: str) -> list[str]:
        with translate_errors(f"{self.resolve(folder)} cannot be listed"):
            path, files = self._resolve_path(folder)
            return [status.getPath().getName() for status in files.listStatus(path)] if files.exists(path) else []

    def files(self, folder: str, part: str) -> list[File]:
        with translate_errors(f"{self.resolve(folder)}/{part} cannot be listed"):
            path, files = self._resolve_path(f"{folder}/{part}")
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

    def read_bytes(self, name: str) -> bytes:
        with translate_errors(f"{self.resolve(name)} cannot be read"):
            path, files = self._resolve_path(name)
            stream = files.open(path)
            try:
                return bytes(self._jvm.org.apache.commons.io.IOUtils.toByteArray(stream))
            finally:
                stream.close()

    def exists(self, name: str) -> bool:
        with translate_errors(f"{self.resolve(name)} cannot be read"):
            path, files = self._resolve_path(name)
            return bool(files.exists(path))

    def create(self, name: str, content: str | bytes) -> bool:
        data = content.encode() if isinstance(content, str) else content
        with translate_errors(f"{self.resolve(name)} cannot be written"):
            path, files = self._resolve_path(name)
            if files.hasPathCapability(path, _IF_ABSENT):
                return self._put_if_absent(name, data)
            if files.getScheme().startswith("s3"):
                raise NotWritten(
                    f"{self.resolve(name)} cannot be written safely beside another command, because conditional writes "
                    "are off: use an s3a:// address, Hadoop 3.4.2 or newer, and fs.s3a.create.conditional.enabled=true"
                )
            written, _ = self._resolve_path(f"{name}.new")
            stream = files.create(written, True)
            try:
                stream.write(bytearray(data))
            finally:
                stream.close()
            if files.exists(path) or not files.rename(written, path):
                files.delete(written, False)
                if files.exists(path):
                    return False
                raise NotWritten(f"{self.resolve(name)} cannot be renamed to its final name. {_ADVICE}")
            return True

    def _put_if_absent(self, name: str, data: bytes) -> bool:
        path, files = self._resolve_path(name)
        try:
            stream = files.createFile(path).recursive().must(_IF_ABSENT, True).build()
            stream.write(bytearray(data))
            # Nothing exists before this. After an error it is left out, because it would create a part of the file.
            stream.close()
        except Py4JJavaError:
            if not files.exists(path):
                raise
            # If the answer to a successful request is lost, the request is repeated, and refused because of itself.
            return self.read_bytes(name) == data
        return True

    def remove(self, name: str) -> None:
        with translate_errors(f"{self.resolve(name)} cannot be removed"):
            path, files = self._resolve_path(name)
            if not files.delete(path, True) and files.exists(path):
                raise NotWritten(
                    f"{self.resolve(name)} cannot be removed. It is not needed, but nothing is written while it "
                    f"exists. {_ADVICE}"
                )

    def _resolve_path(self, name: str) -> tuple[Any, Any]:
        """Return a path and its file system."""
        path = self._jvm.org.apache.hadoop.fs.Path(self.resolve(name))
        return path, path.getFileSystem(self._context._jsc.hadoopConfiguration())

    @property
    def _context(self) -> Any:
        return self.spark.sparkContext

    @property
    def _jvm(self) -> Any:
        return self._context._jvm


def _is_data(name: str) -> bool:
    """Return True if Spark reads the file as data. Spark's own files have a part that begins with `_` or `.`."""
    return not any(folder.startswith(("_", ".")) for folder in name.split("/"))


@contextmanager
def translate_errors(what: str) -> Iterator[None]:
    """Raise errors of files, also Java's, as `NotWritten`, whose message begins with `what`. Others pass unchanged."""
    try:
        yield
    except OSError as error:
        raise make_not_written(what, str(error)) from error
    except Py4JJavaError as error:
        reason = _reason(error)
        if reason is None:
            raise
        raise make_not_written(what, reason) from error


def make_not_written(what: str, reason: str) -> NotWritten:
    """Return the error for data that could not be written, with advice."""
    return NotWritten(f"{what}: {reason}. {_ADVICE}")


def _reason(error: Py4JJavaError) -> str | None:
    """Return the reason if the error, or one of its causes, says that a file could not be written; otherwise None."""
    reason, exception = None, error.java_exception
    while exception is not None:
        if _UNREAD in (exception.getMessage() or ""):
            return None
        if is_instance_of(SparkContext._gateway, exception, "java.io.IOException"):
            name = exception.getClass().getSimpleName()
            reason = f"{name}: {exception.getMessage()}".partition("\n")[0]
        exception = exception.getCause()
    return reason
