"""What can go wrong with scripts in TypeScript and JavaScript."""

from __future__ import annotations

from millstream.codes.code import Code

SCRIPTS: dict[str, Code] = {
    "MS191": Code(
        "a script cannot be parsed",
        "The text is not TypeScript or JavaScript; the message has the parser's words and the place.",
        "Correct the text at that place. `language: javascript` takes no types.",
    ),
    "MS192": Code(
        "a script has no function to call",
        "A script is one function of a row, or several functions and constants, of which the function to call is named `invoke`. It has "
        "no modules, at most 1 MB, and the code around its functions must end.",
        "Name the function to call `invoke`, and write what it needs into the script.",
    ),
    "MS193": Code(
        "a script raised an exception",
        "The function threw for a row, which the message shows with the stack in the script's own lines.",
        "Correct the script. If rows are at fault, `on_error: drop` leaves them out and `on_error: {dead_letter: SINK}` keeps them with "
        "the error.",
    ),
    "MS194": Code(
        "a script returned what does not match its schema",
        "A field is not in the schema, or its value is not of the declared type: NaN where an integer is declared, a text for a "
        "number, undefined instead of a row or null. On a changelog: several rows for an update or a delete, or another op.",
        "Return what is declared, or correct `schema`; docs/scripts.md has the table of types. `on_error` handles single rows.",
    ),
    "MS195": Code(
        "a script met a limit",
        "The function did not return in time, or needed more memory or a deeper stack than it may have, for one row alone. The worker "
        "goes on with a fresh engine.",
        "Correct the script, or raise `timeout` or `memory`. `on_error` handles such rows like other rejects.",
    ),
    "MS196": Code(
        "the engine of a script is not installed",
        "Scripts run in QuickJS (the extra `script`) or Deno (the extra `deno`). They must be installed where the pipeline is checked "
        "and on Spark's workers.",
        "`pip install 'millstream[script]'`, or `'millstream[deno]'` for `engine: deno`.",
    ),
    "MS197": Code(
        "a column has a type that scripts do not know",
        "Intervals, variants and similar types have no counterpart in JavaScript.",
        "Cast or drop the column in a node above; docs/scripts.md has the table of types.",
    ),
    "MS198": Code(
        "a script has a type error",
        "`millstream check --types` asked the TypeScript compiler about the script, with the types of the node's rows.",
        "Correct the script, or the types that it declares. `millstream types FILE NODE` prints the types of the rows.",
    ),
    "MS199": Code(
        "a function of batches over a changelog",
        "In the mode `batch` nobody knows which row became which, so that ops cannot stay with their rows.",
        "Use `mode: row`, or return `_op` and declare it in `schema`.",
    ),
}
