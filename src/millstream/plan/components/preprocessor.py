"""Base class for preprocessors: the text of a pipeline before it is parsed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from pydantic import BaseModel, ConfigDict

from millstream.plan.option_mistakes import Checked


@dataclass(frozen=True, slots=True)
class PipelineText:
    """What a preprocessor gets beside the text."""

    file: Path
    """The file of the pipeline."""
    environ: Mapping[str, str]


class Preprocessor(BaseModel, metaclass=Checked):
    """Turns the text of a pipeline into the text that is parsed. It implements `rewrite`; the next one gets its result."""

    model_config = ConfigDict(frozen=True, extra="forbid", validate_by_name=True, validate_by_alias=True, arbitrary_types_allowed=True)
    plugin_kind: ClassVar[str] = "preprocessor"

    type: ClassVar[str]
    summary: ClassVar[str] = ""
    """One line for lists and docs; the class docstring says more."""
    example: ClassVar[str] = ""
    text_files: ClassVar[Mapping[str, str]] = {}

    def rewrite(self, text: str, pipeline: PipelineText) -> str:
        """The text that is parsed. Called by every command that reads the pipeline, so it must be quick and change nothing else."""
        raise NotImplementedError
