"""What can be wrong with a plan."""

from __future__ import annotations

from millstream.codes.code import Code

PLANS: dict[str, Code] = {
    "MS020": Code(
        "two nodes share a name",
        "A name is a node's identity in plans, metrics and checkpoints.",
        "Rename one of them.",
    ),
    "MS021": Code("the nodes form a cycle", "Rows would never leave it.", "Break the cycle that the message shows."),
    "MS022": Code(
        "nothing reads this node",
        "The node feeds no sink, so it would never run.",
        "Connect it to a sink, or remove it.",
    ),
    "MS023": Code(
        "the pipeline has no sink or no source",
        "Without both ends nothing flows.",
        "Add a sink; `print` shows rows on the terminal and `blackhole` counts them.",
    ),
    "MS024": Code(
        "unknown column",
        "The input does not have that column.",
        "Use the nearest name shown; `millstream plan` prints the columns of every node.",
    ),
    "MS025": Code(
        "the primary key is not in the schema",
        "Every column of `primary_key` must come out of the node.",
        "Select the column, or take it out of the key.",
    ),
    "MS026": Code(
        "the sink cannot take this column",
        "The sink or its format does not support the column's type, or needs a column that does not exist.",
        "Cast the column in a transform before the sink.",
    ),
    "MS027": Code("the expression does not parse", "It is not an expression of Spark SQL.", "See the place marked in the message."),
    "MS028": Code(
        "the query could not be checked without Spark",
        "The query uses syntax that the offline checker does not know. Spark may well accept it.",
        "`millstream check --spark` asks Spark itself, and later checks repeat its answer.",
    ),
    "MS029": Code(
        "the aggregate does not fit",
        "The expression is not an aggregate, or adds up a column that is not a number.",
        "The message names the column and its type; cast it before.",
    ),
    "MS030": Code(
        "a stream cannot answer this query",
        "Most queries run as streams, or are kept up to date from the changes of their inputs. Not supported are rows by chance "
        "(TABLESAMPLE), recursion, and values that differ each time (`now()`, `rand()`, `uuid()`) in a "
        "query that is kept up to date: a row that was returned could not be removed again. `check` reports what the text shows; "
        "Spark's own plan is checked before the first epoch, so that no result depends on epoch boundaries.",
        "Compute such values in a node above, which is not kept up to date, or group by `window(…)`.",
    ),
    "MS031": Code(
        "the dead-letter sink does not exist",
        "`{dead_letter: NAME}` must name a sink of the pipeline.",
        "Add the sink; it needs no `from`.",
    ),
    "MS032": Code(
        "on_error cannot isolate rows here",
        "For `sql`, rejects can be isolated when the query reads one input with SELECT … FROM … WHERE.",
        "Split the query: put the part that can fail into a separate plain SELECT.",
    ),
    "MS033": Code(
        "wrong number of inputs",
        "Sources take no input, sinks and most transforms take one, `union` and `sql` take several.",
        "Correct `from`.",
    ),
    "MS034": Code(
        "an unnamed function cannot be written as YAML",
        "A lambda, a nested function or one from an interactive session has no `module:name` under which to find it again.",
        "Define the function at the top level of a module. The plan itself runs either way.",
    ),
    "MS035": Code(
        "two schemas do not fit together",
        "The inputs of a union must have the same columns with types that widen to a common one.",
        "Select and cast the columns before the union.",
    ),
    "MS036": Code(
        "not supported yet",
        "The plan is valid, but this version cannot run that part of it.",
        "See the changelog for what the next versions bring.",
    ),
    "MS037": Code(
        "an event time is missing",
        "Windows, joins in time and the like close when the watermark passes, so every input needs a column that says when rows happened.",
        "Add `event_time: {column: COLUMN, watermark: DELAY}` to the node that the message names.",
    ),
    "MS038": Code(
        "this key cannot be used",
        "Numbers with a fraction are not equal reliably, and maps cannot be compared.",
        "Round or cast the column before, or take another key.",
    ),
    "MS039": Code(
        "the state would grow without bound",
        "Without a time limit every row must be kept for ever.",
        "Give a time limit, or say `unbounded: true` if the keys are few.",
    ),
    "MS154": Code(
        "a login without encryption",
        "The password may reach another host in the clear: `sslmode: prefer` (the default) continues without encryption "
        "when the server has "
        "none, and `SASL_PLAINTEXT` never encrypts.",
        "Set `sslmode: require` or `verify-full` for Postgres, `protocol: SASL_SSL` for Kafka. On loopback nothing leaves the machine.",
    ),
    "MS158": Code(
        "a syntax error in SQL",
        "The text is no query in any dialect: a quote or parenthesis stays open, a keyword is misspelt, or the end is missing. Text that "
        "only the offline checker does not know is a warning (MS028) where the node says with `from` what it reads.",
        "See the place marked in the message.",
    ),
    "MS159": Code(
        "unknown function",
        "Neither Spark nor the pipeline has a function of that name.",
        "Use the nearest name shown, or declare your own under `functions:`.",
    ),
    "MS160": Code(
        "a column is neither grouped by nor aggregated",
        "A group has many values of that column, but the result has one row per group. Or an aggregate stands in WHERE, which is computed "
        "row by row, before there are groups.",
        "Add the column to GROUP BY, or aggregate it: `first(column)`, `max(column)`. Put a condition on an aggregate into HAVING.",
    ),
    "MS161": Code(
        "the name of a column is ambiguous",
        "More than one input of the query has a column of that name.",
        "Write the input before it: `orders.id`.",
    ),
    "MS162": Code(
        "SQL of another dialect",
        "Spark SQL writes this differently.",
        "Write it as the message shows.",
    ),
    "MS168": Code(
        "nothing reads a branch of a route",
        "A route sends every row to one branch, and rows of a branch without a reader are dropped. Rows that match no "
        "condition, also those "
        "for which every condition is null, go to the branch `default`.",
        "Read the branch as `ROUTE.BRANCH`; to drop its rows on purpose, send them to a `blackhole` sink.",
    ),
    "MS174": Code(
        "a route whose conditions vary is part of several queries",
        "Each query computes the conditions itself. Random values, the time and functions that vary give each query other results, "
        "so that a row could reach two branches or none.",
        "Read all branches below the same root, or compute the deciding value once, in a column that is written and read again.",
    ),
    "MS176": Code(
        "two rows of a result share its primary key",
        "The result of a query is kept up to date by its primary key: a new row replaces the row with the same key. The key was declared "
        "with `primary_key`, and does not follow from the query, so it is checked in every epoch. Nothing of the epoch was written.",
        "Declare columns that identify a row, or change the query so that they do.",
    ),
    "MS177": Code(
        "a changelog without a primary key",
        "A query that is kept up to date applies the changes of its inputs to rows, and finds them by their primary key.",
        "Add `primary_key` to the node whose rows are the changelog.",
    ),
    "MS178": Code(
        "a sink with another key than the changes that it receives",
        "A change replaces or removes the row with its key. If a sink applies it by other columns, a row whose value in these columns "
        "changed would stay in the target beside the new one.",
        "Use the key of the changes as the sink's `primary_key`. If other columns identify a row too, declare them as `primary_key` of the "
        "node whose result is kept up to date; that is checked while it runs.",
    ),
    "MS179": Code(
        "a final result of an input that never ends",
        "`emit: final` returns the result of a query once, when all its inputs have ended.",
        "Make the sources bounded, or leave `emit` out: the query then returns the changes of its result.",
    ),
    "MS180": Code(
        "a scalar subquery with several rows",
        "A subquery that stands for one value returned more than one row when the result was brought up to date. Nothing of the epoch was "
        "written.",
        "Let it choose one value (`max(…)`, `min(…)`), or compare with `IN (SELECT …)`.",
    ),
    "MS181": Code(
        "queries with different numbers of columns",
        "UNION, INTERSECT and EXCEPT combine queries column by column. A subquery that stands for a value has one column, and one after "
        "IN as many as there are values before it.",
        "Select as many columns as the message says.",
    ),
    "MS182": Code(
        "a join without a condition",
        "Without ON or USING every row of one side is paired with every row of the other. That is seldom meant, and an incremental query "
        "keeps both sides and computes all pairs. Spark accepts it, so it is a warning.",
        "Add `ON …`; if all pairs are meant, write CROSS JOIN.",
    ),
    "MS175": Code(
        "`collect()` of an input that never ends",
        "It returns all rows, so every input must end.",
        "Make the input bounded, use the trigger `available_now`, or send the rows to a sink.",
    ),
}
