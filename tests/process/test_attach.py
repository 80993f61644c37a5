"""Other hands than the console's own: `aileron attach` at a terminal and through a real sshd, a browser that `O` pairs.

What is attached stands beside an open console, or at `aileron serve`.
"""

import os
import re
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path

import pytest

from examples.mailbox.server import Mailbox
from tests.process.attended import ScreenConsole
from tests.process.test_accounts import KEY, NAME, install_needing_key
from tests.support.core_harness import writes
from tests.support.making import program
from tests.support.paired_devices import Device
from tests.support.processes import command_lines, eventually
from tests.support.server_harness import CLI, DRAFT, Console, Serve, aileron_json, quiet_port
from tests.support.terminal import Pty
from tests.support.vaults import PHRASE, make_vault

Attach = Callable[..., Pty]


@pytest.fixture
def attach(home: Path) -> Iterator[Attach]:
    words = (*CLI, "attach", "--home", str(home))
    with ExitStack() as ending:
        yield lambda *options: ending.enter_context(closing(Pty([*words, *options])))


def propose(console: Console) -> None:
    """Ask for a call: of a session of this process, below which no console could be attached from then on."""
    token = console.session(label="attached")["token"]
    assert console.run("send-draft", {"draft_id": DRAFT}, token).status == 202


def approved_by(console: Console) -> list[str]:
    return [each["hand"] for each in console.records() if each["event"] == "approval.approved"]


def read_and_approve(pty: Pty, console: Console) -> None:
    """Read to the end and press `a`, as a person does; what was refused is pressed again."""
    pty.shows("Q3 numbers")
    pty.press(b" ", lambda: "All seen" in pty.cells.text, "all of it is read")
    pty.press(b"a", lambda: bool(approved_by(console)), "it is approved")
    assert approved_by(console) == ["attached 1"]


def words_shown(pty: Pty) -> str:
    pty.shows("The words of this console:")
    return pty.cells.text.partition("The words of this console: ")[2].splitlines()[0].strip()


def confirm_console(first: Pty, *said: str) -> None:
    """Look at the open console for what is *said* of the one that asks, and let it in."""
    first.press(b"5", lambda: "not confirmed" in first.cells.text, "the sessions")
    first.press(b"t", lambda: "Let this console see all" in first.cells.text, "the question")
    for each in said:
        assert each in first.cells.text
    first.press(b"y", lambda: "can now see and decide" in first.cells.text, "it is confirmed")


def close(pty: Pty) -> None:
    pty.press(b"q", lambda: pty.process.poll() is not None, "it is closed")


def test_a_console_attached_beside_the_open_one_approves_as_its_own_hand(
    sit: Callable[..., ScreenConsole], attach: Attach, mailbox: Mailbox
) -> None:
    console = sit()
    first, second = console.pty, attach()
    confirm_console(first, words_shown(second), f"process {second.process.pid}")

    second.shows("Nothing is waiting.")
    second.press(b"P", lambda: "only the console itself" in second.cells.text, "no pause")
    propose(console)
    read_and_approve(second, console)
    eventually(lambda: writes(mailbox).count("POST send") == 1)
    first.press(b"1", lambda: "attached 1" in first.cells.text, "whose answer it was")

    close(second)
    assert console.process.poll() is None
    eventually(lambda: aileron_json("status", home=console.home)["devices"] == [])


def test_serve_gets_a_console_that_the_vaults_passphrase_confirms(
    home: Path, serve: Serve, attach: Attach, mailbox: Mailbox
) -> None:
    make_vault(home, PHRASE)
    console = serve(mailbox)
    assert console.unlock(PHRASE).status == 200
    pty = attach()
    pty.answer("The vault's passphrase:", "another one")
    pty.until(lambda: pty.cells.text.count("The vault's passphrase:") == 2, "it asks again")
    assert PHRASE not in pty.cells.text
    pty.type(PHRASE.encode() + b"\n")
    pty.shows("Nothing is waiting.")
    lines = attach("--plain")
    lines.answer("The vault's passphrase:", PHRASE)
    lines.shows("attached 2")
    propose(console)
    lines.shows("Q3 numbers")
    read_and_approve(pty, console)
    lines.until(lambda: b"approved by attached 1" in lines.raw, "whose answer it was")
    assert aileron_json("audit", "verify", home=home)["problems"] == []
    console.end(9)
    pty.shows("CUT OFF FROM THE SERVER")
    close(pty)


SSHD = shutil.which("sshd", path="/usr/sbin:/usr/bin")
no_ssh = not (SSHD and shutil.which("ssh"))
needs_sshd = pytest.mark.skipif(no_ssh, reason="there is no sshd")


