"""Compares the header of CSV files with the schema: a missing column would silently be null in every row."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches

from millstream.errors import Diagnostic, RunError

_DELIMITERS = {";": ";", "\t": "\\t", "|": "|", ",": ",", ":": ":"}


def require_columns(header: Sequence[str], wanted: Iterable[str], elsewhere: Iterable[str], file: str, node: str) -> None:
    """Refuse a file whose header lacks schema columns that no directory provides."""
    there = {name.lower() for name in (*header, *elsewhere)}
    names = list(wanted)
    lacking = [name for name in names if name.lower() not in there]
    if not lacking:
        return
    message = f"the CSV header does not fit the schema of `{node}`: it has no column `{lacking[0]}`"
    detail = f"file: {file}\nfound: {_join_names(header)}\nexpected: {_join_names(names)}"
    raise RunError(Diagnostic("MS163", message, detail=detail, help=_help(header, names, lacking)))


def _help(header: Sequence[str], names: Sequence[str], lacking: Sequence[str]) -> str:
    if len(header) == 1 and len(names) > 1:
        found = next((sign for sign in _DELIMITERS if sign in header[0]), "")
        if found:
            return f'the columns seem to be separated by another character: `options: {{delimiter: "{_DELIMITERS[found]}"}}`'
    free = [name for name in header if name.lower() not in {each.lower() for each in names}]
    meant: Mapping[str, list[str]] = {name: get_close_matches(name.lower(), [each.lower() for each in free], n=1) for name in lacking}
    if near := next((close[0] for close in meant.values() if close), ""):
        return f"did you mean `{near}`? the schema uses the header's column names"
    return "use the header's column names; a file without a header needs `options: {header: false}`"


def _join_names(names: Sequence[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)
