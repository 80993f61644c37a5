"""What a front end draws: frozen values that cross threads.

Text in these values is hostile unless a field says otherwise; `aileron_core.text` draws it.
"""

from dataclasses import dataclass
from typing import Literal

from aileron_core.console_port.account_views import AccountNeed, AccountView
from aileron_core.console_port.field_views import (
    DriftView,
    FieldView,
    LookView,
    PreviewView,
    ReadBack,
)
from aileron_core.console_port.file_views import AcceptedBeforeView, FileContentView
from aileron_core.console_port.session_terms import NO_TERMS, ProcessView, SessionTerms
from aileron_core.console_port.standing import TriedShape
from aileron_core.containment.detection import Containment

ShownState = Literal[
    "new",
    "awaiting_vault",
    "pending",
    "checking",
    "approved",
    "executing",
    "completed",
    "failed",
    "unknown",
    "denied",
    "expired",
    "withdrawn",
]
WAITING_STATES: frozenset[str] = frozenset({"pending", "awaiting_vault", "checking"})
"""States in which a person's answer is still out, or is being checked."""
FINAL_STATES: frozenset[str] = frozenset(
    {"completed", "failed", "unknown", "denied", "expired", "withdrawn"}
)
"""States that a run never leaves."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepView:
    """One step of a gated action that has several.

    `running`: its arguments hold an earlier step's output, so they are only known while it runs; the run
    halts before it and asks again, unless it is idempotent. `done`: it ran. `asked`: the approval is
    about this step now, with its inputs filled in.
    """

    step_id: str
    connector: str
    op: str
    hosts: tuple[str, ...]
    status: Literal["done", "asked", "running", "fixed"]
    """`fixed`: nothing of it depends on an earlier step; it is covered as it stands."""
    asks_again: bool
    """Whether the run halts before it."""
    inputs: tuple[FieldView, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunAheadView:
    """Another run, whose end an approved one waits for, since both use one connector."""

    action: str
    ends_by: float | None
    """Epoch seconds until which it may run; None while its own preview is being checked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReachView:
    """What a session's sandbox lets its agent reach, as its launcher reported."""

    network: str = ""
    """`all`, `hosts` or `offline`; empty where it is not known."""
    hosts: tuple[str, ...] = ()
    """With `hosts`: which."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalView:
    """One call as the console shows it: a gated one, or an ungated one whose outcome is unknown."""

    approval_id: str
    """Empty where the action is not gated, so that nobody was asked."""
    run_id: str
    state: ShownState
    version: int
    """Grows whenever what a person should look at differs; the keys that decide are armed again for each."""
    requested_at: float
    expires_at: float | None
    """Epoch seconds; None for no deadline."""

    session_id: str
    agent: str
    """The launcher's name for it, or what a self-opened session said (then `self_opened`)."""
    session_label: str
    cwd: str
    self_opened: bool
    containment: Containment
    requester_gone: bool
    times_asked: int

    action: str
    """The accepted action's name (trusted: the file was accepted by its digest)."""
    title: str
    """The first heading of the accepted action file, or its name."""
    effect: str
    """READ CREATE CHANGE DELETE SEND PAY RUN; where the file says none ASK, or CALL if it asks nobody."""
    connector: str
    op: str
    hosts: tuple[str, ...]
    """Every `host:port` that its steps and its preview can reach with these arguments."""
    routed: tuple[str, ...]
    """Those of `hosts` that `--route` sends elsewhere, as `host:port -> address:port`."""

    arguments: tuple[FieldView, ...]
    """The agent's arguments, in the declared order."""
    new_values: tuple[FieldView, ...] = ()
    """Values that fields of the preview get, by their labels: the agent's words, put where the
    accepted action file says. Empty where it does not say so, and for any effect but CHANGE."""
    other_arguments: tuple[FieldView, ...] = ()
    """Those of `arguments` that do not stand whole among `new_values`; used where there are any."""
    inputs: tuple[FieldView, ...] = ()
    """The arguments as they can be edited; empty where the call cannot be."""
    edits: tuple[tuple[FieldView, FieldView], ...] = ()
    """Arguments that a person changed: as the agent sent them, and as they are."""
    preview: PreviewView
    drift: DriftView | None
    digest: str
    """Hex; empty until the preview's first answer. An approval names the digest it saw."""
    words: tuple[str, str, str] | None
    note: str = ""
    """Our own sentence on its history, for example that the console stopped before it began."""
    args_sha256: str = ""
    """Hex; calls of one action with the same one have equal arguments. Empty where it is not known, and once edited."""
    action_sha256: str = ""
    """Hex, of the action file as it was accepted when the call came; empty where no file names it."""
    steps: tuple[StepView, ...] = ()
    """Every step, where there are two or more; else `connector` and `op` say what runs."""
    process: ProcessView | None = None
    reach: ReachView = ReachView()
    claims: tuple[FieldView, ...] = ()
    """What the agent's client claims about this call (its own call, thread and session ids)."""
    stopped_waiting_at: float | None = None
    """Since when no call of the agent waits for the answer; None while one does, or none ever did."""
    can_fetch_again: bool = False
    """Nobody knows how it ended, and its preview op can be asked how it is now."""
    awaits_acknowledgement: bool = False
    """Nobody knows how it ended, and no person has taken note of that or settled it."""

    decided_at: float | None = None
    decided_by: str = ""
    hand: str = ""
    """With which a person decided it: `console`, `attached 2`, or a paired device's three words.

    Empty where nobody decided it, or no record says."""
    reason: str = ""
    """What the person wrote on denying."""
    op_hosts: tuple[str, ...] = ()
    """Those of `hosts` that the step which an approval starts with can reach."""
    hosts_asked: tuple[str, ...] = ()
    """Those that its steps really sent requests to, as far as this process knows."""
    outcome: str = ""
    """Our own sentence on how it ended, for failed and unknown; empty otherwise."""
    ended_at: float | None = None
    can_undo: bool = False
    """A built-in tool's call that wrote something which can be taken back."""
    forgotten: bool = False
    """Its arguments and its result are not kept any more."""
    sealed: str = ""
    """Why its arguments and its result cannot be read, as a sentence, where they are kept sealed; else empty."""
    started_at: float | None = None
    """Since when its steps run; None before that, and where another process began it."""
    seconds_allowed: float | None = None
    """How long they may run, without what they have used up before; None once it is over."""
    waits_for: RunAheadView | None = None
    """The run that it waits for, while its state is `checking`."""
    rule: str = ""
    """Why the rules for built-in tools had it asked, run or denied, as a clause; empty where none apply."""
    gated: bool = True
    """Whether a person is asked before it runs; one that is not may still wait for an account."""
    accounts: tuple[AccountView, ...] = ()
    """The accounts whose credentials its steps use."""
    account_need: AccountNeed | None = None
    """Why it waits; None unless its state is `awaiting_vault`."""
    read_back: ReadBack | None = None
    """What the service held after the run; None where it was not asked, or nothing is known of it."""
    look: LookView | None = None
    """The last look at the service where nobody knows how it ended; None where nobody has looked."""

    @property
    def is_of_server(self) -> bool:
        """Whether it is a tool of a person's MCP server."""
        return self.connector.startswith("mcp://")

    @property
    def is_of_reaching_server(self) -> bool:
        """Whether it is a tool of an MCP server that lists hosts: what it sends there nobody can tell by the call."""
        return self.is_of_server and bool(self.hosts)

    @property
    def call_id(self) -> str:
        """What the call is named by: its approval's id, or its run's where nobody was asked."""
        return self.approval_id or self.run_id

    @property
    def is_settled(self) -> bool:
        """Whether its answer never arrived, and a look showed that the service holds what was approved."""
        read = self.look.comparison if self.look is not None else None
        return self.state == "unknown" and read is not None and read.status == "held"

    @property
    def shown_state(self) -> str:
        """`state`, or `settled` for what began as an unknown outcome and was settled by looking again."""
        return "settled" if self.is_settled else self.state

    @property
    def is_compared(self) -> bool:
        """Whether old and new values of its fields can be shown beside each other."""
        if not self.new_values or self.preview.status != "ready":
            return False
        labels = {field.label for field in self.preview.fields}
        return all(field.label in labels for field in self.new_values)

    @property
    def agent_fields(self) -> tuple[FieldView, ...]:
        """Everything of the agent's that is shown, each once: new values come first."""
        return (*self.new_values, *self.other_arguments) if self.is_compared else self.arguments


