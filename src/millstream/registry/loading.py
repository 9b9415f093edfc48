"""Loads the class of a plugin, and says what is wrong with it: it fails when imported, is written for another version, or has an option
with the name of one that every node has.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
import traceback
from collections.abc import Callable, Iterable
from pathlib import Path
from types import ModuleType
from typing import Any

from millstream.errors import Diagnostic, MillstreamError, Span, SpecError, nearest
from millstream.registry.mark import INTERFACE, PluginKind, PluginMark, is_own, mark_of

RESERVED = frozenset({"type", "from", "inputs", "description", "primary_key", "on_error", "event_time", "telemetry", "connection"})
"""The options of every node, and the key that names the type."""


def load_class(load: Callable[[], Any], entry: str, origin: str) -> Any:
    """The class behind an entry; SpecError when it cannot be used."""
    name = entry.partition(".")[2]
    try:
        found = load()
    except MillstreamError:
        raise
    except Exception as error:
        raise SpecError(_failed(f"plugin `{name}`", origin, error)) from error
    mark = mark_of(found)
    if mark is not None and mark.entry != entry:
        message = f"the entry point `{entry}` leads to a plugin with the name `{mark.entry}`"
        help_ = f'name both alike: `"{mark.entry}" = "{found.__module__}:{found.__qualname__}"` in the package\'s `pyproject.toml`'
        raise SpecError(Diagnostic("MS209", message, detail=f"it comes from {origin}", help=help_))
    if mark is not None:
        require_usable(found, mark, origin)
    return found


def require_usable(found: Any, mark: PluginMark, origin: str) -> None:
    """The version of the interface, and the names of the options."""
    if mark.interface != INTERFACE:
        older = mark.interface < INTERFACE
        message = (
            f"plugin `{mark.name}` is written for version {mark.interface} of the plugin interface, and this Millstream has {INTERFACE}"
        )
        help_ = f"install a newer version of {origin}" if older else f"update Millstream, or install an older version of {origin}"
        raise SpecError(Diagnostic("MS202", message, detail=f"it comes from {origin}", help=help_))
    names = [field.alias or name for name, field in getattr(found, "model_fields", {}).items()]
    taken = [name for name in names if name in RESERVED] + [name for name in _own_fields(found) if name in _names_of_bases(found)]
    if taken:
        whose = "which every node has" if taken[0] in RESERVED else "which is a name of its base class"
        message = f"plugin `{mark.name}` has the option `{taken[0]}`, {whose}"
        help_ = f"rename the field in the class, for example to `{mark.name.rpartition('.')[2]}_{taken[0]}`"
        raise SpecError(Diagnostic("MS203", message, _field_place(found, taken[0]), detail=f"it comes from {origin}", help=help_))


def plugins_in(reference: str, directory: Path) -> list[tuple[PluginMark, Any]]:
    """The plugins of a file beside the pipeline (`path.py`), or of a module."""
    if str(directory) not in sys.path:  # for modules beside the pipeline
        sys.path.insert(0, str(directory))
    try:
        module = _load_file(directory / reference) if reference.endswith(".py") else _load_module(reference)
    except _NotThereError as error:
        raise SpecError(Diagnostic("MS204", str(error), help=error.help)) from None
    except Exception as error:
        raise SpecError(_failed(f"`{reference}`", reference, error)) from error
    found = {mark: value for value in vars(module).values() if (mark := mark_of(value)) and value.__module__ == module.__name__}
    if not found:
        message = f"`{reference}` has no plugin"
        raise SpecError(Diagnostic("MS204", message, help='decorate the class: `@millstream.plugin("my_sink")`'))
    return list(found.items())


def own_modules(found: type) -> list[ModuleType]:
    """The loaded modules of a plugin's package, which go to workers by value: the package need not be installed there."""
    package = found.__module__.partition(".")[0]
    if package in {"millstream", "__main__", "builtins"}:
        return []
    return [module for name, module in list(sys.modules.items()) if name == package or name.startswith(f"{package}.")]


