"""Files that a pipeline's file refers to: paths are relative to the referring file, and must be in the pipeline's folder or below.

A pipeline that reads files from anywhere could not be moved, packed or reviewed as one folder; a symlink to outside is refused for the same
reason.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from millstream.errors import Diagnostic, SpecError, nearest
from millstream.spec.layers import read_text
from millstream.spec.tree import MAX_BYTES, Scalar, Tree


def find_own(name: Tree, folder: Path, what: str) -> Path:
    """The file that a value names; a SpecError at its position if it cannot be used."""
    if not isinstance(name, Scalar) or not isinstance(name.value, str) or not name.value.strip():
        raise SpecError(Diagnostic("MS008", f"{what} must be the path of a file", name.span))
    path = Path(name.span.file).parent / name.value
    if not path.resolve().is_relative_to(folder.resolve()):
        message = f"{what} `{name.value}` is outside the pipeline's folder"
        help_ = f"put the file into `{folder}` or below; a symlink to outside is not accepted"
        raise SpecError(Diagnostic("MS169", message, name.span, help=help_))
    if not path.is_file():
        reason = "is a folder" if path.is_dir() else "does not exist"
        raise SpecError(Diagnostic("MS001", f"{what} `{name.value}` {reason}", name.span, help=_beside(path)))
    return path


def read_own(path: Path, name: Tree, what: str) -> str:
    """The text of such a file; problems are reported at the reference."""
    try:
        text = read_text(path)
    except SpecError as error:
        raise SpecError([replace(finding, span=name.span, help="") for finding in error.diagnostics]) from None
    if not text.strip():
        raise SpecError(Diagnostic("MS170", f"{what} `{path}` is empty", name.span))
    if len(text) > MAX_BYTES:
        raise SpecError(Diagnostic("MS004", f"{what} `{path}` has more than 2 MB", name.span, help="it may be a data file"))
    return text


def _beside(path: Path) -> str:
    """The most similar name among the existing files."""
    known = [each.name for each in path.parent.glob(f"*{path.suffix}")] if path.suffix and path.parent.is_dir() else []
    return nearest(path.name, known) if known else f"the path is relative to the file that names it: `{path}`"