@dataclass(frozen=True, kw_only=True)
class Machine:
    """What ssh calls `box`: an sshd whose commands find `there/aileron`, and programs of ours that find it."""

    folder: Path
    forwarded: int
    """The port that the settings of ssh would open here."""
    opened: list[Pty]

    @property
    def there(self) -> Path:
        return self.folder / "there"

    def install(self, script: str) -> None:
        """Have `aileron` be *script* over there."""
        program(self.there / "aileron", f"#!/bin/sh\n{script}\n")

    def run(self, *command: str, path: Path | None = None) -> Pty:
        """Run `aileron attach` here; *path*: where it finds programs, in place of the usual."""
        here = path or f"{self.folder / 'here'}:{os.environ['PATH']}"
        home = self.folder / "of-ours"  # a home in which nothing runs
        variables = {"PATH": str(here), "AILERON_HOME": str(home), "AILERON_SECRET": PHRASE}
        self.opened.append(Pty([*CLI, "attach", *command], environment=variables))
        return self.opened[-1]


@pytest.fixture
def box(folder: Path, home: Path) -> Iterator[Machine]:
    machine = Machine(folder=folder / "ssh", forwarded=quiet_port(), opened=[])
    machine.folder.mkdir()
    if os.getuid() == 0:
        Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
    for key in ("host", "user"):
        command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(machine.folder / key)]
        subprocess.run(command, check=True)
    port = quiet_port()
    (machine.folder / "sshd").write_text(
        f"Port {port}\nListenAddress 127.0.0.1\nHostKey {machine.folder}/host\nPidFile none\n"
        f"AuthorizedKeysFile {machine.folder}/user.pub\nStrictModes no\nUsePAM no\n"
        "AcceptEnv AILERON_SECRET\nPasswordAuthentication no\nKbdInteractiveAuthentication no\nPermitRootLogin yes\n"
        f"SetEnv AILERON_HOME={home} PATH={machine.there}:/usr/bin:/bin\n"
    )
    (machine.folder / "config").write_text(
        f"Host box\n HostName 127.0.0.1\n Port {port}\n IdentityFile {machine.folder}/user\n"
        f" IdentitiesOnly yes\n UserKnownHostsFile {machine.folder}/known\n"
        f" StrictHostKeyChecking accept-new\n SendEnv AILERON_SECRET\n LocalForward {machine.forwarded} box:{port}\n"
    )
    # ssh looks in the account's home, whatever HOME says.
    ours = f'#!/bin/sh\nexec {shutil.which("ssh")} -F {machine.folder}/config "$@"\n'
    program(machine.folder / "here" / "ssh", ours)
    machine.install(f'exec {" ".join(CLI)} "$@"')
    assert SSHD is not None
    command = [SSHD, "-D", "-e", "-f", str(machine.folder / "sshd")]
    with subprocess.Popen(command, stderr=subprocess.PIPE) as sshd:
        assert sshd.stderr is not None
        assert b"listening" in sshd.stderr.readline()
        try:
            yield machine
        finally:
            for each in machine.opened:
                each.close()
            sshd.terminate()


@needs_sshd
def test_a_console_attached_over_ssh_approves_and_is_cut_off_within_three_seconds(
    box: Machine, sit: Callable[..., ScreenConsole], mailbox: Mailbox
) -> None:
    """The question names the process below sshd. The key is here: what runs there can be stopped, and decides nothing."""
    console = sit()
    first, second = console.pty, box.run("ssh://box")
    words = words_shown(second)
    (device,) = aileron_json("status", home=console.home)["devices"]
    there = Path(f"/proc/{device['pid']}/cmdline").read_bytes().split(b"\0")
    assert there[-3:-1] == [b"attach", b"--stdio"]
    assert b"AILERON_SECRET" not in Path(f"/proc/{device['pid']}/environ").read_bytes()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", box.forwarded))
    over_ssh = ["over ssh"] if os.getuid() == 0 else []  # then the tests' sshd is root's
    confirm_console(first, words, f"process {device['pid']}", *over_ssh)

    second.shows("Nothing is waiting.")
    propose(console)
    read_and_approve(second, console)

    os.kill(device["pid"], signal.SIGSTOP)
    try:
        stopped = time.monotonic()
        second.shows("CUT OFF FROM THE SERVER")
        assert time.monotonic() - stopped < 3.0 + 2.0  # and the drawing of a busy machine
        second.press(b"d", lambda: "cut off from its server" in second.cells.text, "why not")
    finally:
        os.kill(device["pid"], signal.SIGCONT)
    close(second)
    assert console.process.poll() is None
    eventually(lambda: aileron_json("status", home=console.home)["devices"] == [])


