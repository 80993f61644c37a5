"""No key press is lost in silence: it does what it was aimed at, or one sentence says why not."""

import random
from dataclasses import replace

import pytest

from aileron_core.console_port.events import ApprovalUpdated, IntentRefused, LibraryUpdated
from aileron_core.console_port.intents import Accept, Acknowledge, Approve, Deny, Intent
from aileron_core.console_port.view_models import WAITING_STATES, ApprovalView, NotAcceptedView
from aileron_tui.draw.text import plain_text
from aileron_tui.input.commands import key_label
from aileron_tui.state.pending_intents import file_key
from tests.screen.driving import Console
from tests.support.screens.calls import drifted
from tests.support.screens.home import not_accepted
from tests.support.screens.play import Play, rested
from tests.support.screens.states import NOW, mail, short, snapshot_of
from tests.support.variants import ALL, variants

PRESSES = 200 if ALL else 80
KEYS = (
    ["a"] * 12 + ["d"] * 4 + ["j"] * 5 + ["k"] * 4 + ["space"] * 5 + ["enter"] * 6
    + ["slash"] * 2 + ["escape"] * 5 + ["t", "r", "m", "z"]
)  # fmt: skip


class World:
    """Agents and a core that disturb: calls come, change, run, and end by themselves."""

    def __init__(self, play: Play, views: tuple[ApprovalView, ...], chance: random.Random):
        self._play, self._chance = play, chance
        self.views = {view.call_id: view for view in views}
        self._answered = 0
        self._next = len(views) + 1
        self._files: dict[str, NotAcceptedView] = {}
        self.accepted: set[str] = set()
        """Keys of the rows that the person accepted."""

    def _tell(self, view: ApprovalView, **changes: object) -> None:
        view = replace(view, version=view.version + 1, **changes)
        self._show(view)

    def _show(self, view: ApprovalView) -> None:
        self.views[view.call_id] = view
        self._play.port.tell(ApprovalUpdated(view=view))

    def answer(self) -> None:
        intents = self._play.port.intents
        for intent in intents[self._answered :]:
            self._carry_out(intent)
        self._answered = len(intents)

    def _carry_out(self, intent: Intent) -> None:
        now = self._play.clock.now()
        match intent:
            case Approve(approval_id=key, digest=digest):
                view = self.views[key]
                if view.state != "pending" or view.digest != digest:
                    self._refuse(key)
                elif self._chance.random() < 0.2:
                    self._drift(view)
                else:
                    self._tell(view, state="executing", decided_at=now, decided_by="person")
            case Deny(approval_id=key, reason=reason):
                view = self.views[key]
                if view.state in WAITING_STATES:
                    self._tell(view, state="denied", decided_at=now, ended_at=now, reason=reason)
                else:
                    self._refuse(key)
            case Acknowledge(call_id=key):
                self._tell(self.views[key], awaits_acknowledgement=False)
            case Accept(name=name, digest=digest):
                file = self._files.get(name)
                if file is None or file.digest != digest:
                    self._refuse(name)
                else:
                    self.accepted.add(file_key(file.kind, name))
                    del self._files[name]
                    self._tell_files()
            case _:
                pass

    def _tell_files(self) -> None:
        files = tuple(self._files.values())
        self._play.port.tell(LibraryUpdated(not_accepted=files, problems=(), actions_ready=3))

    def _change_files(self) -> None:
        name = f"file-{self._chance.randrange(4)}"
        if name in self._files and self._chance.random() < 0.5:
            del self._files[name]
        else:
            kind = "connector" if name == "file-0" else "action"
            digest = f"{self._chance.getrandbits(256):064x}"
            self._files[name] = replace(not_accepted(), kind=kind, name=name, digest=digest)
        self._tell_files()

    def _refuse(self, key: str) -> None:
        self._play.port.tell(IntentRefused(call_id=key, message="Answered elsewhere."))

    def _drift(self, view: ApprovalView) -> None:
        digest = f"{int(view.digest, 16) + 2**64:064x}"
        self._tell(view, drift=drifted(self._play.clock.now()), digest=digest)

    def disturb(self) -> None:
        """Let one thing happen that no key asked for."""
        now = self._play.clock.now()
        waiting = [each for each in self.views.values() if each.state == "pending"]
        running = [each for each in self.views.values() if each.state == "executing"]
        what = self._chance.choice([*["come"] * 3, *["end"] * 2, "drift", "run", *["file"] * 2])
        if what == "come" or not waiting:
            make = self._chance.choice([short, short, mail])
            lives = self._chance.choice([3.0, 30.0, 300.0])
            agent = self._chance.choice(["codex", "claude", "kay"])
            self._show(make(self._next, requested_at=now, expires_at=now + lives, agent=agent))
            self._next += 1
        elif what == "end":
            ended = self._chance.choice(waiting)
            state = self._chance.choice(["expired", "withdrawn"])
            self._tell(ended, state=state, ended_at=now)
        elif what == "drift":
            self._drift(self._chance.choice(waiting))
        elif what == "run" and running:
            end = self._chance.choice(["completed", "failed", "unknown"])
            ended = self._chance.choice(running)
            self._tell(ended, state=end, ended_at=now, awaits_acknowledgement=end == "unknown")
        elif what == "file":
            self._change_files()

    def expire(self) -> None:
        now = self._play.clock.now()
        for view in tuple(self.views.values()):
            if view.state in WAITING_STATES and view.expires_at and view.expires_at <= now:
                self._tell(view, state="expired", ended_at=view.expires_at)


