"""docs/trusted-code.md: the modules behind the gate, and what each package of them may import."""

import ast
import sys
import tomllib
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.append(str(ROOT / ".ci"))

import shape  # noqa: E402

_TOP = """# What has to be right

"Nothing runs without a yes" holds as long as these modules do what they say: `aileron_core.runs.gate`, `aileron_core.runs.decisions`, and all that they import, imports inside functions too. Of the code that a reader of [the trust rules](architecture.md#trust-rules) has to check, this is the part behind which nothing else would catch a mistake. The screen is not in it: it can show you something else than it should, and [the three words](wire.md#digest) and the digest bind your yes to what the core fetched.

Three parts are given to them behind interfaces (`runs/interfaces.py`, `connectors/protocol.py`) and are not counted. None of them starts anything, for only the gate calls a connector; but a yes is worth what they say:

* `library` says which files you accepted. A mistake there could pass off a file as accepted that is not.
* `credentials` says which account a call uses. The digest covers the account; a mistake there could use another one.
* `connectors` do the ops. The digest covers their bytes and hosts; a mistake in their sandbox could let one do more.

{modules} modules, with those that only make a package of a folder; `make shape` counts their lines, and `python docs/generate.py` writes this page.

A package may import those of later layers, and none of its own layer or an earlier one: `make check` holds that (`[tool.importlinter]` in pyproject.toml). Of other people's libraries these modules import {libraries}.

| layer | package | its modules |
|---|---|---|
{rows}
"""


def trusted_code_page() -> str:
    """Return the page as the code is now."""
    found = shape.behind(shape.GATE)
    packages: dict[str, list[str]] = defaultdict(list)
    for name in sorted(found):
        packages[name.split(".")[1] if "." in name else ""].append(name)
    packages.pop("", None)
    there = [[each for each in layer if each in packages] for layer in _layers()]
    layers = [layer for layer in there if layer]
    rows = [
        f"| {number} | `{each}` | {_modules(packages[each])} |"
        for number, layer in enumerate(layers, 1)
        for each in layer
    ]
    libraries = _listed(sorted(_libraries(found)))
    return _TOP.format(modules=len(found), libraries=libraries, rows="\n".join(rows))


def _layers() -> list[list[str]]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = project["tool"]["importlinter"]["contracts"]
    core = next(each for each in contracts if each.get("containers") == ["aileron_core"])
    return [[name.strip() for name in layer.split("|")] for layer in core["layers"]]


def _modules(names: list[str]) -> str:
    short = (".".join(name.split(".")[2:]) for name in names)
    return ", ".join(f"`{name}`" for name in short if name) or "it is one module"


def _listed(names: list[str]) -> str:
    return ", ".join(names[:-1]) + f" and {names[-1]}" if len(names) > 1 else "".join(names)


def _libraries(modules: set[str]) -> set[str]:
    """Return the packages of others that *modules* import."""
    found = set[str]()
    for name in modules:
        for node in ast.walk(ast.parse(shape.MODULES[name].read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                found |= {each.name.partition(".")[0] for each in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                found.add(node.module.partition(".")[0])
    return {each for each in found if each not in {*sys.stdlib_module_names, *shape.PACKAGES}}
