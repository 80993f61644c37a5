"""What a hostile agent would try in its sandbox; prints what it could do as one JSON object.

Runs as the agent itself: `codex` on the PATH of the test is this file. Standard library only.
"""

# ruff: noqa: PTH103, PTH104, PTH110, PTH111, PTH118, PTH120, PTH123, SIM115
import ctypes
import fcntl
import json
import mmap
import os
import re
import socket
import stat
import subprocess
import sys
import termios
import urllib.error
import urllib.request

GIVEN = json.loads(os.environ["CODEX_API_KEY"])  # a variable that the module of Codex lets in
FOUND = {}


def tried(name):
    def run(function):
        try:
            FOUND[name] = function()
        except OSError as error:
            FOUND[name] = f"{type(error).__name__} {error.errno}"
        except Exception as error:
            FOUND[name] = f"{type(error).__name__} {error}"

    return run


def connects(family, address):
    with socket.socket(family, socket.SOCK_STREAM) as sock:
        sock.settimeout(3)
        sock.connect(address)
        return "connected"


def ask(path, method="GET", body=None, token=None):
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as sock:
        sock.settimeout(10)
        sock.connect("/run/aileron/s.sock")
        data = b"" if body is None else json.dumps(body).encode()
        head = f"{method} {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: {len(data)}\r\n"
        if token:
            head += f"Authorization: Bearer {token}\r\n"
        if data:
            head += "Content-Type: application/json\r\n"
        sock.sendall(head.encode() + b"\r\n" + data)
        answer = b""
        while chunk := sock.recv(65536):
            answer += chunk
        return int(answer.split()[1])


APPROVAL = f"/v1/action-approvals/{GIVEN['approval']}"
SESSION, TOKEN = f"/v1/sessions/{GIVEN['session']}/end", GIVEN["token"]
PROJECT = {"agent": "codex", "path": "/x", "digest": "ab" * 32}
tried("own socket: actions")(lambda: ask("/v1/actions"))
tried("own socket: health")(lambda: ask("/v1/health"))
tried("own socket: status of the console")(lambda: ask("/v1/status"))
tried("own socket: open a session")(lambda: ask("/v1/sessions", "POST", {"agent": "x", "cwd": "/"}))
tried("own socket: decide")(lambda: ask(f"{APPROVAL}/decide", "POST", {"approved": True}))
tried("own socket: accept a project's settings")(lambda: ask("/v1/projects", "POST", PROJECT))
tried("own socket: read the audit")(lambda: ask("/v1/audit"))
tried("own socket: another session's result")(lambda: ask(f"{APPROVAL}/result"))
tried("own socket: another session's token")(lambda: ask(f"{APPROVAL}/result", token=TOKEN))
tried("own socket: end another session")(lambda: ask(SESSION, "POST", {}))


def base_url():
    return re.search(r'base_url = "([^"]+)"', " ".join(sys.argv))[1]


