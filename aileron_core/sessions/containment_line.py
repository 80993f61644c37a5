"""One line that says to a person which containment a session has: for its records, the console and the command line."""

from aileron_core.console_port.session_terms import SessionTerms
from aileron_core.containment.detection import Containment
from aileron_core.sessions.model import Session

_ACCOUNT = "it can do whatever your account can"
_MAX_HOSTS = 12
_MAX_PATHS = 6


def containment_line(session: Session, containment: Containment) -> str:
    """Return what contains the agent of *session*, what it may reach and what it can write, as a sentence.

    What a sandbox contains is its launcher's report; *containment* is what was seen of it. Hosts and
    paths are the person's own settings, not yet escaped.
    """
    if containment == "none":
        return f"Not contained: {_why(session)}; {_ACCOUNT}."
    if containment == "other_user":
        return "Runs as another user; it can do whatever that account can."
    how = (
        "In a sandbox"
        if containment == "verified"
        else "In a sandbox, as whoever opened it reports"
    )
    if not session.terms.network:
        return f"{how}. What it can reach and write was not reported."
    return f"{how}. It reaches {_reach(session.terms)}. It can write {_writes(session.terms)}."


def _why(session: Session) -> str:
    if session.self_opened:
        return "it connected by itself"
    if session.claims_contained:
        return "reported as contained, but seen outside any sandbox"
    return "opened in augment mode" if session.terms.augment else "launched with --no-sandbox"


def _reach(terms: SessionTerms) -> str:
    match terms.network:
        case "offline":
            return "no network: only Aileron's actions and, through the gateway, its model"
        case "hosts":
            return f"only these hosts: {_listed(terms.hosts, _MAX_HOSTS)}"
        case _:
            return "the whole network"


def _writes(terms: SessionTerms) -> str:
    if not terms.writes:
        return "only its project"
    return f"its project and {_listed(terms.writes, _MAX_PATHS)}"


def _listed(items: tuple[str, ...], limit: int) -> str:
    shown = ", ".join(items[:limit])
    return f"{shown} and {len(items) - limit} more" if len(items) > limit else shown or "none"
