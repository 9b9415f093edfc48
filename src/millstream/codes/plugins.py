"""Codes of plugins: how they are found, loaded and called."""

from __future__ import annotations

from millstream.codes.code import Code

PLUGINS: dict[str, Code] = {
    "MS200": Code(
        "a plugin fails when imported",
        "The module of the plugin raised an exception, so that its class does not exist. The message has the exception, and the line of "
        "the plugin that raised it.",
        "Correct the plugin, or install what it needs. Pipelines that do not use it are not affected.",
    ),
    "MS201": Code(
        "two plugins have one name",
        "Two installed packages, or a package and a file of `settings.plugins`, have a plugin of the same kind and name. Which of them a "
        "pipeline means is not known, so neither is used.",
        'Uninstall one, or give yours a namespace: `@millstream.plugin("acme.lines")`. `millstream plugin list` shows where each comes '
        "from.",
    ),
    "MS202": Code(
        "a plugin is written for another version of the plugin interface",
        "The plugin names the version of the interface that it was written for, and this Millstream has another one.",
        "Install a version of the plugin for this Millstream, or another Millstream.",
    ),
    "MS203": Code(
        "an option of a plugin has a name that is taken",
        "Every node has `from`, `primary_key`, `on_error`, `event_time`, `telemetry`, `connection` and `description`, and `type` names "
        "the plugin. An option of the same name could never be given. The same holds for methods of the base class, "
        "such as `write` of a sink.",
        "Rename the field of the plugin's class.",
    ),
    "MS204": Code(
        "there is no plugin where `settings.plugins` looks for one",
        "The file or module does not exist, or it has no class with the decorator `@millstream.plugin`.",
        "Correct the name; it is relative to the pipeline's file.",
    ),
    "MS205": Code(
        "a preprocessor failed, or did not return YAML",
        "A preprocessor gets the text of the pipeline and returns the text that is parsed. It raised an exception, returned something "
        "that is not text, or returned text that is not YAML. The place in the message is in the returned text.",
        "Correct the preprocessor. `millstream check FILE` tries it again; nothing has run.",
    ),
    "MS206": Code(
        "a plugin failed",
        "A method of the plugin that runs on the driver, such as `commit`, raised an exception. The epoch is not done: the next start "
        "repeats it, and the plugin's ledger decides whether the target has it already.",
        "Correct the plugin at the line in the message. For an outside system that is away for a moment, raise "
        "`millstream.TemporaryFailure`: then the epoch is tried again.",
    ),
    "MS207": Code(
        "a plugin cannot reach its system for the moment",
        "The plugin raised `TemporaryFailure`. The epoch is tried again, as often as `settings.restart` allows.",
        "See whether the system works, and run the pipeline again.",
    ),
    "MS208": Code(
        "the message of a sink cannot travel to the driver",
        "What `write` returns is pickled on a worker and read on the driver. Objects such as connections and open files cannot be pickled.",
        "Return plain data: numbers, texts, bytes, lists, dictionaries.",
    ),
    "MS209": Code(
        "an entry point and its plugin have different names",
        "Pipelines find a plugin by the name of its entry point, and checkpoints by the name that the decorator gives it.",
        'Give both the same name: `sink.acme.lines` for `@millstream.plugin("acme.lines")` on a sink.',
    ),
}
