"""A disk of its own whose power can be cut: an ext4 image behind a loop device. A copy of the image holds what has reached the disk so far.

Another program's `fsync` comes before each cut. It makes ext4 write its journal, names included, and leaves the contents of everybody
else's files in memory: the hardest moment to lose power.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path


class Disk:
    """Mounted at `place`."""

    def __init__(self, folder: Path) -> None:
        self._image, self._cuts, self.place = folder / "disk.img", folder, folder / "disk"
        self.place.mkdir()
        with self._image.open("wb") as file:
            file.truncate(32 << 20)
        subprocess.run(["mkfs.ext4", "-q", "-E", "lazy_itable_init=0,lazy_journal_init=0", self._image], check=True, capture_output=True)
        self.mount(self._image)

    def mount(self, image: Path) -> None:
        subprocess.run(["mount", "-o", "loop,commit=300", image, self.place], check=True, capture_output=True)

    def unmount(self) -> None:
        subprocess.run(["umount", "-l", self.place], check=False, capture_output=True)

    def cut(self, name: str) -> Path:
        """What would be there if the power failed now."""
        with (self.place / "somebody-else").open("w") as file:
            file.write(name)
            file.flush()
            os.fsync(file.fileno())
        return Path(shutil.copyfile(self._image, self._cuts / f"{name}.img"))

    def restart(self, image: Path) -> None:
        """The machine starts again with the disk as it was."""
        self.unmount()
        self.mount(image)


def missing() -> str:
    """Why there can be no such disk here; empty when there can."""
    if os.geteuid() != 0:
        return "mounting a disk image needs root"
    tools = [tool for tool in ("mkfs.ext4", "mount", "umount") if shutil.which(tool) is None]
    if tools:
        return f"needs `{tools[0]}`"
    return "" if Path("/dev/loop-control").exists() else "needs loop devices"
