"""Completion in shells: pipeline files and error codes. `millstream --install-completion` installs it."""

from __future__ import annotations

from pathlib import Path


def pipeline_files(incomplete: str) -> list[str]:
    """YAML files and folders whose paths start with the text."""
    folder, _, start = incomplete.rpartition("/")
    base = Path(folder or ("/" if incomplete.startswith("/") else "."))
    prefix = f"{folder}/" if folder or incomplete.startswith("/") else ""
    found = sorted(base.iterdir()) if base.is_dir() else []
    files = [f"{prefix}{path.name}" for path in found if path.suffix in {".yaml", ".yml"} and path.name.startswith(start)]
    folders = [f"{prefix}{path.name}/" for path in found if path.is_dir() and path.name.startswith(start) and not path.name.startswith(".")]
    return files + folders


def error_codes(incomplete: str) -> list[tuple[str, str]]:
    """Codes that start with the text, and their titles."""
    from millstream.codes import CODES

    return [(code, known.title) for code, known in CODES.items() if code.startswith(incomplete.upper())]
