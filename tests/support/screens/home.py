"""Sessions, actions, connectors and records for the fixture screens."""

from dataclasses import replace

from aileron_core.audit.events import AuditEvent
from aileron_core.console_port import view_models
from aileron_core.console_port.devices import DeviceView
from aileron_core.console_port.field_views import FieldView
from aileron_core.console_port.session_terms import ProcessView
from aileron_core.errors import Problem


def process(now: float) -> ProcessView:
    """Return what a kernel tells of codex in a pane of tmux."""
    return ProcessView(
        pid=48112, executable="/usr/bin/codex", cwd="/home/ana/work/q3",
        parents=((48100, "zsh"), (2201, "tmux: server"), (1, "systemd")), started_at=now - 1860,
    )  # fmt: skip


def devices(now: float) -> tuple[DeviceView, ...]:
    phone = DeviceView(
        device_id="dev-00000000000000000000000001", kind="page", words=("amber", "fox", "lantern"),
        program="", pid=None, confirmed=True, paired_at=now - 300, used_at=now - 4,
    )  # fmt: skip
    firefox = replace(
        phone, device_id="dev-00000000000000000000000002", words=("olive", "raven", "cedar"),
        program="/usr/lib/firefox-esr/firefox-esr", pid=4711, confirmed=False, paired_at=now - 6,
    )  # fmt: skip
    return (phone, firefox)


def sessions(now: float) -> tuple[view_models.SessionView, ...]:
    codex = view_models.SessionView(
        session_id="ses-00000000000000000000000001",
        agent="codex",
        label="q3-report",
        cwd="/home/ana/work/q3",
        pid=48112,
        executable="/usr/bin/codex",
        self_opened=False,
        containment="verified",
        containment_line=(
            "In a sandbox. It reaches the whole network. It can write only its project."
        ),
        opened_at=now - 1800,
        connected=True,
        process=process(now),
        claims=(
            FieldView(label="client", value="codex-mcp-client"),
            FieldView(label="version", value="0.61.0"),
        ),
        waiting=2,
        traffic=view_models.TrafficView(
            requests=41, in_flight=1, bytes_up=3_812_440, bytes_down=268_102, last_status=200,
            last_route="POST /v1/responses", gateway_errors=0,
        ),
    )  # fmt: skip
    claude = replace(
        codex, session_id="ses-00000000000000000000000002", agent="claude", label="",
        cwd="/home/ana/work/aileron", containment="none", opened_at=now - 900, waiting=2, running=1,
        containment_line=(
            "Not contained: launched with --no-sandbox; it can do whatever your account can."
        ),
        process=ProcessView(
            pid=51220, executable="/usr/local/bin/claude", cwd="/home/ana/work/aileron",
            parents=((51190, "fish"), (2201, "tmux: server")), started_at=now - 905,
        ),
        claims=(FieldView(label="client", value="claude-code"),),
        traffic=view_models.TrafficView(
            requests=1_204, in_flight=0, bytes_up=91_400_210, bytes_down=4_410_733, last_status=429,
            last_route="POST /v1/messages", gateway_errors=2,
        ),
    )  # fmt: skip
    relay = replace(
        codex, session_id="ses-00000000000000000000000003", agent="WILL HAPPEN\u200b",
        label="opened by a relay", cwd="/tmp", self_opened=True, containment="none",
        containment_line=(
            "Not contained: it connected by itself; it can do whatever your account can."
        ),
        opened_at=now - 120, connected=False, waiting=0, process=None, pid=None, executable="",
        claims=(), traffic=None,
    )  # fmt: skip
    return codex, claude, relay


def not_accepted() -> view_models.NotAcceptedView:
    return view_models.NotAcceptedView(
        kind="action",
        name="post-invoice",
        file="actions/post-invoice.md",
        digest="5b0e" * 16,
        change="new",
        gated=True,
        connector="billing",
        steps=("billing.post_invoice",),
        hosts=("api.billing.example:443",),
    )


def problems() -> tuple[Problem, ...]:
    return (
        Problem(file="actions/pay.md", line=12, key="execute.op",
                message="The connector billing has no op pay; it has post_invoice."),
    )  # fmt: skip


