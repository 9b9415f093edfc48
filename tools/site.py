"""The docs as a web site, in `site/`: all pages with their links checked, searchable, and nothing that a browser would fetch elsewhere."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
PAGES = ROOT / "build" / "pages"
SITE = ROOT / "site"
_COPIED = ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "LICENSE", "bench/README.md", "bench/plots", "docs", "examples")
_FETCHED = re.compile(
    r"""<(?:script|link|img|iframe|source)\b[^>]*?\b(?:src|href)=["']?((?:https?:)?//[^"' >]+)"""  # elements
    r"""|url\(["']?((?:https?:)?//[^"')]+)"""  # styles
)


def main() -> int:
    _collect()
    command = [sys.executable, "-m", "mkdocs", "build", "--strict"]  # with `--quiet` it would count no warnings
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, check=False, env=environment, capture_output=True, text=True)
    if done.returncode:
        print("\n".join(line for line in done.stderr.splitlines() if line.startswith(("WARNING", "ERROR", "Aborted"))))
        return done.returncode
    found = fetched(SITE)
    built = f"site/index.html, {len(list(SITE.rglob('*.html')))} pages"
    print("\n".join(f"{page}: {address} would be fetched" for page, address in found) or built)
    return 1 if found else 0


def _collect() -> None:
    """The pages in the project's own layout, so that their links lead to the same places."""
    shutil.rmtree(PAGES, ignore_errors=True)
    for name in _COPIED:
        source, target = ROOT / name, PAGES / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target, ignore=shutil.ignore_patterns(".*", "__pycache__", "out"))
        else:
            shutil.copyfile(source, target)


def fetched(site: Path) -> list[tuple[str, str]]:
    """Pages and styles → what a browser would fetch from another host to show them."""
    found = []
    for path in sorted([*site.rglob("*.html"), *site.rglob("*.css")]):
        for first, second in _FETCHED.findall(path.read_text(encoding="utf-8")):
            found.append((path.relative_to(site).as_posix(), first or second))
    return found


if __name__ == "__main__":
    sys.exit(main())