@dataclass(frozen=True, slots=True, kw_only=True)
class TrafficView:
    """What of a session's model traffic passed the gateway: numbers, nothing of the contents."""

    requests: int
    in_flight: int
    bytes_up: int
    """Of requests' bodies."""
    bytes_down: int
    """Of answers' bodies."""
    last_status: int | None
    """Of the request that ended last; None where none has, or its client was given no answer."""
    last_route: str
    """Method and path, without the query: hostile text."""
    gateway_errors: int
    """How many were answered with an error of Aileron's own."""


UnreadReason = Literal["busy", "compressed", "error", "format", "websocket"]
"""Why an answer of a model was not read, or not to its end: it came faster than is read; it was compressed; it
is not what its format says, or too large; no reader knows its format; it came over a WebSocket."""


@dataclass(frozen=True, slots=True)
class WentAroundView:
    """A tool of an agent's own that its model called, and that does not go through the gate."""

    tool: str
    """One of the names in `aileron_core.sessions.tool_calls`."""
    at: float
    """When it was called first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCallsView:
    """The tool calls of a session's model, where model traffic is inspected: names and numbers alone."""

    by_name: tuple[tuple[str, int], ...] = ()
    """Since this console started."""
    others: int = 0
    """Calls of tools whose name is not kept."""
    unread: tuple[tuple[UnreadReason, int], ...] = ()
    """How many answers were not read, or not to their end."""
    went_around: tuple[WentAroundView, ...] = ()
    """Since the session was opened; in the order of their first calls."""


