"""`aileron attach ssh://HOST`: through a real sshd on loopback, as the tests' own user, to a console and to `serve`."""

import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from examples.mailbox.server import Mailbox
from tests.process.attended import ScreenConsole
from tests.process.test_accounts import KEY, NAME, install
from tests.process.test_attach import approved_by, propose, read_and_approve
from tests.support.server_harness import CLI, Serve, aileron_json, eventually
from tests.support.terminal import Pty
from tests.support.vaults import PHRASE, make_vault

SSHD = shutil.which("sshd", path="/usr/sbin:/usr/bin")
pytestmark = [
    pytest.mark.real,
    pytest.mark.skipif(SSHD is None or shutil.which("ssh") is None, reason="there is no sshd"),
]


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
        (self.there / "aileron").write_text(f"#!/bin/sh\n{script}\n")
        (self.there / "aileron").chmod(0o755)

    def run(self, *command: str, path: Path | None = None) -> Pty:
        """Run `aileron attach` here; *path*: where it finds programs, in place of the usual."""
        here = path or f"{self.folder / 'here'}:{os.environ['PATH']}"
        home = self.folder / "of-ours"  # a home in which nothing runs
        variables = {"PATH": str(here), "AILERON_HOME": str(home), "AILERON_SECRET": PHRASE}
        self.opened.append(Pty([*CLI, "attach", *command], environment=variables))
        return self.opened[-1]


@pytest.fixture
def box(folder: Path, home: Path) -> Iterator[Machine]:
    machine = Machine(folder=folder / "ssh", forwarded=free_port(), opened=[])
    for each in ("here", "there"):
        (machine.folder / each).mkdir(parents=True)
    if os.getuid() == 0:
        Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
    for key in ("host", "user"):
        subprocess.run(
            ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(machine.folder / key)],
            check=True,
        )
    port = free_port()
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
    ours = machine.folder / "here" / "ssh"  # ssh looks in the account's home, whatever HOME says
    ours.write_text(f'#!/bin/sh\nexec {shutil.which("ssh")} -F {machine.folder}/config "$@"\n')
    ours.chmod(0o755)
    machine.install(f'exec {" ".join(CLI)} "$@"')
    assert SSHD is not None
    with subprocess.Popen(
        [SSHD, "-D", "-e", "-f", str(machine.folder / "sshd")], stderr=subprocess.PIPE
    ) as sshd:
        assert sshd.stderr is not None
        assert b"listening" in sshd.stderr.readline()
        try:
            yield machine
        finally:
            for each in machine.opened:
                each.close()
            sshd.terminate()


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


def words_of(pty: Pty) -> str:
    pty.shows("The words of this console:")
    return pty.cells.text.partition("The words of this console: ")[2].splitlines()[0].strip()


def test_a_console_attached_over_ssh_approves_and_is_cut_off_within_three_seconds(
    box: Machine, sit: Callable[..., ScreenConsole], mailbox: Mailbox
) -> None:
    """The question names the process below sshd. The key is here: what runs there can be stopped, and decides nothing."""
    console = sit()
    first, second = console.pty, box.run("ssh://box")
    words = words_of(second)
    first.press(b"5", lambda: "not confirmed" in first.cells.text, "the sessions")
    first.press(b"t", lambda: "Let this console see all" in first.cells.text, "the question")
    assert words in first.cells.text
    (device,) = aileron_json("status", home=console.home)["devices"]
    there = Path(f"/proc/{device['pid']}/cmdline").read_bytes().split(b"\0")
    assert there[-3:-1] == [b"attach", b"--stdio"]
    assert b"AILERON_SECRET" not in Path(f"/proc/{device['pid']}/environ").read_bytes()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", box.forwarded))
    assert f"process {device['pid']}" in first.cells.text
    if os.getuid() == 0:  # then the tests' sshd is root's
        assert "over ssh" in first.cells.text
    first.press(b"y", lambda: "can now see and decide" in first.cells.text, "it is confirmed")

    second.shows("Nothing is waiting.")
    propose(console)
    read_and_approve(second, lambda: bool(approved_by(console)))
    assert approved_by(console) == ["attached 1"]

    os.kill(device["pid"], signal.SIGSTOP)
    try:
        stopped = time.monotonic()
        second.shows("CUT OFF FROM THE SERVER")
        assert time.monotonic() - stopped < 3.0 + 2.0  # and the drawing of a busy machine
        second.press(b"d", lambda: "cut off from its server" in second.cells.text, "why not")
    finally:
        os.kill(device["pid"], signal.SIGCONT)
    second.press(b"q", lambda: second.process.poll() is not None, "it is closed")
    assert console.process.poll() is None
    eventually(lambda: aileron_json("status", home=console.home)["devices"] == [])


def test_at_serve_the_passphrase_is_typed_on_the_machine_itself(
    box: Machine, home: Path, serve: Serve, mailbox: Mailbox
) -> None:
    """The attached console asks for none; `aileron attach --confirm` there takes its words. Then it binds an account."""
    install(home)
    make_vault(home, PHRASE)
    console = serve(mailbox)
    assert console.unlock(PHRASE).status == 200
    pty = box.run("ssh://box")
    words = words_of(pty).replace(" · ", "-")
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
    assert not [
        each for each in home.rglob("*") if each.is_file() and KEY.encode() in each.read_bytes()
    ]
    assert aileron_json("audit", "verify", home=home)["problems"] == []


def test_what_keeps_ssh_from_attaching_is_said(
    box: Machine, serve: Serve, mailbox: Mailbox, folder: Path
) -> None:
    """No ssh, no such host, an option for a host, no aileron there, another version there, no console there."""
    empty = folder / "empty"
    empty.mkdir()

    def refused(address: str, sentence: str, path: Path | None = None) -> None:
        pty = box.run(address, path=path)
        pty.ended()
        assert sentence in " ".join(pty.cells.text.replace("\n", "").split()), pty.cells.text

    refused("ssh://box", "There is no `ssh` on the PATH.", empty)
    for each in (
        "ssh://-oProxyCommand=true",
        "ssh://a@-b",
        "ssh://box:22:-x",
        "ssh://box/x",
        "box",
    ):
        refused(each, "is not of the form")
    refused("ssh://box:1", "ssh could not connect to box: ssh: connect to host 127.0.0.1 port 1")
    refused("ssh://box", "On box: No console is running on")
    serve(mailbox)
    box.install("echo aileron attach 9.9.9; exec cat")
    refused("ssh://box", "Aileron 9.9.9 is on box, and 0.1.0 here.")
    box.install("echo 'no such option: --stdio' >&2; exit 2")
    refused("ssh://box", "The `aileron` on box is another version")
    (box.there / "aileron").unlink()
    refused("ssh://box", "There is no `aileron` on box that ssh finds.")
