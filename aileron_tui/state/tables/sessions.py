"""View 5: who is at work: what the kernel saw of each session, and beside it what the agent claims; below, paired devices."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import ClassVar, TypeAlias

from aileron_core.console_port.devices import DeviceView
from aileron_core.console_port.session_terms import ProcessView
from aileron_core.console_port.view_models import SessionView, ToolCallsView, WentAroundView
from aileron_core.text import escape
from aileron_tui import words
from aileron_tui.draw.blocks import Block, blank, heading, value
from aileron_tui.draw.columns import Column, Row
from aileron_tui.draw.context import process_chain
from aileron_tui.draw.devices import (
    device_blocks,
    device_head,
    device_name,
    device_program,
    device_status,
)
from aileron_tui.draw.foreign_text import foreign_text
from aileron_tui.draw.text import Line, Piece, Role, line, plain_text, truncate
from aileron_tui.draw.times import age, clock_seconds, day
from aileron_tui.input.commands import CommandRegistry
from aileron_tui.state.filter import FilterFields
from aileron_tui.state.tables.table import KeyedTable

_Who: TypeAlias = SessionView | DeviceView


def _column(
    title: str,
    of_session: Callable[[SessionView, Row], Line],
    size: int,
    least: int = 0,
    min_width: int = 0,
    *,
    of_device: Callable[[DeviceView, Row], Line] = lambda _device, _row: (),
    keeps_end: bool = False,
    outside: bool = False,
) -> Column[_Who]:
    def cell(item: _Who, row: Row) -> Line:
        return of_device(item, row) if isinstance(item, DeviceView) else of_session(item, row)

    return Column(title, cell, size, least, min_width, keeps_end, outside)


def _since(at: float, row: Row) -> Line:
    return (Piece(age(row.now - at), "muted"),)


class SessionsTable(KeyedTable[_Who]):
    """The rows of view 5: sessions in the order in which they were opened, then paired devices."""

    fields: ClassVar[tuple[str, ...]] = ("agent", "state", "folder")
    decides: ClassVar[bool] = True

    def __init__(
        self, sessions: Sequence[SessionView], devices: Sequence[DeviceView], now: float
    ) -> None:
        super().__init__(
            _column(
                "agent", lambda e, row: _agent(e, row.role), 16, 12, outside=True,
                of_device=lambda e, row: device_name(e, row.role),
            ),
            _column(
                "status", lambda e, _: _status_of(e), 17, 15, of_device=lambda e, _: device_status(e)
            ),
            _column(
                "contained", lambda e, _: _contained(e, short=True), 12,
                of_device=lambda e, _: (Piece(words.devices.KINDS[e.kind], "muted"),),
            ),
            _column("waiting", lambda e, _: _count(e.waiting), 9),
            _column("running", lambda e, _: _count(e.running), 9, min_width=100),
            _column("model", lambda e, _: _requests(e), 14, 10, 120),
            _column(
                "since", lambda e, row: _since(e.opened_at, row), 9, 7,
                of_device=lambda e, row: _since(e.paired_at, row),
            ),
            _column("session", lambda e, _: foreign_text(e.label, "muted"), 18, 10, 100),
            # The end of a path is more informative than its start, which most paths share.
            _column(
                "folder", lambda e, _: foreign_text(_folder(e), "muted"), 0, 14, keeps_end=True,
                of_device=lambda e, _: foreign_text(e.program, "muted"),
            ),
        )  # fmt: skip
        self.update(sessions, devices, now)

    def update(
        self, sessions: Sequence[SessionView], devices: Sequence[DeviceView], now: float
    ) -> None:
        opened = sorted(sessions, key=lambda each: each.opened_at)
        paired = sorted(devices, key=lambda each: each.paired_at)
        self.set_items((*opened, *paired), now)

    @property
    def session(self) -> SessionView | None:
        """The selected row, if it is a session."""
        return self.current if isinstance(self.current, SessionView) else None

    @property
    def device(self) -> DeviceView | None:
        """The selected row, if it is a device."""
        return self.current if isinstance(self.current, DeviceView) else None

    def key_of(self, item: _Who) -> str:
        return item.device_id if isinstance(item, DeviceView) else item.session_id

    def fields_of(self, item: _Who) -> FilterFields:
        if isinstance(item, DeviceView):
            text = plain_text((*device_name(item), Piece(" "), *device_status(item)))
            return FilterFields(text=f"{text} {item.program}", fields={}, at=item.paired_at)
        link = words.views.CONNECTED if item.connected else words.views.NOT_CONNECTED
        containment = words.item.CONTAINMENT[item.containment]
        named = {"agent": item.agent, "state": f"{link} {containment}", "folder": _folder(item)}
        text = f"{item.agent} {item.label} {item.session_id} {_folder(item)} {link} {containment}"
        return FilterFields(text=text, fields=named, at=item.opened_at)

    @property
    def version(self) -> tuple[object, ...]:
        """What a person must look at anew when it differs: whose session it is, not what it does."""
        item = self.current
        if isinstance(item, DeviceView):
            return (item.device_id, item.words, item.confirmed)
        return (item.session_id, item.containment, item.host_to_allow) if item is not None else ()

    # Drawing

    def summary(self, now: float, width: int) -> Line:
        """Return how many are connected, and how many nothing contains."""
        open_ = [each for each in self._items if isinstance(each, SessionView)]
        connected = sum(each.connected for each in open_)
        ways = Counter(each.containment for each in open_)
        pieces = [Piece(f" {words.views.sessions(len(open_), connected)}", "muted")]
        if devices := len(self._items) - len(open_):
            pieces.append(Piece(f" · {words.devices.count(devices)}", "muted"))
        if loose := ways["none"]:
            pieces += [Piece(" · ", "muted"), Piece(f"▲ {words.views.uncontained(loose)}", "attn")]
        if locked := sum(each.waits_for_vault for each in open_):
            waits = words.views.waiting_for_vault(locked)
            pieces += [Piece(" · ", "muted"), Piece(f"▲ {waits}", "attn")]
        if around := sum(bool(each.went_around) for each in open_):
            went = words.views.went_around(around)
            pieces += [Piece(" · ", "muted"), Piece(f"▲ {went}", "attn")]
        if asking := sum(each.host_to_allow is not None for each in open_):
            asks = words.views.asks_for_hosts(asking)
            pieces += [Piece(" · ", "muted"), Piece(f"▲ {asks}", "attn")]
        if claimed := ways["claimed"]:
            pieces.append(Piece(f" · {words.views.only_claimed(claimed)}", "muted"))
        return tuple(pieces)

    def detail_of(self, item: _Who, now: float) -> Line:
        if isinstance(item, DeviceView):
            return line(*device_name(item), Piece(" · ", "muted"), *device_program(item))
        who = process_chain(item.process) if item.process is not None else ()
        identity = who or (Piece(words.views.self_declared(item.self_opened), "muted"),)
        if item.host_to_allow is not None:
            asks = Piece(f"▲ {words.views.ASKS_FOR.lower()} ", "attn")
            host = foreign_text(item.host_to_allow, "strong")
            identity = line(asks, *host, Piece(" · ", "muted"), *identity)
        if item.went_around:
            around = Piece(f"▲ {_around(item.went_around[-1])}", "attn")
            identity = line(around, Piece(" · ", "muted"), *identity)
        return line(*identity, Piece(" · ", "muted"), *foreign_text(item.session_id, "muted"))

    def head_of(self, item: _Who, width: int, now: float) -> tuple[Line, ...]:
        if isinstance(item, DeviceView):
            return device_head(item)
        # Begins with a word of the console: a name must not begin a line of the head, as headings do.
        name = line(Piece("agent ", "muted"), *_agent(item, "strong"))
        first = line(" ", *name, "  ", *_link(item), "  ", *_contained(item))
        since = Piece(f"{age(now - item.opened_at)} ago", "muted")
        label = line(Piece(" · session ", "muted"), *foreign_text(item.label, "muted"))
        second = line(" ", Piece("opened ", "muted"), since, *(label if item.label else ()))
        rows = [truncate(first, width - 1), truncate(second, width - 1)]
        rows += _consequence(item)
        rows += [
            truncate(line(Piece(f" ▲ {_around(each)}", "attn")), width - 1)
            for each in item.went_around[-1:]
        ]
        if item.host_to_allow is not None:
            asks = Piece(f" ▲ {words.views.ASKS_FOR.lower()} ", "attn")
            host = foreign_text(item.host_to_allow, "strong")
            rows.append(truncate(line(asks, *host), width - 1))
        if item.self_opened:
            rows.append((Piece(f" ▲ {words.item.WARN_SELF_OPENED}", "attn"),))
        return tuple(rows)

    def blocks_of(self, item: _Who, *, unfold: bool) -> Iterable[Block]:
        """Return what the kernel saw, what the agent says of itself, what passed, and our record."""
        if isinstance(item, DeviceView):
            return device_blocks(item)
        return (
            *_network(item),
            *_around_blocks(item),
            *_own_servers(item),
            *_seen(item),
            blank(),
            *_said(item),
            blank(),
            *_model(item),
            blank(),
            *_record(item),
        )

    def status(self, registry: CommandRegistry) -> Line:
        return (
            Piece(words.views.SESSIONS_STATUS if self._items else words.views.NO_SESSIONS, "muted"),
        )


def _folder(item: SessionView) -> str:
    return item.process.cwd if item.process is not None and item.process.cwd else item.cwd


def _agent(item: SessionView, role: Role) -> Line:
    """Return the agent's name, as a claim where only the agent gave it."""
    if item.self_opened:
        return line(Piece("┊ ", "claim-bar"), *foreign_text(item.agent, "claim"))
    return foreign_text(item.agent, role)


