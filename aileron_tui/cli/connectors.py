"""`aileron connector list|install`: modules of the home's store."""

from pathlib import Path

from aileron_core.connectors.store import ConnectorStore
from aileron_core.errors import HomeError
from aileron_core.pins import rows as pins
from aileron_core.storage.home import Home
from aileron_core.storage.open import open_reader
from aileron_core.text import escape
from aileron_tui.cli.output import EXIT, Context

__all__ = ["install_connector", "list_connectors"]


def _taken_in(home: Home) -> set[str]:
    try:
        connection = open_reader(home.database)
    except HomeError:
        return set()
    try:
        return {pin.digest for pin in pins.all_pins(connection) if pin.kind == "connector"}
    finally:
        connection.close()


def list_connectors(context: Context) -> int:
    """Print what is installed, and what in the store cannot be used; 1 if there is such."""
    home = Home(context.home)
    found, problems = ConnectorStore(home.path).scan()
    taken_in = _taken_in(home)
    if context.json:
        items = [
            {
                "name": each.identity.fqn,
                "version": each.identity.version,
                "hash": each.identity.hash,
                "hosts": list(each.manifest.hosts),
                "state": "ready" if each.identity.hash in taken_in else "held_back",
            }
            for each in found
        ]
        context.show({"items": items, "problems": [problem.to_json() for problem in problems]})
        return EXIT.FAILED if problems else EXIT.DONE
    for each in found:
        held = (
            ""
            if each.identity.hash in taken_in
            else "  held back until it is taken in, in the console"
        )
        context.say(f"{escape(each.identity.fqn)}@{each.identity.version}{held}")
        context.say(f"    {each.identity.hash}")
        context.say(f"    reaches {escape(', '.join(each.manifest.hosts) or 'no host')}")
    for problem in problems:
        context.say(f"✗ {escape(str(problem))}", fg="red")
    if not found and not problems:
        context.say("No connectors are installed. `aileron connector install FOLDER` installs one.")
    return EXIT.FAILED if problems else EXIT.DONE


def install_connector(context: Context, path: str) -> int:
    """Install the connector of a folder; it counts once a person took it in."""
    home = Home(context.home)
    home.prepare()
    installed = ConnectorStore(home.path).install(Path(path))
    if context.json:
        context.show(
            {
                "name": installed.identity.fqn,
                "version": installed.identity.version,
                "hash": installed.identity.hash,
                "hosts": list(installed.manifest.hosts),
            }
        )
        return EXIT.DONE
    context.say(f"installed {escape(installed.identity.fqn)}@{installed.identity.version}")
    context.say(f"    {installed.identity.hash}")
    context.say(f"    reaches {escape(', '.join(installed.manifest.hosts) or 'no host')}")
    context.say("It can be used once you take it in, in the console.")
    return EXIT.DONE
