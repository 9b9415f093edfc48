"""Plugins of a pipeline, before it is parsed: the files that `settings.plugins` names, and the preprocessors that rewrite its text.

Both settings are read from `millstream.yaml`, the environment and the flags; from the pipeline itself only if its text is YAML before any
preprocessor has seen it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from pydantic import ValidationError

from millstream.errors import Diagnostic, MillstreamError, Span, SpecError, nearest
from millstream.plan.components.calls import place_of
from millstream.plan.components.preprocessor import PipelineText, Preprocessor
from millstream.plan.secret_references import secrets_in
from millstream.registry import Registry
from millstream.secrets import Redactor
from millstream.spec.layers import from_environment, from_flags, overlay
from millstream.spec.problems import diagnose
from millstream.spec.tree import Items, Map, Scalar, Tree, TreeReader, plain

_SETTINGS = ("plugins", "preprocessors")


@dataclass(frozen=True, slots=True)
class Prepared:
    """The text to parse."""

    text: str
    file: str
    """Its name in messages."""
    rewritten_by: str = ""
    """The last preprocessor that changed it."""

    def diagnose(self, error: MillstreamError) -> MillstreamError:
        """A text that is not YAML is the preprocessor's mistake, if one has changed it."""
        if not self.rewritten_by:
            return error
        found = [
            replace(each, code="MS205", message=f"preprocessor `{self.rewritten_by}` did not return YAML: {each.message}")
            for each in error.diagnostics
        ]
        return SpecError(found)


class PluginLoading:
    """Loads the plugins of one pipeline file."""

    def __init__(
        self, path: Path, config: Map | None, environ: Mapping[str, str], flags: Mapping[str, str], problems: list[Diagnostic]
    ) -> None:
        self.path, self.environ, self.problems = path, environ, problems
        self._config = config.entries.get("settings") if config else None
        self._flags = flags

    def prepare(self, text: str) -> tuple[Registry, Prepared]:
        """The components that the pipeline can name, and its text after all preprocessors."""
        settings = self._settings(text)
        registry = Registry.installed()
        for name in _texts(settings.get("plugins")):
            try:
                registry = registry.with_files([str(name.value)], self.path.parent.absolute())
            except MillstreamError as error:
                self.problems += [_placed(found, name.span) for found in error.diagnostics]
        prepared = Prepared(text, str(self.path))
        for block in _blocks(settings.get("preprocessors")):
            prepared = self._rewrite(prepared, block, registry)
        return registry, prepared

    def _settings(self, text: str) -> Mapping[str, Tree]:
        own = self._own_settings(text) if any(name in text for name in _SETTINGS) else None
        tree = overlay(own, self._config)
        tree = overlay(tree, from_environment("settings", None, self.environ))
        tree = overlay(tree, from_flags({name: value for name, value in self._flags.items() if name in _SETTINGS}))
        return tree.entries if isinstance(tree, Map) else {}

    def _own_settings(self, text: str) -> Tree | None:
        try:
            root = TreeReader(str(self.path), text).read()
        except MillstreamError:
            return None  # what is wrong is reported when the text is parsed
        return root.entries.get("settings") if isinstance(root, Map) else None

    def _rewrite(self, prepared: Prepared, block: Map, registry: Registry) -> Prepared:
        found = self._preprocessor(block, registry)
        if found is None:
            return prepared
        try:
            text = found.rewrite(prepared.text, PipelineText(self.path, self.environ))
        except Exception as error:
            said = Redactor(secrets_in(found))(str(error))
            message = f"preprocessor `{found.type}` raised {type(error).__name__}: {said}"
            raise SpecError([*self.problems, Diagnostic("MS205", message, block.span, detail=place_of(error))]) from error
        if not isinstance(text, str):
            message = f"preprocessor `{found.type}` returned a {type(text).__name__}, not text"
            raise SpecError([*self.problems, Diagnostic("MS205", message, block.span, help="let `rewrite` return the text")])
        return prepared if text == prepared.text else Prepared(text, f"{self.path} (after {found.type})", found.type)

    def _preprocessor(self, block: Map, registry: Registry) -> Preprocessor | None:
        """The preprocessor with its options; its mistakes are reported by `settings` as far as they concern the block itself."""
        if "type" not in block.entries:
            return None
        name, span = str(plain(block.entries["type"])), block.entries["type"].span
        try:
            model = registry.find("preprocessor", name)
        except MillstreamError as error:
            raise SpecError([*self.problems, *(_placed(found, span) for found in error.diagnostics)]) from error
        if model is None:
            help_ = nearest(name, registry.types("preprocessor")) or "`millstream plugin list` shows what is installed"
            raise SpecError([*self.problems, Diagnostic("MS010", f"unknown preprocessor `{name}`", span, help=help_)])
        options = {key: value for key, value in plain(block).items() if key != "type"}
        try:
            found: Preprocessor = model.model_validate(options)
        except ValidationError as error:
            raise SpecError([*self.problems, *diagnose(error, block, f"preprocessor `{name}`", [model])]) from None
        return found


def _placed(found: Diagnostic, span: Span) -> Diagnostic:
    """A mistake of a plugin at the place that names it, unless it has a place of its own."""
    return replace(found, span=found.span or span)


def _texts(tree: Tree | None) -> Iterator[Scalar]:
    """The names in a list, or in one text with commas."""
    for each in tree.items if isinstance(tree, Items) else (tree,):
        if isinstance(each, Scalar) and each.value:
            yield from (replace(each, value=part.strip()) for part in str(each.value).split(",") if part.strip())


def _blocks(tree: Tree | None) -> Iterator[Map]:
    for each in tree.items if isinstance(tree, Items) else ():
        if isinstance(each, Map):
            yield each
