"""SQL of other systems that Spark writes differently."""

from __future__ import annotations

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from millstream.sql.check.finding import SqlFinding
from millstream.sql.check.query import Query, place_between, tokens_of


def foreign_words(query: Query) -> list[SqlFinding]:
    """The parser accepts `UNNEST`, but Spark does not have it."""
    tokens, tree = tokens_of(query.text), query.tree
    calls = [token for token in tokens if token.token_type == TokenType.UNNEST or token.text.upper() == "UNNEST"]
    unnests = list(tree.find_all(exp.Unnest)) if tree is not None else []
    return [
        SqlFinding("MS162", "Spark SQL has no UNNEST", _instead(unnest), place_between(query.text, token.start, token.end + 1))
        for token, unnest in zip(calls, unnests, strict=False)
    ]


def _instead(unnest: exp.Unnest) -> str:
    alias = unnest.args.get("alias")
    table = alias.name if isinstance(alias, exp.TableAlias) and alias.name else "t"
    column = alias.columns[0].name if isinstance(alias, exp.TableAlias) and alias.columns else "item"
    lists = ", ".join(each.sql(dialect="spark") for each in unnest.expressions)
    return f"write `LATERAL VIEW explode({lists}) {table} AS {column}`"