@dataclass(frozen=True, slots=True)
class RefusedHost:
    """A host that a session's sandbox did not let its agent reach."""

    host: str
    """`name:port`, as the agent named it: hostile text; of a name that was only looked up, the port of HTTPS."""
    problem: str = ""
    """Why a person cannot allow it, as a clause; empty where they can. May quote the agent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HostsView:
    """What became of the hosts that a session asked for; only of a sandbox that reaches listed hosts."""

    refused: tuple[RefusedHost, ...] = ()
    """In the order in which they were refused first."""
    allowed: tuple[str, ...] = ()
    """Those of them that a person has allowed, until it ends."""
    further: int = 0
    """How often a host was refused that is not among these."""


NO_HOSTS = HostsView()


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionView:
    """A launched agent, as far as known."""

    session_id: str
    agent: str
    label: str
    cwd: str
    pid: int | None
    executable: str
    self_opened: bool
    containment: Containment
    opened_at: float
    connected: bool
    """Its hold stream is open."""
    process: ProcessView | None = None
    claims: tuple[FieldView, ...] = ()
    """What its MCP client claims about itself (name, version)."""
    waiting: int = 0
    """How many of its calls wait for a person."""
    running: int = 0
    traffic: TrafficView | None = None
    """None: nothing of it has passed the gateway."""
    containment_line: str = ""
    """What contains it, what it may reach and what it can write, a sentence; hosts and paths not yet escaped."""
    waits_for_vault: bool = False
    """Its model requests are refused until the vault is unlocked."""
    terms: SessionTerms = NO_TERMS
    tool_calls: ToolCallsView | None = None
    """None: model traffic is not inspected, and nothing was seen of it before."""
    hosts: HostsView = NO_HOSTS

    @property
    def went_around(self) -> tuple[WentAroundView, ...]:
        """The tools that its model called and that do not go through the gate."""
        return self.tool_calls.went_around if self.tool_calls is not None else ()

    @property
    def host_to_allow(self) -> str | None:
        """The refused host that a person can allow next, None if there is none."""
        return next((each.host for each in self.hosts.refused if not each.problem), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteView:
    """What one `aileron action add` brought: it says which files are shown together, no more."""

    suite_id: str
    source: str
    """What was named to `action add`."""
    added_at: float
    refused: tuple[str, ...] = ()
    """What the command left out, and why: its sentences, which another program may have written."""
    gone: tuple[str, ...] = ()
    """Accepted actions of its publisher that the release does not have, as the command found."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PublisherView:
    """Whose a published file is, as its signatures said when the view was made."""

    name: str
    """The publisher's, as `github://OWNER/REPO`: the file's claim, unless a key signed it."""
    key: str = ""
    """The fingerprint of the key that signed the file; empty where none did."""
    accepted: str = ""
    """The fingerprint of the publisher's accepted key; empty without one."""
    known_as: tuple[str, ...] = ()
    """The accepted publishers of the same owner that have this key."""
    resembles: str = ""
    """The accepted publisher that its name may be taken for; empty without one."""
    other_key_of: str = ""
    """Of a key that is new: an accepted publisher of the same owner with another one; empty without one."""
    is_vouched_for: bool = False
    """Of a key that is offered in place of the accepted one: that one signed it."""

    @property
    def is_new(self) -> bool:
        """Accepting the file accepts the key."""
        return bool(self.key) and not self.accepted

    @property
    def name_and_key(self) -> str:
        """Whose key signed the file, and which, a blank between them; empty where none did."""
        return f"{self.name} {self.key}" if self.key else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunTimeView:
    """The time that an action names for a run, where its file sets no limit. In seconds."""

    seconds: int
    usual: int
    """What it has without the acceptance."""
    named_by: str
    """`connector`, or the argument in which a call says how long."""
    accepted: bool
    """A person accepted it with these bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NotAcceptedView:
    """A file of the home that nobody has accepted, or not with these bytes.

    `settings` are those of `config.toml`, `policy` the rules of `policy.toml`. Of the kind `preview` it is what a connector's previews tried to read by POST: its name is the
    connector's and, after a blank, what it would read (`posted_reads`); its digest the connector's. `publisher` is
    the key of a publisher of whom another one is accepted: its digest is the fingerprint.
    """

    kind: Literal["action", "connector", "preview", "settings", "policy", "publisher"]
    name: str
    file: str
    digest: str
    change: Literal["new", "changed"]
    is_update: bool = False
    """What was accepted of that name counts until this is accepted."""
    gated: bool | None = None
    """None of what is no action."""
    connector: str = ""
    hosts: tuple[str, ...] = ()
    steps: tuple[str, ...] = ()
    """Every step of an action as `connector.op`, in order."""
    account: tuple[str, ...] = ()
    """What a connector asks for: the kind of account, then each scope."""
    accounts_of: tuple[str, ...] = ()
    """The versions of it whose accounts go along once it is accepted."""
    preview: str = ""
    """The op of an action's preview; empty without one."""
    cannot_run: str = ""
    """Why no call of it can run once it is accepted: our own sentence. Empty where one can."""
    is_read_only: bool = False
    """The file marks the action as one that only reads."""
    source: str = ""
    """What was named to the command that added it, as a list in the home says; empty without one."""
    suite: SuiteView | None = None
    """With what it came, where more than one file of that is not accepted yet."""
    run_time: RunTimeView | None = None
    """What accepting an action gives it beyond the usual time."""
    content: FileContentView | None = None
    """What there is to accept; None of the kinds `preview` and `publisher`."""
    publisher: PublisherView | None = None
    """Whose it is; None of what nobody published."""
    tried: TriedShape | None = None
    """Of rules for actions, which of a person's answers they would have given; None where that is not known."""

    @property
    def noun(self) -> str:
        """What a person calls its kind."""
        is_server = self.content is not None and self.content.server is not None
        return "MCP server" if is_server else self.kind

    @property
    def is_refused(self) -> bool:
        """It cannot be accepted: its publisher's accepted key did not sign it."""
        whose = self.publisher
        if whose is None or self.kind == "publisher" or whose.key == whose.accepted:
            return False
        return bool(whose.accepted) and (bool(whose.key) or self.kind == "connector")

    @property
    def signed_with(self) -> str:
        """`PublisherView.name_and_key` of its publisher; empty where it has none."""
        if self.publisher is None or self.kind == "publisher":
            return ""
        return self.publisher.name_and_key

    @property
    def before(self) -> AcceptedBeforeView | None:
        """What was accepted in its place, if anything."""
        return self.content.before if self.content is not None else None


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordView:
    """One committed audit record. `summary` is ours; quoted parts in it were rendered."""

    seq: int
    at: float
    event: str
    run_id: str | None
    session_id: str | None
    action: str | None
    actor: str
    """`person`, `agent`, `aileron`."""
    agent: str
    summary: str
    seconds_allowed: float | None = None
    """Of a start: how long the steps may run from then on; None where it does not say."""
    count: int = 1
    """Of refused calls: how many equal ones it is about."""
    hand: str = ""
    """Of a person's decision: with which hand, as in `ApprovalView.hand`."""
    actions: tuple[str, ...] = ()
    """Of several refused calls: the names of what they were of, which are the agent's claims."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DecidedScreenView:
    """What was shown of a call when a person decided it, as it is kept on disk."""

    at: float
    """Epoch seconds, just before the decision was recorded."""
    approval: ApprovalView | None
    """None where it cannot be read; then `problem` says why."""
    problem: str = ""
    """Our own sentence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallView:
    """One call, gated or not, with everything that is kept of it."""

    approval: ApprovalView
    """As it is now. Its `approval_id` is empty where it was not gated; its preview is the last one in
    memory, and of the status `none` where there is none any more."""
    gated: bool
    result: tuple[FieldView, ...] = ()
    """What a completed run returned: the last step's output, and of several steps each one's.
    The service's words, under labels of the accepted action file or of ours."""
    edited: bool = False
    """Its row is not what its last record says: another program changed it."""
    records: tuple[RecordView, ...] = ()
    """All of its records, oldest first."""
    screens: tuple[DecidedScreenView, ...] = ()
    """What was shown at each decision on it, oldest first; empty where nothing is kept on disk."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryQuery:
    """Which calls are looked for. All that is given must hold; of several values of one kind any may."""

    words: tuple[str, ...] = ()
    """Each is found, in any case, in what can be read of a call: names, arguments, fetched fields, result, reason."""
    agents: tuple[str, ...] = ()
    """Parts of the agent's name, in any case."""
    actions: tuple[str, ...] = ()
    """Parts of the action's name, in any case."""
    outcomes: tuple[str, ...] = ()
    """`ApprovalView.shown_state`, or `refused` for what never became a run."""
    since: float | None = None
    """Epoch seconds; with it no call that was made before."""
    until: float | None = None
    """Epoch seconds; with it no call that was made then or later."""
    lifecycle: bool = False
    """Also records that are of no call: sessions, files, the console."""


