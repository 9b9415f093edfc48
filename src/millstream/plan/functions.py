"""References to the user's Python: `module:function` or `path.py:function`, or a callable passed by Python code.

A check never imports user code: it finds the file, and the name in its syntax tree. A run loads the function with the pipeline's directory
first on the module path. A callable without a name can run, but cannot be written to YAML.
"""

from __future__ import annotations

import ast
import importlib
import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pydantic import GetCoreSchemaHandler
from pydantic_core import CoreSchema, core_schema

from millstream.errors import FunctionError, nearest


class FunctionRef:
    """The location of a function; equal for equal locations."""

    __slots__ = ("_callable", "reference")

    def __init__(self, target: str | Callable[..., Any]) -> None:
        if isinstance(target, str):
            module, colon, name = target.rpartition(":")
            if not colon or not module or not name:
                raise FunctionError("a function is written `module:function` or `path.py:function`")
        self._callable = None if isinstance(target, str) else target
        self.reference = target if isinstance(target, str) else _name_of(target)

    @property
    def named(self) -> bool:
        """Whether the reference can be resolved to the function again."""
        return "<" not in self.reference and not self.reference.startswith("__main__:")

    @property
    def handed_over(self) -> bool:
        """Whether Python code passed the callable, so that nothing needs to be resolved."""
        return self._callable is not None

    @property
    def line(self) -> str:
        code = getattr(self._callable, "__code__", None)
        return f"{Path(code.co_filename).name}:{code.co_firstlineno}" if code else ""

    def load(self, directory: Path) -> Callable[..., Any]:
        """The callable. ValueError with a sentence when it cannot be loaded."""
        if self._callable is not None:
            return self._callable
        module_name, _, name = self.reference.rpartition(":")
        try:
            found: Any = _load_module(module_name, directory)
        except Exception as error:
            raise FunctionError(f"`{module_name}` fails when imported: {type(error).__name__}: {error}") from error
        for part in name.split("."):
            if not hasattr(found, part):
                raise FunctionError(f"`{module_name}` has no `{part}`; {nearest(part, _public(found))}")
            found = getattr(found, part)
        if not callable(found):
            raise FunctionError(f"`{self.reference}` is a {type(found).__name__} and not a function")
        return found  # type: ignore[no-any-return]  # callable() has checked it

    def problem(self, directory: Path) -> str:
        """What is wrong, found without imports; empty when nothing is."""
        if self._callable is not None:
            return ""
        module_name, _, name = self.reference.rpartition(":")
        try:
            file = _find_file(module_name, directory)
            names = _top_level_names(file) if file else None
        except (ValueError, SyntaxError) as error:
            return str(error)
        if names is None or name.split(".", maxsplit=1)[0] in names:
            return ""
        return f"`{module_name}` has no `{name}`; {nearest(name, names)}"

    def definition(self, directory: Path) -> ast.FunctionDef | None:
        """The function in its module's syntax tree; None when it is not defined there."""
        module_name, _, name = self.reference.rpartition(":")
        try:
            file = None if self._callable is not None else _find_file(module_name, directory)
            body = ast.parse(file.read_text(encoding="utf-8")).body if file else []
        except (ValueError, SyntaxError):
            return None
        return next((node for node in reversed(body) if isinstance(node, ast.FunctionDef) and node.name == name), None)

    def attribute(self, name: str) -> Any:
        """An attribute of a callable that Python code passed; None when there is none."""
        return getattr(self._callable, name, None)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, FunctionRef):
            return NotImplemented
        return self.reference == other.reference and (self.named or self._callable is other._callable)

    def __hash__(self) -> int:
        return hash(self.reference)

    def __repr__(self) -> str:
        return self.reference

    @classmethod
    def _from(cls, target: Any) -> FunctionRef:
        if isinstance(target, FunctionRef):
            return target
        return cls(target if callable(target) else str(target))

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        from_text = core_schema.no_info_after_validator_function(cls, core_schema.str_schema())
        return core_schema.json_or_python_schema(
            json_schema=from_text,
            python_schema=core_schema.no_info_plain_validator_function(cls._from),
            serialization=core_schema.plain_serializer_function_ser_schema(repr),
        )


def _name_of(function: Callable[..., Any]) -> str:
    return f"{getattr(function, '__module__', '?')}:{getattr(function, '__qualname__', type(function).__qualname__ + ' <instance>')}"


def _load_module(name: str, directory: Path) -> Any:
    if str(directory) not in sys.path:
        sys.path.insert(0, str(directory))
    return _load_file((directory / name).resolve()) if name.endswith(".py") else importlib.import_module(name)


def _load_file(path: Path) -> Any:
    """Executed once per version of the file: every epoch asks for the same function."""
    version = path.stat().st_mtime_ns if path.exists() else 0
    alias = f"_millstream_{path.stem}_{abs(hash((str(path), version))):x}"
    if alias in sys.modules:
        return sys.modules[alias]
    spec = importlib.util.spec_from_file_location(alias, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    sys.modules[alias] = module
    return module


def _find_file(module_name: str, directory: Path) -> Path | None:
    """The source of a module; None when the module exists without source."""
    if module_name.endswith(".py"):
        path = directory / module_name
        if not path.is_file():
            raise FunctionError(f"there is no file `{module_name}` beside the pipeline")
        return path
    beside = directory.joinpath(*module_name.split("."))
    for candidate in (beside.with_suffix(".py"), beside / "__init__.py"):
        if candidate.is_file():
            return candidate
    top = module_name.split(".", maxsplit=1)[0]
    spec = importlib.util.find_spec(top)
    if spec is None:
        raise FunctionError(f"there is no module `{module_name}`, neither beside the pipeline nor installed")
    return Path(spec.origin) if top == module_name and spec.origin and spec.origin.endswith(".py") else None


def _top_level_names(file: Path) -> set[str] | None:
    """Names that the module defines; None when it uses `import *`."""
    names: set[str] = set()
    for node in ast.parse(file.read_text(encoding="utf-8"), str(file)).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Assign):
            names.update(target.id for target in node.targets if isinstance(target, ast.Name))
        elif isinstance(node, ast.Import | ast.ImportFrom):
            names.update((alias.asname or alias.name) for alias in node.names)
    return None if "*" in names or "__getattr__" in names else names


def _public(module: Any) -> list[str]:
    return [name for name in dir(module) if not name.startswith("_")]
