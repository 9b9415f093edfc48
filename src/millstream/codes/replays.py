"""What can go wrong when an epoch is repeated, or when a target does not hold what it was given."""

from __future__ import annotations

from millstream.codes.code import Code

REPLAYS: dict[str, Code] = {
    "MS140": Code(
        "a target lacks epochs that were committed to it",
        "The checkpoint records which epochs a sink has received, and the ledger in the target says less: the target was restored "
        "from an older copy, emptied, or the pipeline points to another one. Continuing would leave an unnoticed hole.",
        "Restore the target or point to the right one. `--redeliver` repeats the missing epochs for it and for no other sink; "
        "`--accept-target` continues without them and names them in the report; `--reset QUERY` starts anew.",
    ),
    "MS141": Code(
        "missing epochs cannot be delivered again",
        "`--redeliver` repeats epochs as they were. That takes their offsets in the checkpoint (`settings.retain_epochs`, 100 unless "
        "said otherwise), for a query with state also the state of that time, steps that give the same rows each time, and sources "
        "that can be read again.",
        "Restore the target from a newer copy; `--accept-target` continues without these epochs; `--reset QUERY` with an empty target "
        "reads everything again.",
    ),
    "MS142": Code(
        "a half-done epoch has other messages than it had",
        "A Kafka sink had begun to write the epoch, lane by lane, and was stopped. Repeated, the epoch has other messages than the count "
        "and the hash in the checkpoint say: its input or your code changed, or a step is not deterministic. Some lanes hold the "
        "old messages; writing the new ones to the others would lose some and double others.",
        "Undo what changed and run again. Where that is not possible, `--accept-replay` finishes the epoch: lanes that are written stay, "
        "the others get the new messages; afterwards compare that epoch in the topic by hand. Steps that vary say so: "
        "`deterministic: false`.",
    ),
    "MS143": Code(
        "files of a half-done epoch changed",
        "An epoch that was planned is read again after a stop, and files that it consists of are gone or were written to since. Sinks that "
        "hold the epoch and sinks that do not would get different rows, and rows of a file that is gone would be lost. While no sink "
        "holds any of the epoch and none of its rows are kept, a file that was changed is read as it is now.",
        "Restore the files with their modification times, or `--accept-replay` finishes the epoch with the current files.",
    ),
}
