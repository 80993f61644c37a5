"""Make `.venv` and put Aileron into it; standard library only, any Python.

    python3 .ci/setup.py [GROUP ...]

A group is one of pyproject.toml's dependency groups. A second call with nothing changed is quick.
"""

import hashlib
import os
import shutil
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
VENV = os.path.join(ROOT, ".venv")
STAMP = os.path.join(VENV, "aileron-installed")


def stop(sentence):
    sys.stderr.write(sentence + "\n")
    sys.exit(1)


def check_python():
    if sys.version_info < (3, 11):
        stop(
            "Aileron needs Python 3.11 or newer; this is %d.%d. Try: make PYTHON=python3.12 ..."
            % sys.version_info[:2]
        )
    try:
        import ensurepip  # noqa: F401
        import venv  # noqa: F401
    except ImportError:
        stop(
            "This Python cannot make virtual environments: install the package python3-venv "
            "(Debian, Ubuntu: apt install python3-venv) and run make again."
        )


def wanted(groups):
    with open(os.path.join(ROOT, "pyproject.toml"), "rb") as project:
        state = hashlib.sha256(project.read())
    state.update(repr((sys.version_info[:3], sorted(groups))).encode())
    return state.hexdigest()


def installed():
    try:
        with open(STAMP) as stamp:
            return stamp.read().split()
    except OSError:
        return []


def run(*command):
    try:
        subprocess.run(command, cwd=ROOT, check=True)
    except subprocess.CalledProcessError as error:
        stop("Setting up failed at: %s (exit %d)." % (" ".join(command[:6]), error.returncode))
    except KeyboardInterrupt:
        stop("Interrupted. The same command goes on where this one stopped.")


def main(groups):
    check_python()
    state = wanted(groups)
    if state in installed():
        return
    python = os.path.join(VENV, "bin", "python")
    if not os.path.exists(python):
        sys.stderr.write("Setting up .venv (once) ...\n")
        shutil.rmtree(VENV, ignore_errors=True)
        run(sys.executable, "-m", "venv", VENV)
    if not os.path.exists(os.path.join(VENV, "bin", "pip")):
        # Interrupted while it was made, or made by a tool that puts no pip into it.
        run(python, "-m", "ensurepip", "--default-pip")
    # Whoever watches sees how far it is: the first time, this takes a minute.
    options = (
        "--disable-pip-version-check",
        "--no-input",
        *(() if sys.stdout.isatty() else ("-q",)),
    )
    # Older pips do not know dependency groups.
    run(python, "-m", "pip", "install", *options, "--upgrade", "pip>=25.1")
    chosen = [part for group in groups for part in ("--group", group)]
    run(python, "-m", "pip", "install", *options, "-e", ".", *chosen)
    with open(STAMP, "a") as stamp:
        stamp.write(state + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
