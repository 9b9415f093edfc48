"""The code blocks of all pages: page, line, language, text, and what a comment before the block says about it.

<!-- file: NAME -->      the block is kept as this file for the commands that follow; a first line `# NAME` says the same
<!-- skip: REASON -->    the block is not tried
<!-- exit: CODE -->      its last command ends with this exit code
<!-- output -->          the lines are part of what the command before printed
<!-- mistake: CODE -->   the pipeline has this mistake
<!-- shell -->           the block is one script for bash
<!-- server: NAME -->    the block needs this server
"""

from __future__ import annotations

import re
import textwrap
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
_BLOCK = re.compile(
    r"(?:^[ \t]*<!-- (?P<key>[a-z]+)(?:: (?P<value>.*?))? -->\n)?"
    r"^ *```(?P<language>\w*)\n(?P<text>.*?)^ *```$",
    re.M | re.S,
)
_NAMED = re.compile(r"(?:#|--) ([\w./-]+\.(?:yaml|py|sql|json))\b")


@dataclass(frozen=True)
class Block:
    """One block of a page."""

    page: str
    line: int
    language: str
    text: str
    key: str = ""
    value: str = ""

    @property
    def place(self) -> str:
        return f"{Path(self.page).name}:{self.line}"

    @property
    def file(self) -> str:
        """The file that the block shows; empty: none."""
        named = _NAMED.match(self.text)
        return self.value if self.key == "file" else named[1] if named else ""

    @property
    def whole(self) -> bool:
        """Whether it is a pipeline that can run as it is."""
        return self.language == "yaml" and all(re.search(rf"^{section}:", self.text, re.M) for section in ("sources", "sinks"))


def pages() -> list[str]:
    """Every page with code, relative to the project."""
    found = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
    return [path.relative_to(ROOT).as_posix() for path in found]


def blocks_of(page: str) -> list[Block]:
    """The blocks of one page, those that are skipped left out."""
    text = (ROOT / page).read_text(encoding="utf-8")
    found = []
    for match in _BLOCK.finditer(text):
        line = text.count("\n", 0, match.start("language")) + 1
        block = Block(page, line, match["language"], textwrap.dedent(match["text"]), match["key"] or "", match["value"] or "")
        if block.key != "skip":
            found.append(block)
    return found
