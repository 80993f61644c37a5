"""A program on the library of llm: `framework_llm.py MODEL (async|async-streamed)`."""

import sys

import llm
from talking import own_note, talk

conversation = llm.get_async_model(sys.argv[1]).conversation(tools=[own_note])


async def ask(text: str) -> str:
    last = ""
    async for response in conversation.chain(text, stream="streamed" in sys.argv[2]).responses():
        last = await response.text()
    return last


talk(ask)
