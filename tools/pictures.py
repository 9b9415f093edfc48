"""Makes the pictures of the inspector's page in `docs/pictures`: a pipeline runs for a minute, and Chromium visits its page.

    python -m tools.pictures

Colours are reduced to a palette, so that a picture stays small.
"""

from __future__ import annotations

import struct
import subprocess
import sys
import tempfile
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np

PICTURES = Path(__file__).parent.parent / "docs" / "pictures"
CHROMIUM = "/usr/bin/chromium"
SECONDS = 60
PIPELINE = """
name: shop
sources:
  orders:
    type: generator
    rows_per_second: 333
    fields:
      id: {type: sequence}
      country: {type: choice, values: [AT, DE, FR, IT]}
      price: {type: choice, values: ['4.90', '12.50', '80', '129.95', '310', '59.00', '7.20', '22', '18.40', 'n/a']}
      at: {type: timestamp, start: 'NOW', step: 3ms}
    event_time: {column: at, watermark: 2s}
transforms:
  parsed:
    type: select
    from: orders
    columns: {id: id, country: country, amount: "CAST(price AS DECIMAL(10, 2))", at: at}
    on_error: {dead_letter: bad}
  large: {type: filter, from: parsed, where: amount > 100}
  per_country:
    type: window
    from: parsed
    key_by: country
    window: {type: tumbling, size: 10s}
    aggregate: {orders: count(*), amount: sum(amount)}
  known: {type: sql, sql: "SELECT id, country, amount, CASE WHEN amount > 300 THEN 'review' ELSE 'fine' END AS risk FROM large"}
sinks:
  checked: {type: file, from: known, path: checked, format: parquet}
  totals: {type: file, from: per_country, path: totals, format: json}
  bad: {type: file, path: bad, format: json}
"""


def main() -> None:
    from playwright.sync_api import sync_playwright

    with tempfile.TemporaryDirectory() as folder, _running(Path(folder)) as link, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        time.sleep(SECONDS)
        _take(browser, link, "inspector", width=1280, height=940)
        _take(browser, link, "inspector-dark", width=1280, height=940, scheme="dark", node="known", where="risk = 'review'")
        _take(browser, link, "inspector-narrow", width=390, height=844, full=False)
        browser.close()


@contextmanager
def _running(folder: Path) -> Iterator[str]:
    """The pipeline runs in the body. The link to its page."""
    now = datetime.now(UTC) + timedelta(seconds=10)  # Spark's start takes about that long
    (folder / "shop.yaml").write_text(PIPELINE.lstrip().replace("NOW", now.isoformat(timespec="seconds")))
    command = [sys.executable, "-m", "millstream.cli"]
    run = subprocess.Popen([*command, "run", "shop.yaml", "--inspect", "--quiet"], cwd=folder)
    try:
        for _ in range(60):
            time.sleep(1)
            found = subprocess.run([*command, "inspect", "shop.yaml"], cwd=folder, capture_output=True, text=True, check=False, timeout=30)
            if "#" in found.stdout or run.poll() is not None:
                break
        if "#" not in found.stdout:
            sys.exit(found.stderr)
        yield found.stdout.strip()
    finally:
        run.terminate()
        run.wait(60)


def _take(
    browser: Any,
    link: str,
    name: str,
    *,
    width: int,
    height: int,
    scheme: str = "light",
    node: str = "",
    where: str = "",
    full: bool = True,
) -> None:
    page = browser.new_page(viewport={"width": width, "height": height}, color_scheme=scheme)
    page.goto(link)
    page.wait_for_selector("#charts figure")
    if node:
        page.locator(f'#graph [data-node="{node}"]').click()
        page.locator("#panel").get_by_label("Filter").fill(where)
        page.keyboard.press("Enter")
        page.wait_for_selector("[aria-label='Sampled rows'] table", timeout=60_000)
        page.evaluate("document.activeElement.blur()")
    page.wait_for_timeout(12_000)  # rates
    if full and not node:
        height = min(1600, page.evaluate("document.documentElement.scrollHeight"))
    picture = _smaller(page.screenshot(clip={"x": 0, "y": 0, "width": width, "height": height}, full_page=full and not node))
    (PICTURES / f"{name}.png").write_bytes(picture)
    print(f"{name}.png: {len(picture) / 1000:.0f} KB")
    page.close()


def _smaller(picture: bytes, colours: int = 64) -> bytes:
    """A PNG with a palette: its most frequent colours, and for the others the nearest of these."""
    pixels = _pixels(picture)
    height, width, _ = pixels.shape
    packed = pixels.astype(np.uint32) @ np.array([65536, 256, 1], dtype=np.uint32)
    values, places, counts = np.unique(packed, return_inverse=True, return_counts=True)
    chosen = values[np.argsort(counts)[::-1][:colours]]
    parts = [np.stack([each >> 16, each >> 8 & 255, each & 255], axis=-1).astype(np.int32) for each in (values, chosen)]
    nearest = ((parts[0][:, None] - parts[1][None]) ** 2).sum(axis=2).argmin(axis=1).astype(np.uint8)
    rows = np.zeros((height, width + 1), dtype=np.uint8)  # the first byte of a row says that it is not filtered
    rows[:, 1:] = nearest[places].reshape(height, width)
    header = struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)
    chunks = [
        (b"IHDR", header),
        (b"PLTE", parts[1].astype(np.uint8).tobytes()),
        (b"IDAT", zlib.compress(rows.tobytes(), 9)),
        (b"IEND", b""),
    ]
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) for kind, data in chunks
    )


def _pixels(picture: bytes) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """The pixels of a PNG as Chromium writes it: 8 bits, three or four channels, not interlaced."""
    place, data, width, height, channels = 8, b"", 0, 0, 3
    while place < len(picture):
        length, kind = struct.unpack(">I4s", picture[place : place + 8])
        body = picture[place + 8 : place + 8 + length]
        if kind == b"IHDR":
            width, height, _, colour = struct.unpack(">IIBB", body[:10])
            channels = {2: 3, 6: 4}[colour]
        elif kind == b"IDAT":
            data += body
        place += length + 12
    raw = np.frombuffer(zlib.decompress(data), dtype=np.uint8).reshape(height, width * channels + 1)
    found = np.zeros((height + 1, width + 1, channels), dtype=np.uint8)
    for row in range(height):
        _unfilter(int(raw[row, 0]), raw[row, 1:].reshape(width, channels), found[row], found[row + 1])
    return found[1:, 1:, :3]


def _unfilter(kind: int, given: Any, above: Any, row: Any) -> None:
    """Undo the filter of one row; `above` and `row` have a pixel of zeros on their left."""
    if kind == 0:
        row[1:] = given
    elif kind == 1:
        row[1:] = np.cumsum(given, axis=0, dtype=np.uint8)
    elif kind == 2:
        row[1:] = given + above[1:]
    else:
        for place in range(1, len(row)):
            left, up, corner = (each.astype(np.int32) for each in (row[place - 1], above[place], above[place - 1]))
            if kind == 3:
                guess = (left + up) // 2
            else:
                distances = [abs(up - corner), abs(left - corner), abs(left + up - 2 * corner)]
                guess = np.where(
                    (distances[0] <= distances[1]) & (distances[0] <= distances[2]),
                    left,
                    np.where(distances[1] <= distances[2], up, corner),
                )
            row[place] = (given[place - 1] + guess) & 255


if __name__ == "__main__":
    main()
