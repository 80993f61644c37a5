"""The review page in real browsers, reached in other ways: from hostile pages, by a proxy, by ssh, in Firefox."""

import asyncio
import contextlib
import hashlib
import json
import re
import secrets
import shutil
import socket
import subprocess
from base64 import b64encode
from collections.abc import AsyncGenerator, Callable, Collection
from functools import partial
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from playwright.async_api import expect
from starlette.types import Scope

from aileron_core.console_port.devices import DevicesUpdated
from aileron_core.errors import Forbidden
from aileron_core.server import auth
from aileron_core.server.sockets import bind_tcp
from aileron_core.settings import Settings
from tests.screen.hostile_views import hostile_snapshot
from tests.support.attacks import ATTACKS, Attack, cut_to, everything
from tests.support.browsers import Firefox, chromium, firefox
from tests.support.core_harness import ROOT, Core, Mailbox, Start, writes
from tests.support.review_pages import confirm, must_be_text, new_link, reviewed, serving_pages
from tests.support.server_harness import eventually, quiet_port
from tests.support.tls_service import Authority
from tests.support.variants import ALL

pytestmark = [pytest.mark.real, pytest.mark.timeout(180)]
_API = "/review/api/link"
_TRIES = """async ([console, body]) => {
  const frame = (name, of) => new Promise((done) => {
    const made = document.createElement('iframe');
    Object.assign(made, of, { onload: () => setTimeout(done, 200) });
    document.body.append(made);
  });
  const fetched = {};
  const asked = (name, how) => fetch(`${console}/review/api/link?${name}`, { method: 'POST', body, ...how })
    .then((it) => it.type, () => 'failed').then((it) => { fetched[name] = it; });
  await asked('cors', {});
  await asked('cors-credentials', { credentials: 'include' });
  await asked('no-cors', { mode: 'no-cors' });
  await asked('no-cors-credentials', { mode: 'no-cors', credentials: 'include' });
  await asked('json', { headers: { 'content-type': 'application/json' } });
  await asked('get', { method: 'GET', body: undefined });
  navigator.sendBeacon(`${console}/review/api/link?beacon`, body);
  const script = `fetch('${console}/review/api/link?NAME', { method: 'POST', mode: 'no-cors', body: ${JSON.stringify(body)} })`;
  const page = (name) => `<script>${script.replace('NAME', name)}<` + '/script>';
  await frame('sandbox', { sandbox: 'allow-scripts', srcdoc: page('null-sandbox') });
  await frame('data', { src: 'data:text/html,' + encodeURIComponent(page('null-data')) });
  const form = document.createElement('form');
  Object.assign(form, { action: `${console}/review/api/link?form`, method: 'POST', enctype: 'text/plain', target: 'sink' });
  const field = document.createElement('input');
  Object.assign(field, { name: body.slice(0, -1) + ',"', value: '":1}' });
  form.append(field);
  document.body.append(form);
  const sink = frame('sink', { name: 'sink' });
  form.submit();
  await sink;
  const tags = {};
  for (const [tag, of] of [['script', { src: `${console}/review.js` }], ['link', { rel: 'stylesheet', href: `${console}/review.css` }]]) {
    const made = Object.assign(document.createElement(tag), of);
    tags[tag] = await new Promise((done) => {
      made.onload = () => done('loaded');
      made.onerror = () => done('refused');
      document.head.append(made);
    });
  }
  return [fetched, tags];
}"""
"""What a page at another port tries with a link that it got hold of; each request has a name as its query."""
_OPENS = """async (url) => {
  const opened = window.open(url, 'review');
  const until = performance.now() + 20000;
  while (!opened.closed && performance.now() < until) await new Promise((done) => setTimeout(done, 50));
  let read = '';
  try { read = opened.document.body.textContent; } catch (error) { read = error.name; }
  return [opened.closed, read, opened.length];
}"""
_POSTS = "([path, body]) => fetch(path, { method: 'POST', body }).then((it) => it.status)"
_FRAMES = "(src) => document.body.append(Object.assign(document.createElement('iframe'), { src }))"


