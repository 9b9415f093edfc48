"""Base class for preprocessors: the text of a pipeline before it is parsed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from millstream.plan.components.plugin_options import PluginOptions


@dataclass(frozen=True, slots=True)
class PipelineText:
    """What a preprocessor gets beside the text."""

    file: Path
    """The file of the pipeline."""
    environ: Mapping[str, str]


class Preprocessor(PluginOptions):
    """Turns the text of a pipeline into the text that is parsed. It implements `rewrite`; the next one gets its result."""

    plugin_kind: ClassVar[str] = "preprocessor"

    def rewrite(self, text: str, pipeline: PipelineText) -> str:
        """The text that is parsed. Called by every command that reads the pipeline, so it must be quick and change nothing else."""
        raise NotImplementedError
