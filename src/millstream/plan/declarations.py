"""The user's functions that SQL can call, and their declarations.

    @millstream.function(returns="int64")
    def double(values: pa.Array) -> pa.Array: ...

A declaration is plain data on the function itself, so that a worker needs no Millstream to receive one. A check reads
it in the source's syntax tree and imports nothing; a run loads the function and reads the attribute.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa
from pydantic import BaseModel, ConfigDict

from millstream.errors import Diagnostic, RunError, Span
from millstream.plan import types
from millstream.plan.components.udf import Udf
from millstream.plan.functions import FunctionRef
from millstream.plan.options import TypeName

ATTRIBUTE = "__millstream__"
Function = TypeVar("Function", bound=Callable[..., Any])


def function(*, returns: str | pa.DataType, aggregate: bool = False, deterministic: bool = True) -> Callable[[Function], Function]:
    """Declare a function for SQL: its return type, whether it is an aggregate, whether equal input gives equal output."""
    kind = returns if isinstance(returns, str) else types.name_of(returns)
    types.parse(kind)

    def declare(decorated: Function) -> Function:
        setattr(decorated, ATTRIBUTE, {"returns": kind, "aggregate": aggregate, "deterministic": deterministic})
        return decorated

    return declare


class FunctionOptions(BaseModel):
    """A function of yours that SQL can call. Options here take precedence over the function's own declaration."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    function: FunctionRef
    """`module:function` or `path.py:function`, relative to the pipeline: one pyarrow Array per argument → one Array of equal length."""
    returns: TypeName | None = None
    """The type of what it returns. Default: what `@millstream.function(returns=…)` says."""
    aggregate: bool | None = None
    """Whether it computes one value from all values of a group."""
    deterministic: bool | None = None
    """Whether equal input gives equal output. Set `false` for a function that reads a clock, uses random numbers or calls another
    system."""


@dataclass(frozen=True, slots=True)
class Resolved:
    """A loaded function and its complete declaration."""

    name: str
    call: Callable[..., Any]
    returns: pa.DataType
    aggregate: bool
    deterministic: bool


@dataclass(frozen=True, slots=True)
class UserFunction:
    """A name that SQL can call."""

    name: str
    options: FunctionOptions
    span: Span | None = field(default=None, compare=False)
    plugin: Udf | None = None
    """The plugin that it is, with its options."""

    def document(self) -> Any:
        """The function as its YAML."""
        if self.plugin is not None:
            return {"type": self.plugin.type, **self.plugin.model_dump(mode="json", by_alias=True, exclude_defaults=True)}
        values = self.options.model_dump(mode="json", exclude_none=True)
        return values["function"] if len(values) == 1 else values

    def aggregates(self, directory: Path) -> bool:
        """Whether it is an aggregate, as far as that is known without importing it."""
        if self.options.aggregate is not None:
            return self.options.aggregate
        return bool((self.source_says(directory) or {}).get("aggregate", False))

    def source_says(self, directory: Path) -> dict[str, Any] | None:
        """The declaration in the function's source; None when only running it shows it."""
        if self.options.function.handed_over:
            return dict(self.options.function.attribute(ATTRIBUTE) or {})
        definition = self.options.function.definition(directory)
        if definition is None:
            return None
        if not definition.decorator_list:
            return {}
        return next((said for said in map(_keywords, definition.decorator_list) if said), None)

    def resolve(self, directory: Path) -> Resolved:
        """Load the function. A RunError says what is missing."""
        if self.plugin is not None:
            declared = self.plugin.declaration()
            kind = types.parse(declared["returns"])
            return Resolved(self.name, self.plugin.for_workers(), kind, declared["aggregate"], declared["deterministic"])
        try:
            call = self.options.function.load(directory)
        except ValueError as error:
            raise RunError(Diagnostic("MS016", f"function `{self.name}`: {error}", self.span)) from error
        declared = {"aggregate": False, "deterministic": True, **getattr(call, ATTRIBUTE, {})}
        declared |= self.options.model_dump(exclude={"function"}, exclude_none=True)
        if "returns" not in declared:
            raise RunError(undeclared(self))
        return Resolved(self.name, call, types.parse(declared["returns"]), declared["aggregate"], declared["deterministic"])


def user_function(name: str, value: Any, span: Span | None = None) -> UserFunction:
    """Build it from YAML: a reference, or a map with options."""
    options = {"function": value} if not isinstance(value, dict) else value
    return UserFunction(name, FunctionOptions.model_validate(options), span)


def udf_function(name: str, plugin: Udf, span: Span | None = None) -> UserFunction:
    """A function that is a plugin."""
    options = FunctionOptions.model_validate({"function": FunctionRef(plugin.call), **plugin.declaration()})
    return UserFunction(name, options, span, plugin)


def undeclared(used: UserFunction) -> Diagnostic:
    reference = used.options.function.reference
    help_ = f'decorate it with `@millstream.function(returns="int64")`, or write `{used.name}: {{function: {reference}, returns: int64}}`'
    return Diagnostic("MS018", f"function `{used.name}` (`{reference}`) does not say what type it returns", used.span, help=help_)


def _keywords(decorator: ast.expr) -> dict[str, Any]:
    """`@function(returns="int64")`: the keywords that are constants."""
    if not isinstance(decorator, ast.Call):
        return {}
    return {word.arg: word.value.value for word in decorator.keywords if word.arg and isinstance(word.value, ast.Constant)}
