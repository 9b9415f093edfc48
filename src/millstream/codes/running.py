"""Codes of what can be asked of a running pipeline."""

from __future__ import annotations

from millstream.codes.code import Code

RUNNING: dict[str, Code] = {
    "MS185": Code(
        "this cannot be asked of a running pipeline",
        "A pause and a savepoint need a moment between two epochs. A pipeline in real-time mode has none, and a very long epoch does not "
        "come to it in time. A savepoint of a running pipeline is a local copy of a local checkpoint.",
        "Stop the pipeline first; `millstream checkpoint copy` copies the checkpoint of a stopped one.",
    ),
    "MS186": Code(
        "the folder of running pipelines is not private",
        "Each run has a socket in a folder of its user. Whoever can open the socket can stop the pipeline, so the folder must belong to "
        "the user, and others must have no permissions.",
        "Correct its owner and permissions (`chmod 700`), or set XDG_RUNTIME_DIR to a private folder.",
    ),
    "MS187": Code(
        "no such pipeline is running",
        "`list`, `top`, `stop` and similar commands talk to pipelines that run on this machine under the same user.",
        "`millstream list` shows them. If several runs have the same name, name one by its process.",
    ),
    "MS188": Code(
        "the inspector cannot open its page",
        "The port is in use, the address is not one of this machine, or others could reach it and no token is set.",
        "`--inspect` without an address takes a free port of this machine. For other addresses set MILLSTREAM_TOKEN.",
    ),
    "MS189": Code(
        "the rows of this node cannot be shown",
        "Rows are sampled at the nodes that Spark hands over for each epoch. For the nodes above these, the offsets of the epoch are read "
        "again. That must give the rows that the pipeline had: it is refused where a node keeps state or returns other rows each time, and "
        "in real-time mode, which has no epochs. At most 20 nodes and filters are watched at a time.",
        "Look at a node that the message names, or run `millstream plan` to see the queries of the pipeline.",
    ),
    "MS190": Code(
        "this cannot be previewed",
        "A preview reads real sources and changes nothing. Reading the changes of Postgres moves a replication slot, and a dynamic table "
        "that the stream fills would be written.",
        "Look at the pipeline while it runs: `millstream tap PIPELINE NODE`.",
    ),
}