@needs_sshd
def test_at_serve_the_passphrase_is_typed_there(box: Machine, home: Path, serve: Serve) -> None:
    """The attached console asks for none; `aileron attach --confirm` there takes its words. Then it binds an account."""
    install_needing_key(home)
    make_vault(home, PHRASE)
    console = serve()
    assert console.unlock(PHRASE).status == 200
    pty = box.run("ssh://box")
    words = words_shown(pty).replace(" · ", "-")
    pty.shows(f"aileron attach --confirm {words}")
    assert "passphrase:" not in pty.cells.text
    there = Pty([*CLI, "attach", "--confirm", words, "--home", str(home)])
    box.opened.append(there)
    there.answer("The vault's passphrase:", PHRASE)
    there.shows("It is confirmed, as yours.")
    pty.shows("Nothing is waiting.")

    pty.press(b"6", lambda: "no account" in pty.cells.text, "the accounts")
    pty.press(b"B", lambda: "Your name for this account" in pty.cells.text, "whose it is")
    pty.press(b"\r", lambda: "Key:" in pty.cells.text, "its key")
    pty.type(KEY.encode())
    pty.press(b"\r", lambda: f"{NAME} is bound" in pty.cells.text, "it is bound")
    (bound,) = [each for each in console.records() if each["event"] == "binding.created"]
    assert (bound["hand"], bound["binding"]) == ("attached 1", NAME)
    assert KEY.encode() not in pty.raw
    files = [each for each in home.rglob("*") if each.is_file()]
    assert not [each for each in files if KEY.encode() in each.read_bytes()]
    assert aileron_json("audit", "verify", home=home)["problems"] == []


@needs_sshd
def test_what_keeps_ssh_from_attaching_is_said(box: Machine, serve: Serve, folder: Path) -> None:
    empty = folder / "empty"
    empty.mkdir()

    def refused(address: str, sentence: str, path: Path | None = None) -> None:
        pty = box.run(address, path=path)
        pty.ended()
        assert sentence in " ".join(pty.cells.text.replace("\n", "").split()), pty.cells.text

    refused("ssh://box", "There is no `ssh` on the PATH.", empty)
    for each in ("-oProxyCommand=true", "a@-b", "box:22:-x", "box/x"):
        refused(f"ssh://{each}", "is not of the form")
    refused("box", "is not of the form")
    refused("ssh://box:1", "ssh could not connect to box: ssh: connect to host 127.0.0.1 port 1")
    refused("ssh://box", "On box: No console is running on")
    serve()
    box.install("echo aileron attach 9.9.9; exec cat")
    refused("ssh://box", "Aileron 9.9.9 is on box, and 0.1.0 here.")
    box.install("echo 'no such option: --stdio' >&2; exit 2")
    refused("ssh://box", "The `aileron` on box is another version")
    (box.there / "aileron").unlink()
    refused("ssh://box", "There is no `aileron` on box that ssh finds.")


async def test_a_browser_is_paired_by_a_link_whose_secret_stays_out_of_arguments_and_files(
    sit: Callable[..., ScreenConsole], tmp_path: Path
) -> None:
    page = tmp_path / "page"
    program(tmp_path / "bin/xdg-open", f'#!/bin/sh\ncp "$1" {page}.new && mv {page}.new {page}\n')
    path = f"{tmp_path / 'bin'}:{os.environ['PATH']}"
    console = sit(environment={"DISPLAY": ":0", "PATH": path})
    pty, text = console.pty, lambda: console.pty.cells.text
    pty.press(b"5", lambda: "Connected agents" in text() or "No agent" in text(), "the sessions")
    pty.press(b"O", lambda: "This link pairs one browser" in text(), "a link")
    pty.until(page.exists, "the browser is opened")
    found = re.search(r'location\.replace\("(.*)/review#(.*)"\)', page.read_text())
    assert found is not None
    secret = found[2]
    assert not [each for each in command_lines().values() if secret in each]

    device = Device(url=found[1])
    assert (await device.redeem(secret)).status_code == 200
    assert (await device.show_key()).status_code == 200
    pty.shows(" · ".join(device.words))
    pty.shows(f"process {os.getpid()}")
    pty.press(b"y", lambda: "can now see and decide" in text(), "it is confirmed")
    assert (await device.post("wait", {})).json() == {"confirmed": True}
    files = [each for each in console.home.rglob("*") if each.is_file()]
    assert not [each for each in files if secret.encode() in each.read_bytes()]

    pty.press(b"x", lambda: "has ended." in text(), "it is ended")
    assert (await device.post("wait", {})).status_code == 401
