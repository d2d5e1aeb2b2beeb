"""A plugin of pytest that changes one module while it is imported, so that a test can be seen to fail without its code.

    KONTROLLER_MUTANT='["the.module", "some code", "other code"]' pytest -p tests.unit.mutated_module tests/unit/...

The files stay as they are. The module must have the code exactly once.
"""

import importlib.abc
import importlib.machinery
import importlib.util
import json
import os
import sys
from collections.abc import Sequence
from types import CodeType, ModuleType
from typing import Final

VARIABLE: Final = "KONTROLLER_MUTANT"


class _Loader(importlib.machinery.SourceFileLoader):
    def __init__(self, fullname: str, path: str, code: str, instead: str) -> None:
        super().__init__(fullname, path)
        self._code, self._instead = code, instead

    def get_code(self, fullname: str) -> CodeType:
        path = self.get_filename(fullname)
        source = self.get_data(path).decode()
        assert source.count(self._code) == 1, f"{fullname} must have this code once: {self._code}"
        return compile(source.replace(self._code, self._instead), path, "exec")


class _Finder(importlib.abc.MetaPathFinder):
    def __init__(self, module: str, code: str, instead: str) -> None:
        self._module, self._code, self._instead = module, code, instead

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname != self._module:
            return None
        found = importlib.machinery.PathFinder.find_spec(fullname, path)
        assert found is not None
        assert found.origin is not None
        return importlib.util.spec_from_file_location(
            fullname, found.origin, loader=_Loader(fullname, found.origin, self._code, self._instead)
        )


if VARIABLE in os.environ:
    sys.meta_path.insert(0, _Finder(*json.loads(os.environ[VARIABLE])))