@contextlib.asynccontextmanager
async def hostile_pages() -> AsyncGenerator[int]:
    """Serve one empty page on a port of loopback, whatever is asked."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        page = b"<!doctype html><title>hostile</title><body>"
        head = f"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {len(page)}\r\n"
        writer.write(f"{head}Connection: close\r\n\r\n".encode() + page)
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, sock=bind_tcp("127.0.0.1", 0))
    async with server:
        yield server.sockets[0].getsockname()[1]


async def test_no_other_origin_frames_opens_or_asks(
    core: Core, mailbox: Mailbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not even one that has a link: frame, opener, forms, fetches, `null` and a name that leads here. It still works after."""
    await core.ask()
    heard: dict[str, str] = {}

    def check(scope: Scope, hosts: Collection[str], origins: Collection[str]) -> None:
        name = scope["query_string"].decode()
        heard[name] = "passed"
        try:
            auth_check(scope, hosts, origins)
        except Forbidden:
            heard[name] = "refused"
            raise

    auth_check = auth.check_review
    monkeypatch.setattr(auth, "check_review", check)
    rules = "--host-resolver-rules=MAP evil.example 127.0.0.1"
    async with hostile_pages() as port, chromium(rules) as browser, reviewed(core, browser):
        console, link = core.app.address.url, await new_link(core)
        shown = link.partition("#")[0]
        commitment = hashlib.sha256(secrets.token_bytes(97)).hexdigest()
        stolen = {"secret": link.partition("#")[2], "commitment": commitment}
        body = json.dumps(stolen, separators=(",", ":"))
        for host in ("127.0.0.1", "evil.example"):
            heard.clear()
            page = await (await browser.new_context()).new_page()
            await page.goto(f"http://{host}:{port}/")
            fetched, tags = await page.evaluate(_TRIES, [console, body])
            assert {*fetched.values()} == {"failed", "opaque"}, fetched
            assert tags == {"script": "refused", "link": "refused"}
            # What the browser asks about before it sends it is refused there ("json").
            names = {*fetched, "beacon", "null-sandbox", "null-data", "form"}
            await until(lambda names=names: {*heard} == names, heard)
            assert {*heard.values()} == {"refused"}
            # It shows nothing in a frame either.
            before = len(page.frames)
            async with page.expect_event("requestfailed", lambda it: it.url == shown) as refusing:
                await page.evaluate(_FRAMES, link)
            assert (await refusing.value).failure == "net::ERR_BLOCKED_BY_RESPONSE"
            (frame,) = page.frames[before:]
            await until(lambda frame=frame: frame.url.startswith("chrome-error:"), frame)
            async with page.context.expect_page() as opening:
                closed, read, frames = await page.evaluate(_OPENS, shown)
            assert (closed, frames) == (True, 0)
            assert read in ("SecurityError", "TypeError")
            opened = await opening.value
            assert await opened.evaluate("opener") is None
            await expect(opened.locator("#door-title")).to_have_text("Not paired")
        # A name of theirs that leads to this address: nothing of the page, nor of any API.
        there = f"http://evil.example:{console.rpartition(':')[2]}"
        answer = await page.goto(f"{there}/review")
        assert answer is not None
        assert answer.status == 403
        for path in (_API, "/v1/status", "/review.js", "/mcp"):
            assert await page.evaluate(_POSTS, [path, body]) == 403, path
        assert core.app.devices.views() == ()
        mine = await (await browser.new_context()).new_page()
        await mine.goto(link)
        await expect(mine.locator("#door-words")).to_be_visible()
    assert "POST send" not in writes(mailbox)


async def until(holds: Callable[[], object], said: object) -> None:
    for _ in range(200):
        if holds():
            return
        await asyncio.sleep(0.05)
    pytest.fail(f"it did not come: {said}")


_IDENTITY = """
            proxy_set_header X-Forwarded-User root;
            proxy_set_header Remote-User root;
            proxy_set_header Tailscale-User-Login ana@northwind.example;
            proxy_set_header X-Forwarded-For 127.0.0.1;
            proxy_set_header X-Real-IP 127.0.0.1;
            proxy_set_header Forwarded "for=127.0.0.1;proto=https";"""


