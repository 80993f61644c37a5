"""The review page in Chromium with a preview of 20,000 lines: its first part, and `/v1/health` meanwhile."""

import asyncio
import json
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

from aileron_core.console_port.field_views import FieldView
from aileron_tui.cli.runtime import TURN_SECONDS, collect_rarely
from bench.support import Aims, amount, milliseconds, p99
from examples.mailbox import Mailbox
from tests.support.browsers import chromium
from tests.support.core_harness import Core, install_examples
from tests.support.review_pages import reviewed

LINES = amount(20_000, check=2_000)
SHOWN = amount(20, check=2)
_ASKS = """
import http.client, json, sys, threading, time
over = threading.Event()
threading.Thread(target=lambda: (sys.stdin.read(), over.set()), daemon=True).start()
connection, took = http.client.HTTPConnection(sys.argv[1]), []
while not over.is_set():
    began = time.perf_counter()
    connection.request("GET", "/v1/health")
    connection.getresponse().read()
    took.append(time.perf_counter() - began)
    time.sleep(0.002)
print(json.dumps(took))
"""
_SHOWS = """async (id) => {
  const began = performance.now();
  await load(id, { go: true });
  if (!$('document').textContent.includes('a line of the preview')) throw new Error('nothing was shown');
  await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
  return (performance.now() - began) / 1000;
}"""
_REST = "async () => { while (open.parts[open.next - 1]) { await more(); await sleep(5); } return open.lines; }"


async def _measure(home: Path, mailbox: Mailbox) -> tuple[list[float], list[float], list[float]]:
    """Return seconds: of the first part, and of `/v1/health` alone and while items and their rest are drawn."""
    async with (
        Core.open(home, mailbox) as core,
        chromium() as browser,
        reviewed(core, browser) as served,
    ):
        sys.setswitchinterval(TURN_SECONDS)  # as a console does, like the next
        collect_rarely()
        view = await core.ask()
        body = "\n".join(
            f"{number} a line of the preview, of usual length" for number in range(LINES)
        )
        preview = replace(
            view.preview, status="ready", fields=(FieldView(label="Body", value=body),)
        )
        served.drawing.other = replace(view, preview=preview)
        page = await served.paired()
        address = core.app.address.url.removeprefix("http://")

        async def beside(work: bool) -> tuple[list[float], list[float]]:
            asking = subprocess.Popen(
                [sys.executable, "-c", _ASKS, address],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
            )
            shown: list[float] = []
            if work:
                shown = [await page.evaluate(_SHOWS, view.approval_id) for _ in range(SHOWN)]
                assert await page.evaluate(_REST) >= LINES
            else:
                await asyncio.sleep(amount(3.0, check=0.2))
            told, _ = await asyncio.to_thread(asking.communicate, b"")
            return shown, json.loads(told)

        _, alone = await beside(False)
        shown, meanwhile = await beside(True)
    return shown, alone, meanwhile


def main() -> None:
    """Print how long the first part takes, and what others notice."""
    print(
        f"review_page: an item of {LINES:,} lines in Chromium, opened {SHOWN} times, then read whole"
    )
    with tempfile.TemporaryDirectory(prefix="ail-") as folder, Mailbox() as mailbox:
        home = Path(folder) / "home"
        home.mkdir(mode=0o700)
        install_examples(home)
        shown, alone, meanwhile = asyncio.run(_measure(home, mailbox))
    print(f"  first part shown                  {milliseconds(shown)}")
    print(f"  /v1/health alone                  {milliseconds(alone)}")
    print(
        f"  /v1/health meanwhile              {milliseconds(meanwhile)}  "
        f"p99 {p99(meanwhile) / p99(alone):.2f} times alone"
    )
    aims = Aims()
    aims.at_most("first part, p99 ms", p99(shown) * 1e3, 1_000)
    aims.at_most("/v1/health meanwhile, p99 ms", p99(meanwhile) * 1e3, 50)
    aims.report()


if __name__ == "__main__":
    main()
