"""Two nodes may have the same SQL, as it reaches Spark as it was written: blame goes to the one that was running."""

from millstream.engine.failures.query_context import QueryContext
from millstream.engine.failures.scene import Scene
from millstream.plan.nodes import make_node
from millstream.transforms.sql import Sql

TEXT = "SELECT total / qty AS price FROM rows"


def test_the_node_that_was_running_is_the_author() -> None:
    nodes = [make_node(name, Sql(sql=TEXT)) for name in ("first", "second")]
    statements = {node.name: [TEXT] for node in nodes}
    context = QueryContext(TEXT, 1, 8, "total / qty")
    authors = [Scene(nodes, where, statements, context).author for where in ("first", "second", "other")]
    assert [node.name for node in authors if node] == ["first", "second", "first"]