def documented(port: int, backend: int, certificate: Path) -> str:
    """Return nginx's settings of docs/review.md, for a port of the test and with headers of identity."""
    page = (ROOT / "docs/review.md").read_text()
    (server,) = re.findall(r"^    server \{\n(?:     .*\n)+    \}\n", page, re.MULTILINE)
    for found, there in {
        "listen 443 ssl;": f"listen 127.0.0.1:{port} ssl;",
        "/etc/ssl/box.example.pem": str(certificate),
        "/etc/ssl/box.example.key": str(certificate),
        "proxy_pass http://127.0.0.1:8517;": f"proxy_pass http://127.0.0.1:{backend};{_IDENTITY}",
    }.items():
        assert found in server
        server = server.replace(found, there)
    return server


def trusting(authority: Authority) -> str:
    """Return what has Chromium trust *authority* alone besides those of the world."""
    key = x509.load_pem_x509_certificate(authority.file.read_bytes()).public_key()
    spki = key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    pinned = b64encode(hashlib.sha256(spki).digest()).decode()
    return f"--ignore-certificate-errors-spki-list={pinned}"


_NGINX = shutil.which("nginx", path="/usr/sbin:/usr/bin")


@pytest.mark.skipif(_NGINX is None, reason="no nginx")
async def test_behind_a_proxy_the_page_pairs_and_decides(
    start: Start, mailbox: Mailbox, tmp_path: Path
) -> None:
    """The settings are those of the docs, the certificate an authority's that the browser trusts."""
    port, authority = quiet_port(), Authority(tmp_path)
    authority.context("box.example")
    origin = f"https://box.example:{port}"
    certificate = tmp_path / "box.example.pem"
    certificate.write_bytes(certificate.read_bytes() + authority.file.read_bytes())
    async with (
        start(settings=Settings(review_origins=(origin,))) as core,
        chromium("--host-resolver-rules=MAP box.example 127.0.0.1", trusting(authority)) as browser,
        reviewed(core, browser) as review,
    ):
        view = await core.ask()
        server = documented(port, int(core.app.address.url.rpartition(":")[2]), certificate)
        settings = tmp_path / "nginx.conf"
        paths = "".join(
            f"{each}_temp_path {tmp_path}/{each};"
            for each in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        )
        settings.write_text(
            f"daemon off; pid {tmp_path}/pid; error_log stderr; events {{}} "
            f"http {{ access_log off; {paths}\n{server}}}"
        )
        command = [_NGINX or "", "-p", tmp_path, "-c", settings]
        with subprocess.Popen(command, stderr=subprocess.DEVNULL) as nginx:
            try:
                await asyncio.to_thread(eventually, partial(listens, port), "it listens")
                page = await review.paired(elsewhere=True, viewport={"width": 1200, "height": 1800})
                assert page.url.startswith(f"{origin}/review")
                await expect(page.locator("#approve.decides")).to_be_visible()
                await page.keyboard.press("a")
                await expect(page.locator("#said")).to_have_text("✓ Approved.")
                assert (await core.ended(view)).state == "completed"
                # Nobody is let in by what the proxy says of them.
                for route in ("wait", "events", "item", "decide"):
                    assert await page.evaluate(_POSTS, [f"/review/api/{route}", "{}"]) == 401
            finally:
                nginx.terminate()
    assert writes(mailbox).count("POST send") == 1


def listens(port: int) -> bool:
    with socket.socket() as tried:
        return tried.connect_ex(("127.0.0.1", port)) == 0


async def keys_read(page: Firefox) -> None:
    for number in range(1, 100):
        if await page.run("document.querySelector('#approve.decides')"):
            return
        if await page.run("document.getElementById('standing').textContent.includes('not seen')"):
            await page.press("\ue011" if number % 12 == 0 else " ")  # Home
        await asyncio.sleep(0.3)
    pytest.fail(await page.run("document.body.innerText"))