def _link(item: SessionView) -> Line:
    if item.connected:
        return (Piece(f"● {words.views.CONNECTED}", "ok"),)
    return (Piece(f"○ {words.views.NOT_CONNECTED}", "muted"),)


def _status_of(item: SessionView) -> Line:
    """Return for its row whether it is there, and that it went around the gate."""
    if not item.went_around:
        return _link(item)
    dot = Piece("● ", "ok") if item.connected else Piece("○ ", "muted")
    return (dot, Piece(words.views.WENT_AROUND, "attn"))


def _around(seen: WentAroundView) -> str:
    return f"{clock_seconds(seen.at)} {words.views.called_around(escape(seen.tool))}"


def _around_blocks(item: SessionView) -> list[Block]:
    """Return each tool that its model called and that does not go through the gate; the tools' names are ours."""
    if not item.went_around:
        return []
    made = [heading(words.views.AROUND, (Piece(words.views.AROUND_REMARK, "muted"),))]
    for each in item.went_around:
        at = Piece(f"{day(each.at)} {clock_seconds(each.at)} ", "muted")
        text = Piece(words.views.called_around(escape(each.tool)), "attn")
        made.append(value(words.views.CALLED, line(at, text)))
    return [*made, blank()]


def _own_servers(item: SessionView) -> list[Block]:
    """Return the MCP servers of the agent's own that it starts although Aileron has the like."""
    if not (servers := item.terms.own_servers):
        return []
    made = [heading(words.views.OWN_SERVERS, (Piece(words.views.OWN_SERVERS_REMARK, "muted"),))]
    made += [value(words.views.STARTS, foreign_text(each, "attn")) for each in servers]
    return [*made, blank()]


