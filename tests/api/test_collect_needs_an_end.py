"""`collect()` of a stream that never ends is refused before Spark starts."""

import pytest

from millstream import GeneratorSource, Settings, StreamEnvironment
from millstream.errors import SpecError

FIELDS = {"id": {"type": "sequence"}}


def test_an_endless_source_is_named() -> None:
    rows = StreamEnvironment("p").from_source(GeneratorSource(fields=FIELDS), name="ids").filter("id > 1")
    with pytest.raises(SpecError, match=r"MS175.*source `ids` has no end"):
        rows.collect()


def test_a_trigger_that_ends_is_enough() -> None:
    settings = Settings.model_validate({"trigger": {"type": "available_now"}})
    rows = StreamEnvironment("p", settings=settings).from_source(GeneratorSource(fields=FIELDS))
    rows._require_end()