@pytest.mark.skipif(not ALL, reason="only with AILERON_TEST_ALL: Firefox starts slowly")
@pytest.mark.skipif(shutil.which("firefox-esr") is None, reason="no firefox-esr")
async def test_firefox_pairs_and_decides_by_the_keyboard(core: Core, mailbox: Mailbox) -> None:
    """Nobody touches a mouse: space reads on, `a` approves, `d` and a reason deny."""
    first, second = await core.ask(), await core.ask("r-1")
    async with serving_pages(core), firefox() as page:
        await page.ask("Navigate", url=await new_link(core))
        words = await page.until("document.getElementById('door-words').textContent")
        assert words == " · ".join(core.last(DevicesUpdated).devices[-1].words)
        await confirm(core)
        await page.until("document.querySelectorAll('#rows li').length == 2")
        await page.until("document.getElementById('document').textContent.includes('WILL HAPPEN')")
        await keys_read(page)
        await page.press("a")
        await page.until("document.getElementById('said').textContent == '✓ Approved.'")
        assert (await core.ended(first)).state == "completed"
        await page.until("document.querySelectorAll('#rows li').length == 1")
        await page.press("j", pause=200)  # a hand's pause: keys in one burst decide nothing
        await page.until("document.querySelectorAll('[aria-current]').length == 1")
        await page.press("d")
        await page.until("document.activeElement.id == 'reason'")
        await page.press(*"wrong lis", pause=40)
        await page.press("t", pause=600)  # a key decides only after a rest
        await page.press("\ue007")
        denied = await core.view(second.approval_id, lambda view: view.state == "denied")
        assert denied.reason == "wrong list"
    assert writes(mailbox).count("POST send") == 1


_TEXT_OF_A_PAGE = """[
  [...new Set([...document.querySelectorAll('*')].map(each => each.tagName))],
  [...new Set([...document.querySelectorAll('*')].flatMap(each => [...each.attributes].map(of => of.name)))],
  [...new Set(document.body.textContent)].join(''),
  Math.max(document.documentElement.scrollWidth, document.body.scrollWidth) - innerWidth,
]"""
_TITLE, _ROW = "document.getElementById('title')", "document.querySelector('#rows .about')"
_FORGET = f"({_TITLE}.replaceChildren(), {_ROW}.replaceChildren())"


@pytest.mark.timeout(900)
@pytest.mark.skipif(not ALL, reason="only with AILERON_TEST_ALL: Firefox starts slowly")
@pytest.mark.skipif(shutil.which("firefox-esr") is None, reason="no firefox-esr")
async def test_no_text_from_outside_is_more_than_text_in_firefox(core: Core) -> None:
    """All attacks at once in every field of each kind of call, as the page is sent them; in the list, too."""
    await core.ask()
    html = next(each for each in ATTACKS if each.name == "html")
    usual: set[str] = {"aria-current", "data-lost"}
    async with serving_pages(core) as drawing, firefox() as page:
        await page.ask("Navigate", url=await new_link(core))
        await page.ask("SetWindowRect", width=360, height=640)
        await page.until("document.getElementById('door-words').textContent")
        await confirm(core)
        await page.until("document.querySelector('#rows button')")
        await page.run("document.querySelector('#rows button').click()")
        await page.until(f"{_TITLE}.hasChildNodes()")
        for attack in (Attack("plain", "plain"), Attack("all", everything(700)), html):
            text = cut_to(attack, 3_000)
            for view in hostile_snapshot(core.app.clock.now(), lambda text=text: text).approvals:
                await page.run(_FORGET)
                drawing.other = view
                core.app.approvals.requester_changed(core.session.session_id)
                await page.until(f"{_TITLE}.hasChildNodes() && {_ROW}.hasChildNodes()")
                await page.run("document.body.dataset.view = 'item'")
                whole = "document.getElementById('more').hidden"
                await page.until(f"(scrollTo(0, document.body.scrollHeight), {whole})")
                for shown in ("item", "list"):
                    await page.run(f"document.body.dataset.view = '{shown}'")
                    found = await page.run(_TEXT_OF_A_PAGE)
                    if attack.name == "plain":
                        usual |= {*found[1]}
                    must_be_text(found, usual, (attack.name, view.approval_id, shown))