def _tool_calls(calls: ToolCallsView) -> list[Block]:
    """Return how often the model called which tool, and what was not read."""
    pieces: list[Piece] = []
    for name, count in calls.by_name:
        pieces += [*foreign_text(name), Piece(f" {count:,}", "strong"), Piece(" · ", "muted")]
    if calls.others:
        pieces += [Piece(words.views.other_names(calls.others)), Piece(" · ", "muted")]
    tools = tuple(pieces[:-1]) or (Piece(words.views.NO_TOOLS, "muted"),)
    made = [value(words.views.TOOLS, tools)]
    for reason, count in calls.unread:
        text = (
            f"{count:,} {'answer' if count == 1 else 'answers'}: {words.views.UNREAD_WHY[reason]}"
        )
        made.append(value(words.views.UNREAD, (Piece(text, "attn"),)))
    return made


def _contained(item: SessionView, *, short: bool = False) -> Line:
    role: Role = "attn" if item.containment == "none" else "text"
    if short:
        return (Piece(words.views.CONTAINMENT_SHORT[item.containment], role),)
    mark = "▲ " if item.containment == "none" else ""
    return (Piece(f"{mark}{words.item.CONTAINMENT[item.containment]}", role),)


def _consequence(item: SessionView) -> list[Line]:
    """Return what follows where it was not seen to be contained."""
    if item.containment == "none":
        return [(Piece(f" ▲ {words.views.UNCONTAINED}", "attn"),)]
    text = {"claimed": words.views.ONLY_CLAIMED, "other_user": words.views.OTHER_USER}.get(
        item.containment
    )
    return [(Piece(f" {text}", "muted"),)] if text else []


def _held(item: SessionView) -> Line:
    """Return whether something contains it, in the words of its consequence."""
    if item.containment == "none":
        return (Piece(f"▲ {words.item.CONTAINED['none']}", "attn"),)
    return (Piece(words.item.CONTAINED[item.containment], "strong"),)


def _count(number: int) -> Line:
    return (Piece(str(number), "strong" if number else "muted"),)


def _seen(item: SessionView) -> list[Block]:
    process = item.process
    if process is None:
        title = heading(words.views.SEEN, (Piece(words.views.SEEN_NOTHING, "muted"),))
        return [title, value("Contained", _held(item))]
    made = [heading(words.views.SEEN, (Piece(words.views.SEEN_REMARK, "muted"),))]
    made.append(value("Process", process_chain(process)))
    made += _process_blocks(process)
    made.append(value("Contained", _held(item)))
    return made