def has_any(text: str, parts: tuple[str, ...]) -> bool:
    """Return whether one of *parts* is found in *text*, in any case."""
    text = text.casefold()
    return any(part.casefold() in text for part in parts)


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryCursor:
    """A place in the history, which is read from the newest to the first."""

    run_id: str
    """Every call before it follows; empty: none does."""
    seq: int
    """Every record of no call before it follows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryCall:
    """One call of the history, as a row needs it."""

    approval: ApprovalView
    """As in `CallView`, with what was fetched when it was decided, where that can be read. Its texts are cut
    after 20,001 characters, and `forgotten` and `sealed` say why there are none."""
    edited: bool = False
    """Its row is not what its last record says: another program changed it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HourOfCalls:
    """The calls that were made in one hour, gated or not."""

    began_at: float
    outcomes: tuple[tuple[str, int], ...] = ()
    """How many are now in each state (`HistoryQuery.outcomes`); a state that none is in is left out."""
    not_gated: int = 0
    """Of those that became runs."""
    approved: int = 0
    """By a person, whatever came of it."""
    median_wait: float | None = None
    """Seconds that a person took to answer; None where none did."""

    @property
    def calls(self) -> int:
        return sum(count for _, count in self.outcomes)


@dataclass(frozen=True, slots=True, kw_only=True)
class LibraryItemView:
    """An action or connector of the home, whatever its state."""

    kind: Literal["action", "connector", "preview", "publisher"]
    name: str
    """An action's name; a connector's fully qualified name and version; a publisher's `github://OWNER/REPO`."""
    file: str
    digest: str
    """Of its bytes, hex; of a publisher's key its fingerprint."""
    state: Literal["ready", "cannot_run", "held_back", "error"]
    """`cannot_run`: it is accepted, and every call of it is refused."""
    reason: str
    """Why it is not ready: our own sentence. Empty when it is."""
    is_update: bool = False
    """It waits beside what was accepted of that name, which counts until this is accepted."""
    version: str = ""
    gated: bool | None = None
    preview: str = ""
    """The preview op; empty without one."""
    effect: str = ""
    connector: str = ""
    hosts: tuple[str, ...] = ()
    accepted_at: float | None = None
    accepted_by: str = ""
    steps: tuple[str, ...] = ()
    """Every step of an action as `connector.op`, in order."""
    run_time: RunTimeView | None = None
    """The time that an action names beyond the usual, and whether it has it."""
    content: FileContentView | None = None
    """None of what holds no text that can be shown: a file in error, the kinds `preview` and `publisher`."""
    publisher: PublisherView | None = None
    """Whose it is; None of what nobody published."""
    is_held: bool = False
    """An MCP server that is not started any more, because it ended too often; `reason` says how."""
    refused_hosts: tuple[str, ...] = ()
    """Each `host:port` that an MCP server's box did not let it reach, since the console started: foreign text."""
