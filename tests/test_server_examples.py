"""The examples with servers run as their README says, one command after the other, on servers as `millstream dev` starts them."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.servers.kafka import Cluster
from tests.servers.postgres import Database
from tests.warm import Done

pytestmark = pytest.mark.spark
EXAMPLES = Path(__file__).parent.parent / "examples"
SAID = {
    "09-kafka-alerts": ["wrote 1,000 rows", "alerts", '"card":"'],
    "10-kafka-changes": ["wrote 6 rows", "wrote 6 rows", '{"id":2,"status":null,"amount":null,"_op":"d","_seq":1}'],
    "12-postgres": ["wrote", "exactly once", '"customer":"ada"'],
    "13-live-views": ["wrote", "exactly once", '"place":1'],
}


def commands(folder: str) -> list[list[str]]:
    """What the README tells people to type."""
    (line,) = [line for line in (EXAMPLES / "README.md").read_text().splitlines() if line.startswith(f"| `{folder}`")]
    return [text.split()[1:] for text in re.findall(r"`(millstream run [^`]+)`", line)]


@pytest.mark.parametrize("folder", SAID)
def test_the_commands_of_the_readme_work(
    folder: str, kafka: Cluster, postgres: Database, tmp_path: Path, warm: Callable[..., Done], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KAFKA", kafka.address)
    monkeypatch.setenv("MILLSTREAM__CONNECTIONS__POSTGRES__PORT", str(postgres.server.port))
    postgres.clear_public()
    here = shutil.copytree(EXAMPLES / folder, tmp_path / folder)
    for command, said in zip(commands(folder), SAID[folder], strict=True):
        done = warm(*command, folder=here)
        assert done.returncode == 0, done.stderr
        assert said in done.stdout + done.stderr