def post(url):
    body = json.dumps({"model": "m", "messages": []}).encode()
    request = urllib.request.Request(url, body, {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            answer.read()
            return answer.status
    except urllib.error.HTTPError as error:
        return error.code


URL = re.search(r"base_url = \"([^\"]+)", " ".join(sys.argv))
CONSOLE, _, OWN = (URL[1] if URL else "").rpartition("/gw/")
THEIRS = f"/gw/{GIVEN.get('gateway')}/v1"
tried("model through the gateway")(lambda: post(f"{base_url()}/chat/completions"))
THEIR_CHAT = f"{CONSOLE}{THEIRS}/chat/completions"
tried("console's port: another session's gateway")(lambda: post(THEIR_CHAT))
tried("console's port: decide")(lambda: post(f"{CONSOLE}{APPROVAL}/decide"))
tried("own socket: model through the gateway")(lambda: ask(f"/gw/{OWN}/models"))
tried("own socket: another session's gateway")(lambda: ask(f"{THEIRS}/models"))
tried("own socket: a gateway without a token")(lambda: ask("/gw/v1/models"))
tried("somewhere else")(lambda: connects(socket.AF_INET, ("192.0.2.1", 443)))
tried("abstract socket")(lambda: connects(socket.AF_UNIX, "\0" + GIVEN["abstract"]))
tried("socket under /tmp")(lambda: connects(socket.AF_UNIX, GIVEN["pathname"]))
tried("console's socket")(lambda: connects(socket.AF_UNIX, GIVEN["console"]))
tried("host's loopback")(lambda: connects(socket.AF_INET, ("127.0.0.1", GIVEN["port"])))
tried("signal to the console")(lambda: os.kill(GIVEN["pid"], 0) or "sent")
tried("console in /proc")(lambda: os.path.exists(f"/proc/{GIVEN['pid']}/cmdline"))
tried("aileron's home")(lambda: os.path.exists(GIVEN["home"]))
tried("person's ssh key")(lambda: os.path.exists(os.path.expanduser("~/.ssh/id_ed25519")))
tried("session bus")(lambda: os.path.exists(f"/run/user/{os.getuid()}/bus"))
tried("docker")(lambda: any(map(os.path.exists, ("/run/docker.sock", "/var/run/docker.sock"))))
OUTSIDE = ("AILERON", "TMUX", "DBUS", "SSH", "DISPLAY", "WAYLAND", "XDG_RUNTIME")
tried("environment")(lambda: [name for name in os.environ if name.startswith(OUTSIDE)])
KEY = GIVEN["key"].encode()
tried("keyring")(lambda: ctypes.CDLL(None).syscall(250, 10, b"user", KEY, None, 0) > 0)
REFUSED = {
    "x86_64": (246, 248, 249, 250, 298, 320, 321, 323, 425, 426, 427),
    "aarch64": (104, 217, 218, 219, 241, 280, 282, 294, 425, 426, 427),
}
"""kexec, keys, perf_event_open, bpf, userfaultfd, io_uring; no argument of theirs is valid."""


def call(number):
    libc = ctypes.CDLL(None, use_errno=True)
    return libc.syscall(number, -1, -1, -1, -1, -1), ctypes.get_errno()


tried("refused calls")(lambda: sorted({call(each)[1] for each in REFUSED[os.uname().machine]}))
tried("socket to the machine's host")(lambda: str(socket.socket(socket.AF_VSOCK)))
tried("lists of keys")(lambda: open("/proc/keys").read())
tried("lists of keys' users")(lambda: open("/proc/key-users").read())


@tried("a call of 32-bit code")
def _():
    child = os.fork()
    if child == 0:
        code = b"\xb8\x14\x00\x00\x00\xcd\x80\xc3"  # mov eax, 20 (i386's getpid); int 0x80; ret
        page = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
        page.write(code)
        ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(page)))()
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@tried("write a setting of the kernel")
def _():
    path = "/proc/sys/kernel/core_pattern"
    value = open(path).read()
    with open(path, "w") as file:
        file.write(value)
    return "written"


@tried("open what is the whole machine's")
def _():
    opened = []
    for name in ("/proc/sys", "/proc/irq", "/proc/bus", "/sys"):
        for folder, _folders, names in os.walk(name):
            for path in (os.path.join(folder, each) for each in names):
                try:
                    os.close(os.open(path, os.O_WRONLY | os.O_NONBLOCK))
                except OSError:
                    continue
                opened.append(path)
    if os.access("/proc/sysrq-trigger", os.W_OK):
        opened.append("/proc/sysrq-trigger")
    return opened


tried("/sys")(lambda: os.path.exists("/sys"))


def code(*words):
    return subprocess.run(words, capture_output=True).returncode


def status(name):
    return re.search(rf"^{name}:\s*(\S+)", open("/proc/self/status").read(), re.MULTILINE)[1]


tried("new user namespace")(lambda: code("unshare", "-U", "true"))
tried("mount")(lambda: code("mount", "-t", "tmpfs", "none", "/mnt"))
tried("capabilities")(lambda: status("CapEff"))
tried("no new privileges")(lambda: status("NoNewPrivs"))
for name in ("config", "hooks/pre-commit"):

    @tried(f"write .git/{name}")
    def _(name=name):
        os.makedirs(os.path.dirname(f".git/{name}"), exist_ok=True)
        with open(f".git/{name}", "w") as file:
            file.write("[core]\n\tfsmonitor = evil\n")
        return "written"


tried("move .git away")(lambda: os.rename(".git", ".g2") or "moved")
tried("write .mcp.json")(lambda: open(".mcp.json", "w").write("{}"))
tried("write .envrc")(lambda: open(".envrc", "w").write("evil"))
tried("write in the project")(lambda: open("work.txt", "w").write("done"))
HOOKS = os.path.expanduser("~/.codex/hooks.json")
tried("write a hook into its own folder")(lambda: open(HOOKS, "w").write("{}"))
tried("write outside")(lambda: open("/usr/local/bin/evil", "w").write("x"))


@tried("stuff the terminal")
def _():
    terminal = os.open("/dev/tty", os.O_RDWR)
    for byte in b"touch /tmp/escaped\n":
        fcntl.ioctl(terminal, termios.TIOCSTI, bytes([byte]))
    return "stuffed"


@tried("pathname sockets")
def _():
    found = []
    for folder, folders, names in os.walk("/"):
        if folder == "/":
            folders[:] = {*folders} - {"proc", "sys", "usr"}
        for path in (os.path.join(folder, name) for name in names):
            try:
                if stat.S_ISSOCK(os.lstat(path).st_mode):
                    found.append(path)
            except OSError:
                pass
    return found


sys.stdout.write("PROBE " + json.dumps(FOUND) + "\n")
