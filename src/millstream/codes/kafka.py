"""What can be wrong with Kafka and its registry."""

from __future__ import annotations

from millstream.codes.code import Code

KAFKA: dict[str, Code] = {
    "MS090": Code(
        "an outside system cannot be reached",
        "None of its addresses accepts a connection, or one does and then does not answer. The message lists what was tried.",
        "Check address, port and network; for Kafka also `security.protocol`. A pipeline that has run before tries again by itself.",
    ),
    "MS091": Code(
        "a topic does not exist",
        "The cluster answers, but has no topic of that name. Reading does not create topics.",
        "Use the nearest name shown, or create the topic first.",
    ),
    "MS092": Code(
        "an outside system refuses access",
        "The user's name or password is wrong, the mechanism is not offered, or the user may not do this.",
        "Correct `security`, or have the permission granted.",
    ),
    "MS093": Code(
        "messages are not where they should be",
        "Messages that were not read yet no longer exist (retention, or a topic that was deleted and created again), or "
        "the end of a bounded "
        "source does not exist.",
        "`on_data_loss: continue` continues with the remaining messages; `--reset QUERY` reads from the start.",
    ),
    "MS094": Code(
        "the progress belongs to another cluster",
        "Offsets are not valid in another Kafka cluster: continuing would lose or repeat messages.",
        "Correct `bootstrap_servers`, or start the query anew with `--reset QUERY`.",
    ),
    "MS095": Code(
        "another run writes as this sink",
        "A Kafka sink claims its lanes when it starts, and the newest claim counts: an older run that is still alive is refused by Kafka, "
        "so that no row is written twice. Usual cause: a copy of the pipeline runs on a copy of the checkpoint.",
        "Run only one copy. Rows of both are written once.",
    ),
    "MS096": Code(
        "the target's markers are missing",
        "A Kafka sink keeps a marker per lane in a consumer group of its own. One was deleted or rolled back (the group or "
        "the topic was deleted, its offsets expired during a long pause in the middle of an epoch, or the cluster was restored), so it is "
        "unknown whether the rows are there; nothing was written.",
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
        "`transaction_timeout`. Nothing of it is visible; the epoch is repeated.",
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
}
