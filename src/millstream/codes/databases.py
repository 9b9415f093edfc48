"""What can be wrong with databases, dynamic tables and stores."""

from __future__ import annotations

from millstream.codes.code import Code

DATABASES: dict[str, Code] = {
    "MS109": Code(
        "sinks that cannot commit together",
        "A `commit_group` is one transaction per epoch: its sinks need the same epochs, so the same root, and the same database and login.",
        "Give them different groups, or none.",
    ),
    "MS110": Code(
        "Postgres cannot be reached",
        "Nothing answers at the address, or the connection broke: the host or the port is wrong, the server is down or starting, or a "
        "firewall is in between.",
        "Check `host` and `port`. When the server is back, the query restarts, as often as `settings.restart` allows.",
    ),
    "MS111": Code(
        "Postgres refuses the login",
        "The server answers but refuses the login: a wrong user or password, a database that does not exist, a host that its "
        "`pg_hba.conf` does not name, or encryption that one side wants and the other does not offer.",
        "Check `user`, `password`, `database` and `sslmode`; `psql` with the same values shows the same error.",
    ),
    "MS112": Code(
        "a temporary failure of Postgres",
        "A deadlock, a serialization failure, too many connections, a statement that took too long, a full disk, or a replica that takes "
        "no writes: temporary failures. They are retried with growing pauses, up to a limit.",
        "If it persists: look at the server's log, raise `statement_timeout`, or lower `connections`.",
    ),
    "MS113": Code(
        "Postgres refuses a statement",
        "A table, a column, a type or a permission is not as the pipeline expects. A retry would not help, so the pipeline stops at "
        "once; nothing of the epoch was written.",
        "The message contains Postgres' own message and its SQLSTATE.",
    ),
    "MS114": Code(
        "the table does not fit",
        "The table is missing while `create` is false, lacks a column or a unique index on the primary key, or a name is longer than "
        "Postgres takes (63 bytes; it would silently truncate it).",
        "Do as the help line says. `evolve: add_columns` adds columns by itself.",
    ),
    "MS115": Code(
        "the table was dropped",
        "Earlier epochs were written to a table that is no longer there. Creating it again would hide that those rows are lost.",
        "Restore the table, or start anew with `--reset QUERY`, which reads the input again.",
    ),
    "MS116": Code(
        "Postgres refuses a row",
        "A text is too long, a number out of range, a value breaks a constraint, a text holds a zero byte, or a key is null. Nothing of "
        "the epoch was written.",
        "Correct the row where it comes from, or set `on_error: {dead_letter: SINK}` on the sink: such rows are then found one by one.",
    ),
    "MS117": Code(
        "staged rows are lost",
        "Rows wait in unlogged tables until their epoch is committed, and a server that crashes empties those. The "
        "number of rows shows that; "
        "the epoch is staged again.",
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
        "logical replication is not available",
        "Changes of a table come out of Postgres' log, which the server must write in detail (`wal_level = logical`), with a slot and a "
        "publication that this user may make or that exist already.",
        "Set `wal_level = logical` and restart the server, give the user the attribute `REPLICATION`, or ask an "
        "administrator to create slot "
        "and publication beforehand; the message has the statement.",
    ),
    "MS122": Code(
        "the replication slot was dropped or moved",
        "The slot holds the changes that are not committed here yet. It was dropped, another process moved it, Postgres invalidated it "
        "because it retained too much of the log, or another process uses it. Changes in between cannot be read any more.",
        "Start anew with `--reset QUERY` and `snapshot: initial`: the table is read again, and its changes follow. "
        "A slot serves one source.",
    ),
    "MS123": Code(
        "the publication does not hold the table",
        "The publication is gone, or the table is not in it (dropping a table takes it out). Its changes would be silently missed.",
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
        "`on_schema_change: ignore` continues with the known columns: new ones are left out, dropped ones are null. To take new "
        "columns in, start anew with `--reset QUERY`.",
    ),
    "MS127": Code(
        "the table was truncated",
        "All rows were deleted at once, and the log does not contain them: a target that follows the changes would keep them.",
        "Empty the target too, then continue with `truncate: ignore`.",
    ),
    "MS128": Code(
        "changes no longer exist",
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
        "a function on a dynamic table is called in a wrong way",
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
        "A dynamic table is looked up by its key, row by row: it can be joined by JOIN and LEFT JOIN, on one equality "
        "with its key, after all "
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
