"""Secrets are references until they are used.

A `Secret` prints as its reference (`secret://env/NAME`) or as `***`, in every representation: repr, JSON, YAML, errors. Only `reveal()`
reads the value. A revealed value may appear in another system's error text, so a run has a `Redactor` made from the plan's secrets and
passes all foreign text through it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator, GetCoreSchemaHandler
from pydantic_core import CoreSchema, core_schema

from millstream.errors import SecretError
from millstream.worker.masking import MASK, hide

SCHEME = "secret://"
_TELLING = ("password", "secret", "token", "key", "credential")
_NAME = r"[\w.-]*(?:pas{1,2}w|passphrase|secret|token|credential|(?:api|access|private)_?key)[\w.-]*"
_OPEN = r"(?![\"']?secret://|[\"']?\$\{)"
"""A reference, or a variable, is not hidden."""
_LINE = re.compile(rf"^(\s*(?:- )?{_NAME}\s*:\s++){_OPEN}([^\s\[{{].*)$", re.IGNORECASE)
_INLINE = re.compile(rf"((?<![\w.-]){_NAME}[\"']?\s*[:=](?!//)\s*+){_OPEN}(\"[^\"]*\"|'[^']*'|[^\"',}}\])#]+)", re.IGNORECASE)


class Secret:
    """A value that is never shown. Written as `secret://env/NAME` or `secret://file/PATH`; a literal is accepted, and hidden."""

    __slots__ = ("_literal", "reference")

    def __init__(self, text: str) -> None:
        referenced = text.startswith(SCHEME)
        self.reference = text if referenced else MASK
        self._literal = None if referenced else text
        if referenced and self._split()[0] not in {"env", "file"}:
            raise SecretError("secrets are written `secret://env/NAME` or `secret://file/PATH`")

    def reveal(self) -> str:
        """The value itself; ValueError when it cannot be read."""
        if self._literal is not None:
            return self._literal
        kind, name = self._split()
        if kind == "env":
            if name not in os.environ:
                raise SecretError(f"the environment variable `{name}` is not set")
            return os.environ[name]
        try:
            return Path("/" + name if self.reference.startswith(f"{SCHEME}file//") else name).read_text(encoding="utf-8").rstrip("\n")
        except OSError as error:
            raise SecretError(f"the file `{name}` cannot be read: {error.strerror}") from error

    def _split(self) -> tuple[str, str]:
        kind, _, name = self.reference.removeprefix(SCHEME).partition("/")
        return kind, name.lstrip("/") if kind == "file" else name

    def __str__(self) -> str:
        return self.reference

    __repr__ = __str__

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and (self.reference, self._literal) == (other.reference, other._literal)

    def __hash__(self) -> int:
        return hash(self.reference)

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        from_text = core_schema.no_info_after_validator_function(cls, core_schema.str_schema())
        return core_schema.json_or_python_schema(
            json_schema=from_text,
            python_schema=core_schema.no_info_wrap_validator_function(
                lambda value, check: value if isinstance(value, cls) else check(value), from_text
            ),
            serialization=core_schema.plain_serializer_function_ser_schema(str),
        )


def _to_secret(value: Any) -> Any:
    return Secret(value) if isinstance(value, str) and value.startswith(SCHEME) else value


TextOrSecret = Annotated[str | Secret, BeforeValidator(_to_secret)]
"""A text that may be given as a reference to a secret."""


def mask_option(name: str, value: Any) -> Any:
    """An option with any value: references to secrets stay, other values under secret-like names are hidden, at any depth."""
    if isinstance(value, dict):
        return {inner: mask_option(str(inner), part) for inner, part in value.items()}
    is_secret_name = any(word in name.lower() for word in _TELLING)
    return MASK if is_secret_name and value is not None and not str(value).startswith(SCHEME) else value


def is_secret_name(name: str) -> bool:
    """Whether an option of this name, also if misspelled, holds a secret."""
    return re.fullmatch(_NAME, name, re.IGNORECASE) is not None


def mask_line(line: str) -> str:
    """A line of a user's file in a form that may be shown: values under secret-like names are hidden, with the same width."""
    return (_LINE if _LINE.match(line) else _INLINE).sub(lambda found: found[1] + "*" * len(found[2]), line)


class Redactor:
    """Replaces revealed values in foreign text."""

    def __init__(self, secrets: Iterable[Secret]) -> None:
        self.values = tuple(sorted({value for secret in secrets if (value := _reveal_or_empty(secret))}, key=len, reverse=True))

    def __call__(self, text: str) -> str:
        return hide(text, self.values)


def redacted(value: Any, redact: Callable[[str], str]) -> Any:
    """Plain data with its texts redacted. Numbers and the keys of objects stay: a secret that looks like a number must not break them."""
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, Mapping):
        return {key: redacted(each, redact) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [redacted(each, redact) for each in value]
    return value


def _reveal_or_empty(secret: Secret) -> str:
    try:
        return secret.reveal()
    except ValueError:
        return ""
