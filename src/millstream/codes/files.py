"""What can be wrong with a pipeline's file."""

from __future__ import annotations

from millstream.codes.code import Code

FILES: dict[str, Code] = {
    "MS001": Code(
        "the file cannot be read",
        "The path does not exist, is a directory, or cannot be read by this user; or it is not UTF-8 text.",
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
        "Many YAML readers silently use the second one, and half of the configuration is lost.",
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
        "The component has no option of that name, or it has no effect on this node. A misspelled option is never ignored silently.",
        "Use the nearest name shown, or `millstream schema` for all of them; remove an option without effect.",
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
        "Names of nodes are letters, digits, `_`, `-` and dots, and start with a letter; names that start with `_` are ours. The name of "
        "a pipeline is also that of its checkpoint's folder, so it contains no `/` or `\\` and does not start with a dot.",
        "Rename it.",
    ),
    "MS018": Code(
        "the function does not say what type it returns",
        "Spark has to know the type of every column before a row is read, and a Python function does not declare it by itself.",
        'Decorate it with `@millstream.function(returns="int64")`, or write the type beside its name under `functions`.',
    ),
    "MS019": Code(
        "the function has the name of one of Spark's own",
        "It would take the place of Spark's function in every query of the session.",
        "Give it another name under `functions`; the name in Python can stay.",
    ),
    "MS163": Code(
        "the CSV header does not fit the schema",
        "A column of the schema is not in the header, so every row would have null there. Often the delimiter is another one, a column has "
        "another name, or the file has no header at all.",
        'Use the header\'s column names, or set `options: {delimiter: ";"}` or `options: {header: false}`.',
    ),
    "MS164": Code(
        "no client for this kind of address",
        "Spark reads and writes `s3a://`, `gs://` and the like with jars that are not part of it.",
        "Add the jar that the message names with `spark.jars.packages` or `spark.jars` in `settings.spark`.",
    ),
    "MS169": Code(
        "a file outside the pipeline's folder",
        "`sql_file` and `include` name files in the folder of the pipeline or below it, so that the folder can be moved, packed and "
        "reviewed as a whole. Symlinks are followed before this is decided.",
        "Put the file into the pipeline's folder.",
    ),
    "MS170": Code(
        "a file that the pipeline names is empty",
        "`sql_file` or `include` leads to a file without text.",
        "Write it, or name another file.",
    ),
    "MS171": Code(
        "a file includes itself",
        "An `include` leads, directly or through other files, back to a file that is being read.",
        "Remove one of the includes that the message shows.",
    ),
    "MS172": Code(
        "there is no pipeline in the folder",
        "A folder stands for all `.yaml` and `.yml` files in it and below that hold `sources` or `sinks`. `millstream.yaml`, hidden "
        "folders and files that another one includes do not count.",
        "Name another folder, or write a pipeline: `millstream init NAME`.",
    ),
}
