"""A message of Spark becomes the end of one of Millstream's: its first letter is small, unless the first word is one of SQL."""

from __future__ import annotations

import pytest

from millstream.engine.failures.scene import Scene
from millstream.engine.failures.sql import rejected_plan
from millstream.engine.failures.text import CONDITION, sentence_of


@pytest.mark.parametrize(
    ("said", "sentence"),
    [
        ("[A_B] USING column `idd` cannot be resolved on the left side of the join. The left", "USING column `idd` cannot be resolved"),
        ("[A_B] UNION can only be performed on inputs with the same number of columns.", "UNION can only be performed"),
        ("[A_B] The column `id` already exists.", "the column `id` already exists"),
        ("[A_B] A column cannot be resolved.", "a column cannot be resolved"),
        ("[A_B] `g` is ambiguous.", "`g` is ambiguous"),
    ],
)
def test_words_of_sql_keep_their_letters(said: str, sentence: str) -> None:
    condition = CONDITION.search(said)
    assert condition
    assert sentence_of(said, condition).startswith(sentence)


def test_an_aggregate_in_where_leads_to_having() -> None:
    said = 'AnalysisException: [INVALID_WHERE_CONDITION] The WHERE condition "(sum(v) > 3)" contains invalid expressions: sum(t.v).'
    found = rejected_plan(said, Scene([]))
    assert found and "HAVING" in found.help