def _process_blocks(process: ProcessView) -> list[Block]:
    made: list[Block] = []
    if process.executable:
        made.append(value("Program", foreign_text(process.executable, "strong")))
    if process.cwd:
        made.append(value("Folder", foreign_text(process.cwd, "strong")))
    if process.started_at is not None:
        at = f"{day(process.started_at)} {clock_seconds(process.started_at)}"
        made.append(value("Started", line(at)))
    for number, (pid, name) in enumerate(process.parents):
        parent = line(Piece(str(pid), "muted"), " ", *foreign_text(name))
        made.append(value("Parents" if number == 0 else "", parent))
    return made


def _said(item: SessionView) -> list[Block]:
    remark = words.views.CLAIMS_REMARK if item.claims or item.self_opened else words.views.NO_CLAIMS
    made = [heading(words.views.CLAIMS, (Piece(remark, "muted"),), "claim-heading")]
    own = (("agent", item.agent), ("session", item.label), ("folder", item.cwd))
    shown = own if item.self_opened else own[1:]
    for label, text in shown:
        if text:
            made.append(value((Piece(label, "muted"),), foreign_text(text, "claim"), "claim"))
    for field in item.claims:
        label = foreign_text(field.label, "muted")
        made.append(value(label, foreign_text(field.value, "claim"), "claim", label_outside=True))
    return made


def _status(status: int | None) -> Piece:
    if status is None:
        return Piece(words.views.NO_ANSWER, "muted")
    return Piece(str(status), "attn" if status >= 400 else "text")


def _requests(item: SessionView) -> Line:
    """Return how many requests passed, and how the last one ended or that one is under way."""
    traffic = item.traffic
    if item.waits_for_vault:
        return (Piece(words.views.WAITS_FOR_VAULT, "attn"),)
    if traffic is None:
        return (Piece("0", "muted"),)
    count = Piece(f"{traffic.requests:,}", "strong")
    if traffic.in_flight:
        return (Piece("● ", "ok"), count)
    if traffic.last_status is None:
        return (count,)
    return (count, Piece(" · ", "muted"), _status(traffic.last_status))


def _network(item: SessionView) -> list[Block]:
    """Return the hosts that its sandbox refused or a person allowed; nothing where there are none."""
    hosts = item.hosts
    if not (hosts.refused or hosts.allowed):
        return []
    made = [heading(words.views.NETWORK, (Piece(words.views.NETWORK_REMARK, "muted"),))]
    made += [
        value(words.views.ASKS_FOR, foreign_text(each.host, "strong"))
        for each in hosts.refused
        if not each.problem
    ]
    for host in hosts.allowed:
        remark = Piece(f"  {words.views.ALLOWED_BY_YOU}", "muted")
        made.append(value(words.views.ALLOWED_HOST, line(*foreign_text(host), remark)))
    for each in hosts.refused:
        if each.problem:
            why = line(*foreign_text(each.host), Piece(": ", "muted"), *foreign_text(each.problem))
            made.append(value(words.views.REFUSED_HOST, why))
    if hosts.further:
        made.append(value("", (Piece(words.views.further_refusals(hosts.further), "muted"),)))
    return [*made, blank()]


def _model(item: SessionView) -> list[Block]:
    traffic = item.traffic
    if traffic is None:
        return [heading(words.views.MODEL, (Piece(words.views.NO_MODEL, "muted"),))]
    remark = words.views.MODEL_REMARK
    if item.terms.augment:
        remark = words.views.MODEL_AUGMENTED
    elif item.tool_calls is not None:
        remark = words.views.MODEL_INSPECTED
    made = [heading(words.views.MODEL, (Piece(remark, "muted"),))]
    if item.waits_for_vault:
        made.append(value("Waits", (Piece(words.views.MODEL_WAITS, "attn"),)))
    made.append(value("Requests", line(words.views.passed(traffic.requests, traffic.in_flight))))
    made.append(value("Sent", line(words.views.size(traffic.bytes_up))))
    made.append(value("Received", line(words.views.size(traffic.bytes_down))))
    if traffic.last_route:
        route = foreign_text(traffic.last_route, "text")
        made.append(value("Last", line(_status(traffic.last_status), Piece(" ", "muted"), *route)))
    if item.tool_calls is not None:
        made += _tool_calls(item.tool_calls)
    if traffic.gateway_errors:
        made.append(value("Refused", (Piece(words.views.faults(traffic.gateway_errors), "attn"),)))
    return made


def _record(item: SessionView) -> list[Block]:
    opened = f"{day(item.opened_at)} {clock_seconds(item.opened_at)}"
    return [
        heading(words.item.RECORD, role="muted"),
        value("Opened", line(opened), "record"),
        value("Waiting", line(str(item.waiting)), "record"),
        value("Running", line(str(item.running)), "record"),
        value("Sandbox", foreign_text(item.containment_line), "record"),
        value("Session", foreign_text(item.session_id), "record"),
    ]