def ambiguous(kind: PluginKind, name: str, origins: Iterable[str]) -> SpecError:
    """Two packages have a plugin of one name."""
    first, second, *_ = origins
    message = f"two plugins have the name `{name}`: {kind.replace('_', ' ')}s of {first} and of {second}"
    help_ = 'uninstall one of them, or give yours a namespace: `@millstream.plugin("mine.NAME")`'.replace("NAME", name.rpartition(".")[2])
    return SpecError(Diagnostic("MS201", message, help=help_))


def _own_fields(found: Any) -> list[str]:
    """The options that the plugin's own classes declare."""
    own = {name for each in found.__mro__ if is_own(each) for name in vars(each).get("__annotations__", {})}
    return [name for name in getattr(found, "model_fields", {}) if name in own]


def _names_of_bases(found: Any) -> set[str]:
    """Methods and constants of Millstream's classes. An option of the same name would take their place."""
    return {name for each in found.__mro__ if not is_own(each) for name in vars(each) if not name.startswith("_")}


class _NotThereError(Exception):
    def __init__(self, message: str, help_: str = "") -> None:
        super().__init__(message)
        self.help = help_


def _load_file(path: Path) -> ModuleType:
    """Executed once per version of the file."""
    path = path.resolve()
    if not path.is_file():
        others = [each.name for each in path.parent.glob("*.py")] if path.parent.is_dir() else []
        raise _NotThereError(f"there is no file `{path.name}` with plugins in `{path.parent}`", nearest(path.name, others))
    alias = f"_millstream_plugin_{path.stem}_{abs(hash((str(path), path.stat().st_mtime_ns))):x}"
    if alias in sys.modules:
        return sys.modules[alias]
    spec = importlib.util.spec_from_file_location(alias, path)
    assert spec is not None and spec.loader is not None, "the name of the file ends in .py"
    module = importlib.util.module_from_spec(spec)
    sys.modules[alias] = module  # pydantic looks up names of annotations there
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[alias]
        raise
    return module


def _load_module(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name and name.startswith(error.name):
            raise _NotThereError(f"there is no module `{name}`, neither beside the pipeline nor installed") from None
        raise


def _failed(what: str, origin: str, error: Exception) -> Diagnostic:
    frame = _last_own_frame(error)
    place = f"{frame.filename}:{frame.lineno}\n    {frame.line}" if frame else f"it comes from {origin}"
    if isinstance(error, SyntaxError) and error.filename:
        place = f"{error.filename}:{error.lineno}\n    {(error.text or '').strip()}"
    if isinstance(error, ModuleNotFoundError) and error.name:
        help_ = f"install what it needs (`pip install {error.name.partition('.')[0]}`), or correct the import"
    else:
        help_ = "correct it there" + ("" if origin.endswith(".py") else f", or install another version of {origin}")
    return Diagnostic("MS200", f"{what} fails when imported: {type(error).__name__}: {_first_line(error)}", detail=place, help=help_)


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [""])[0]


def _last_own_frame(error: Exception) -> traceback.FrameSummary | None:
    """The last line of the plugin itself: not of Python's or of our machinery."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if not frame.filename.startswith("<frozen")]
    own = [frame for frame in frames if "/millstream/registry/" not in frame.filename and "importlib" not in frame.filename]
    return own[-1] if own else None


def _field_place(found: Any, option: str) -> Span | None:
    """The line of the class in which the option is declared."""
    file = getattr(sys.modules.get(found.__module__), "__file__", None)
    lines = Path(file).read_text(encoding="utf-8").splitlines() if file and Path(file).is_file() else []
    inside = False
    for number, line in enumerate(lines, 1):
        inside = inside or line.startswith(f"class {found.__name__}")
        bare = line.strip()
        if inside and (bare.startswith(f"{option}:") or f'alias="{option}"' in bare):
            start = line.index(option) + 1
            return Span(str(file), number, start, start + len(option), line)
    return None
