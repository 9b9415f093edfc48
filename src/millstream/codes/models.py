"""Codes of models that score rows."""

from __future__ import annotations

from millstream.codes.code import Code

MODELS: dict[str, Code] = {
    "MS210": Code(
        "a model cannot be used",
        "The file is missing or is no ONNX model, its weights are in other files, its first axis is fixed so that it takes one row at a "
        "time, or it failed on rows that fit its inputs.",
        "Export the model as one file with a dynamic first axis. Paths are relative to the pipeline.",
    ),
    "MS211": Code(
        "a model and the rows do not fit together",
        "Each input of the model gets a column, or several columns side by side, with a type that its own type can hold. Each new column "
        "is an output of the model, or one value of it.",
        "Correct `inputs` and `outputs`; the message names what the model has.",
    ),
    "MS212": Code(
        "a row cannot be scored",
        "A column of the input is null, a vector has another length than the model takes, a number does not fit into the input's type, the "
        "model fails on the row, or the result is not a number (NaN).",
        "`on_error: drop` leaves such rows out, `on_error: {dead_letter: SINK}` keeps them. `coalesce(amount, 0)` in a node above gives a "
        "null a value; a model that knows missing values takes `coalesce(amount, double('NaN'))`.",
    ),
}
