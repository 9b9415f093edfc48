"""The common part of plugins that are no nodes: functions, preprocessors and side outputs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from pydantic import BaseModel, ConfigDict

from millstream.plan.option_mistakes import Checked


class PluginOptions(BaseModel, metaclass=Checked):
    """Options, and what lists and docs say of them."""

    model_config = ConfigDict(frozen=True, extra="forbid", validate_by_name=True, validate_by_alias=True, arbitrary_types_allowed=True)

    type: ClassVar[str]
    summary: ClassVar[str] = ""
    """One line for lists and docs; the class docstring says more."""
    example: ClassVar[str] = ""
    """A YAML block that a test loads."""
    text_files: ClassVar[Mapping[str, str]] = {}
