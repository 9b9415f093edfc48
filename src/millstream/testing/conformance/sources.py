"""Sources: the same offsets give the same rows, also to another reader; nothing is read after the end; reading can be stopped."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

from millstream.plan.components.arrow import ArrowSource
from millstream.testing.conformance.promises import Check, difference
from millstream.testing.conformance.surroundings import make_context, sent


def checks(source: ArrowSource, folder: Path) -> Iterator[Check]:
    context = make_context(folder)

    def reader() -> Any:
        return sent(source.reader(context), type(source))

    def replay() -> str:
        start, end = _offsets(reader())
        rows = _rows(reader(), start, end)
        if not rows:
            return "it gives no rows: the checks need a source with some"
        wrong = difference(rows, _rows(reader(), _through_log(start), _through_log(end)))
        return f"the same offsets gave other rows to a second reader: {wrong}" if wrong else ""

    def after_the_end() -> str:
        _, end = _offsets(reader())
        rows = _rows(reader(), end, _through_log(end))
        return f"between an offset and itself there are {len(rows)} rows: `parts` ignores where it starts" if rows else ""

    def before_the_first() -> str:
        start, _ = _offsets(reader())
        rows = _rows(reader(), start, start)
        return f"an empty epoch has {len(rows)} rows" if rows else ""

    def resume() -> str:
        """What comes after an epoch is not what came before it."""
        first = reader()
        start, end = _offsets(first)
        source.commit(_through_log(end), context)
        again = reader()
        later = again.latest()
        more = _rows(again, _through_log(end), later)
        whole = _rows(reader(), start, later)
        wrong = difference(whole, [*_rows(reader(), start, end), *more])
        return f"two epochs do not have the rows of one: {wrong}" if wrong else ""

    def schema() -> str:
        wanted, used = source.output(), reader()
        start, end = _offsets(used)
        for batch in _batches(used, start, end):
            if wanted is not None and not batch.schema.equals(wanted):
                return f"`output` says {_shown(wanted)}, and a batch has {_shown(batch.schema)}"
        return ""

    def stop() -> str:
        used = reader()
        start, end = _offsets(used)
        for part in used.parts(start, end):
            reading = iter(used.read(part))
            next(reading, None)
            close = getattr(reading, "close", None)
            try:
                if close is not None:
                    close()
            except RuntimeError as error:
                return f"it goes on after it was stopped: {error}"
        return ""

    yield Check("replay of an epoch", replay)
    yield Check("offset at the end", after_the_end)
    yield Check("empty epoch", before_the_first)
    yield Check("resume after a commit", resume)
    yield Check("schema of batches", schema)
    yield Check("stop in the middle", stop)


def _offsets(reader: Any) -> tuple[Any, Any]:
    return reader.first(), reader.latest()


def _through_log(offset: Any) -> Any:
    """An offset as Spark's log gives it back."""
    return json.loads(json.dumps(offset))


def _batches(reader: Any, start: Any, end: Any) -> Iterator[pa.RecordBatch]:
    for part in reader.parts(start, end):
        yield from reader.read(part)


def _rows(reader: Any, start: Any, end: Any) -> list[Any]:
    return [row for batch in _batches(reader, start, end) for row in batch.to_pylist()]


def _shown(schema: pa.Schema) -> str:
    return ", ".join(f"{field.name}: {field.type}" for field in schema)
