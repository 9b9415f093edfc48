"""What can go wrong in a run, and in functions."""

from __future__ import annotations

from millstream.codes.code import Code

RUNS: dict[str, Code] = {
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
        "What it returned is not a RecordBatch, or its columns differ from the declared schema. A function without `schema` is called "
        "once with no rows to find its columns; when that fails, its schema is not known.",
        "Return a batch of the declared schema, or correct `schema`. Declare `schema` for a function that cannot be called with no rows.",
    ),
    "MS065": Code(
        "a Python worker died",
        "The process that runs the function ended: killed for its memory, crashed in native code, or ended by itself.",
        "See the log under the checkpoint; smaller batches need less memory.",
    ),
    "MS066": Code(
        "Spark rejects the query",
        "Spark's analyzer decides which SQL is valid.",
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
        "An outside system failed more often than `settings.restart` allows.",
        "Run again when it works; no row is lost.",
    ),
    "MS070": Code("a pipeline test failed", "The rows differ from what `expect` says.", "See the difference shown."),
    "MS071": Code(
        "rows came too late",
        "Their window had closed, and its result was written; `late: fail` stops the pipeline then. Nothing of the epoch was written.",
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
        "Rows are grouped by key, and a row without one has no group.",
        "Filter such rows out before, or give the node `on_error: drop` or `{dead_letter: SINK}`.",
    ),
    "MS074": Code(
        "no such side output",
        "An `output` node reads what a `process` node's class declares in `outputs`, by its name.",
        "Use the nearest name shown, or declare the output in the class.",
    ),
    "MS075": Code(
        "real-time mode",
        "Rows are passed on at once, by Spark's own operators and its own Kafka writer: no state, no Python, no dead letters, one "
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
        "depend on epoch boundaries.",
        "Call it in a `sql` transform with GROUP BY.",
    ),
    "MS166": Code(
        "a value of `partition_by` cannot be the name of a directory",
        "The directory is called `column=value`, some characters written as `%2F`; file systems take names of at most 255 bytes, and none "
        "with a NUL character. The epoch is not written.",
        "`on_error: drop` leaves such rows out and `on_error: {dead_letter: SINK}` keeps them; or partition by something shorter, such as "
        "`substr(url, 1, 50)`.",
    ),
    "MS173": Code(
        "these pipelines cannot run together",
        "Pipelines of one `millstream run` share one process and one Spark. So they need names and checkpoints of their own, the same "
        "settings for Spark (`master`, `profile`, `driver_memory`, `spark`), and no two Python modules of one name beside them.",
        "The message says what differs: make it equal, or run the pipelines one by one.",
    ),
}
