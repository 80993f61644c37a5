"""Plays the scenes one after the other, each when the person has answered, or skipped, the one before."""

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TextIO

from examples.demo.agents import Agent, Answer, Call
from examples.demo.scenes import AGENTS, SCENES, Scene, held
from examples.mailbox.server import Mailbox

__all__ = ["Tour"]

_CONTINUE = "S continues."
_CAME_OF_IT = {
    "completed": f"Approved, and it ran. {_CONTINUE}",
    "denied": f"Denied. Nothing ran, and the agent has your answer. {_CONTINUE}",
    "unknown": f"The answer was lost: the mail may have gone out. {_CONTINUE}",
    "failed": f"The call failed. {_CONTINUE}",
    "expired": f"Nobody decided in time. Nothing ran. {_CONTINUE}",
}
_ENDED = f"The call did not run. {_CONTINUE}"
_CONNECTING = "Three agents are connecting ..."
_OVER = "End of the demo. Press q to quit, then try `aileron launch codex`."


class Tour:
    """The demo's script, over a console that has opened.

    Args:
        say: shows a line in the console; the names are those of its `GuideLine`.
        next_pressed: set whenever the person asks for the next scene.
        told: gets what each agent was answered, in order.
    """

    def __init__(
        self,
        mailbox: Mailbox,
        say: Callable[..., None],
        next_pressed: asyncio.Event,
        told: list[str],
    ) -> None:
        self._mailbox = mailbox
        self._say = say
        self._next_pressed = next_pressed
        self._told = told

    async def run(self, home: Path, log: TextIO) -> None:
        """Connect the agents to the console of *home* and play every scene."""
        self._say(step="", sentence=_CONNECTING)
        async with AsyncExitStack() as until:
            agents = {name: await Agent.connect(name, home, log, until) for name in AGENTS}
            for number, scene in enumerate(SCENES, 1):
                await self._play(scene, f"{number} of {len(SCENES)}", agents[scene.agent])
            self._say(step="", sentence=_OVER)
            await asyncio.Event().wait()

    async def _play(self, scene: Scene, step: str, agent: Agent) -> None:
        self._next_pressed.clear()
        self._say(step=step, sentence=scene.sentence, has_next=True)
        if scene.trouble:
            await asyncio.to_thread(self._mailbox.control, **scene.trouble)
        answer, skipped = await self._answered(await agent.begin(scene.tool, scene.arguments))
        if scene.trouble:
            await asyncio.to_thread(self._mailbox.control, reset=True)
        self._told.append(f"{agent.name}: {answer.words}")
        if skipped and answer.status == "withdrawn":
            return
        state = await asyncio.to_thread(self._mailbox.state)
        self._next_pressed.clear()
        self._say(
            step=step,
            sentence=_CAME_OF_IT.get(answer.status, _ENDED),
            service=held(state, scene.draft_id),
            agent=agent.name,
            agent_words=answer.words,
            has_next=True,
        )
        await self._next_pressed.wait()

    async def _answered(self, call: Call) -> tuple[Answer, bool]:
        """Return how *call* ended, and whether the person asked for the next scene before it had."""
        ended = asyncio.create_task(call.ended())
        skip = asyncio.create_task(self._next_pressed.wait())
        try:
            await asyncio.wait((ended, skip), return_when=asyncio.FIRST_COMPLETED)
            skipped = not ended.done()
            if skipped:
                await call.withdraw()
            return await ended, skipped
        finally:
            for each in (ended, skip):
                each.cancel()
            await asyncio.gather(ended, skip, return_exceptions=True)