def library_items(now: float) -> tuple[view_models.LibraryItemView, ...]:
    send = view_models.LibraryItemView(
        kind="action",
        name="send-draft",
        file="actions/send-draft.md",
        digest="9f3c" * 16,
        state="ready",
        reason="",
        version="1.2.0",
        gated=True,
        preview="gmail.get_draft",
        effect="SEND",
        connector="gmail",
        steps=("gmail.send_draft",),
        hosts=("gmail.googleapis.com:443",),
        accepted_at=now - 86_400,
        accepted_by="person",
    )
    free = replace(
        send, name="list-drafts", file="actions/list-drafts.md", gated=False, preview="",
        effect="READ", steps=("gmail.list_drafts",), digest="11aa" * 16,
    )  # fmt: skip
    new = replace(
        send, name="post-invoice", file="actions/post-invoice.md", digest="5b0e" * 16,
        state="held_back", reason="It has not been accepted.", version="0.1.0", effect="CREATE",
        connector="billing", steps=("billing.post_invoice",), preview="billing.get_invoice",
        hosts=("api.billing.example:443",), accepted_at=None, accepted_by="",
    )  # fmt: skip
    broken = replace(
        new, name="pay", file="actions/pay.md", state="error", gated=None, effect="", steps=(),
        reason="The connector billing has no op pay.", preview="", hosts=(), digest="77fe" * 16,
        version="",
    )  # fmt: skip
    gmail = replace(
        send, kind="connector", name="gmail 1.2.0", file="store/connectors/sha256/9f3c", gated=None,
        preview="", effect="", connector="", steps=(), digest="9f3c" * 16,
    )  # fmt: skip
    return free, broken, new, send, gmail


_RECORDS = (
    (AuditEvent.RUN_REQUESTED, "send-draft waits for a person"),
    (AuditEvent.PREVIEW_FETCHED, "Fetched the preview of send-draft, from gmail.googleapis.com"),
    (AuditEvent.APPROVAL_DENIED, "A person denied send-draft"),
    (AuditEvent.RUN_STARTED, "Started list-drafts"),
    (AuditEvent.RUN_COMPLETED, "list-drafts completed; it contacted gmail.googleapis.com"),
    (AuditEvent.RUN_REQUESTED, "send-draft waits for a person"),
    (AuditEvent.PREVIEW_FETCHED, "Fetched the preview of send-draft, from gmail.googleapis.com"),
    (AuditEvent.APPROVAL_APPROVED, "A person approved send-draft"),
    (AuditEvent.RECHECK_DIFFERED, "Nothing ran: what would happen differs from what was shown"),
    (AuditEvent.APPROVAL_APPROVED, "A person approved send-draft"),
    (AuditEvent.RECHECK_HELD, "The preview still matches what the person saw"),
    (AuditEvent.RUN_STARTED, "Started send-draft"),
    (AuditEvent.RUN_COMPLETED, "send-draft completed; it contacted gmail.googleapis.com"),
    (AuditEvent.RUN_REQUESTED, "send-draft waits for a person"),
    (AuditEvent.APPROVAL_APPROVED, "A person approved send-draft"),
    (AuditEvent.RUN_STARTED, "Started send-draft"),
    (AuditEvent.RUN_UNKNOWN, "send-draft: outcome unknown"),
    (AuditEvent.SESSION_OPENED, "A session was opened"),
)
"""Events as the gate names them, in the order in which they come."""
_RUNS = (1, 1, 1, 2, 2, 3, 3, 3, 3, 3, 3, 3, 3, 4, 4, 4, 4, None)
"""Which run each is about."""
PAST = 100
"""Their numbers begin above those of the calls that wait."""


def record_views(now: float) -> tuple[view_models.RecordView, ...]:
    """Return two rounds of records, oldest first, one every ten seconds."""
    views: list[view_models.RecordView] = []
    for seq in range(1, 2 * len(_RECORDS) + 1):
        turn, place = divmod(seq - 1, len(_RECORDS))
        event, summary = _RECORDS[place]
        run = _RUNS[place]
        named = {2: "list-drafts", None: None}.get(run, "send-draft")
        views.append(
            view_models.RecordView(seq=seq, at=now - 10.0 * (2 * len(_RECORDS) - seq) - 40, event=event,
                       run_id=f"run-{PAST + turn * 4 + run:026d}" if run is not None else None,
                       session_id="ses-00000000000000000000000001", action=named,
                       actor=event.actor, agent="claude" if run in (2, None) else "codex",
                       summary=summary)
        )  # fmt: skip
    return tuple(views)