def aim(play: Play) -> tuple[object, ...]:
    """Return everything that a key can be aimed at: cursor, document, question, filter, first press."""
    model = play.model
    return (
        model.view, model.queue.selected, play.document.top, model.panel, play.page.panel.text,
        model.parsed_filter.text, model.pressed_once, len(play.port.intents), len(play.asked_of_app),
    )  # fmt: skip


@pytest.mark.parametrize("seed", variants(range(1, 9)))
def test_each_press_does_what_it_was_aimed_at_or_says_why_not(seed: int) -> None:
    chance = random.Random(seed)
    size = (80, 24) if seed % 2 else (120, 36)
    views = tuple(short(number) if number % 3 else mail(number) for number in range(1, 6))
    decided = refused = 0
    play = Play(snapshot_of(*views), size=size)
    world = World(play, views, chance)
    for _ in range(PRESSES):
        before = play.waiting
        selected = play.selected
        gap = chance.uniform(0.4, 2.0)
        part = gap * chance.random()
        play.passes(part)
        world.answer()
        world.expire()
        if chance.random() < 0.5:
            world.disturb()
        play.passes(gap - part)
        after = play.waiting
        assert [key for key in after if key in before] == before, "a row left, or moved"
        answered = selected in world.accepted or play.model.queue.was_decided_here(selected or "")
        if selected is not None and not answered:
            here = before.index(selected) + 1
            assert after[:here] == before[:here], "the row under the cursor moved"
            assert play.selected == selected
        item, earlier = play.model.queue.current, play.model.status_message
        aimed, key = aim(play), chance.choice(KEYS)
        play.press_alone(key)
        model = play.model
        assert model.queue.selected_matches, "a row that does not match is under the cursor"
        intents = play.port.intents[aimed[7] :]
        for intent in intents:
            decided += 1
            assert item is not None
            if isinstance(intent, Approve | Deny):
                assert intent.approval_id == item.key
            if isinstance(intent, Accept):
                assert item.file is not None
                assert (intent.name, intent.digest) == (item.file.name, item.file.digest)
            if isinstance(intent, Acknowledge):
                assert intent.call_id == item.key
            if isinstance(intent, Approve):
                assert item.approval is not None
                assert intent.digest == item.approval.digest
        if aim(play) != aimed:
            continue
        message, label = model.status_message, key_label(key)
        sentence = plain_text(message.pieces) if message is not None and message.refusal else ""
        assert message is not earlier, f"{key} was lost in silence:\n{play.text}"
        assert sentence.startswith(f"{label} ") or f" {label} again." in sentence, sentence
        assert sentence.count(". ") <= 1
        assert " ".join(sentence.split())[:40] in play.text, play.text
        refused += 1
    assert decided > 5
    assert refused > 20


def test_a_key_on_a_row_that_has_ended_goes_to_the_next_that_waits_and_decides_nothing() -> None:
    play = rested(snapshot_of(short(1), short(2)))
    play.port.tell(ApprovalUpdated(view=short(1, state="expired", ended_at=NOW)))
    play.passes(60)
    assert play.selected == short(1).approval_id
    said = "a decided nothing: that row had ended. The next waiting item is now shown."
    play.press_alone("a", said)
    assert play.selected == short(2).approval_id
    assert play.waiting == [short(2).approval_id]
    play.passes(0.2)
    play.in_vain("a", "Too soon: another item is under the cursor. Press a again.")
    play.press_rested("a")
    play.asks()


async def test_a_key_that_a_question_does_not_know_is_answered_in_it(shown: Console) -> None:
    await shown.press_alone("ctrl+k", "Stop everything?")
    await shown.go("a", "a did nothing: answer the question first.")
    await shown.press_alone("escape")
    await shown.go("question_mark", "KEYS")
    await shown.go("a", "a did nothing: this page only lists the keys.")
    assert shown.port.intents == []
