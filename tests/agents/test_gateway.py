"""How a launch sends model traffic through the gateway, and when it leaves it alone."""

import json
from typing import Any

import pytest

from tests.agents.agents_bench import Bench
from tests.support.processes import eventually, running_with
from tests.support.variants import variants

SAYS = """\
#!/usr/bin/env python3
import os, sys
print("AT", "/gw/" in " ".join(sys.argv), os.environ.get("NO_PROXY"), os.environ.get("no_proxy"))
"""
ASKS = """\
#!/usr/bin/env python3
import json, os, re, sys, time, urllib.request
base = re.search(r'base_url = "([^"]+)"', " ".join(sys.argv))[1]
def ask():
    body = json.dumps({"model": "m", "messages": []}).encode()
    request = urllib.request.Request(base + "/chat/completions", body)
    with urllib.request.urlopen(request, timeout=60) as answer:
        return answer.status
status = ask()
with open("new", "w") as file:
    file.write(str(status))
os.rename("new", "first")
while not os.path.exists("again"):
    time.sleep(0.05)
for _ in range(400):
    try:
        print("AGAIN", ask())
        break
    except OSError:
        time.sleep(0.05)
"""


def launch_and_read(bench: Bench, *options: str, **env: str) -> str:
    ended = bench.launch(SAYS, options=options, **env)
    assert ended.code == 0, ended.output
    return ended.output


def run_json(bench: Bench, *words: str) -> Any:
    env = bench.stand_in("#!/bin/sh\necho 0.169.0\n")
    return json.loads(bench.aileron(*words, "--json", **env).stdout)


@pytest.mark.parametrize("options", variants([(), ("--no-sandbox",)]), ids=str)
def test_it_is_the_default_and_no_proxy_of_yours_is_asked(
    bench: Bench, options: tuple[str, ...]
) -> None:
    """The token and your key would go to the proxy; whatever else it was not asked for stays so."""
    for words, told in (((), "AT True None None"), (("--no-gateway",), "AT False")):
        output = launch_and_read(bench, *words)
        assert told in output
        assert "pass" not in output
    proxy = {"HTTPS_PROXY": "http://192.0.2.1:9", "NO_PROXY": "mine.example"}
    output = launch_and_read(bench, *options, **proxy)
    assert "AT True mine.example,127.0.0.1 mine.example,127.0.0.1" in output


def test_dry_run_shows_no_token_and_doctor_why_it_does_not_pass(bench: Bench) -> None:
    """Here and now, by the same rule as a launch; your configuration's arguments count too."""
    shown = run_json(bench, "launch", "codex", "--dry-run")
    address = f"{bench.console.url}/gw/HIDDEN"
    passes = {"providers": ["openai"], "past": [], "placeholders": []}
    assert shown["gateway"] == {"url": address, **passes}
    assert f'base_url = "{address}/v1"' in " ".join(shown["argv"])
    off = run_json(bench, "launch", "codex", "--dry-run", "--no-gateway")
    assert off["gateway"] == {"url": None, "providers": [], "past": [], "placeholders": []}
    assert "/gw/" not in json.dumps(off)
    for options, told in (
        ((), "✓ Its model traffic goes through Aileron's gateway: openai."),
        (("--no-gateway",), "▲ Its model traffic: --no-gateway is set."),
    ):
        env = bench.stand_in("#!/bin/sh\n")
        lines = bench.aileron("launch", "codex", "--dry-run", *options, **env).stdout.splitlines()
        assert [line.strip() for line in lines if "odel traffic" in line] == [told]
    assert "session.opened" not in [record["event"] for record in bench.console.records()]
    (found,) = run_json(bench, "doctor", "codex")["agents"]
    assert found["gateway"] == {"providers": ["openai"], "past": []}
    (bench.console.home / "config.toml").write_text('[launch.codex]\nargs = ["--oss"]\n')
    (found,) = run_json(bench, "doctor", "codex")["agents"]
    assert found["gateway"] == {"providers": [], "past": ["its arguments contain --oss"]}


@pytest.mark.real
def test_offline_the_way_to_the_model_outlives_the_console_alone(bench: Bench) -> None:
    """The same base URL and the same token. What carries the bytes ends with the sandbox, however that ends."""
    env = bench.stand_in(ASKS)
    with bench.launched("codex", options=("--sandbox=offline",), env=env) as running:
        eventually((bench.project / "first").exists)
        bench.console.end()
        bench.console.start()
        (bench.project / "again").touch()
        ended = running.end()
    assert "AGAIN 200" in ended.output
    assert (bench.project / "first").read_text() == "200"
    for name in ("first", "again"):
        (bench.project / name).unlink()
    with bench.launched("codex", options=("--sandbox=offline",), env=env) as running:
        eventually((bench.project / "first").exists)
        words = f"start.py\0{bench.console.port}\0"
        assert running_with(words)
        running.kill()
    eventually(lambda: not running_with(words))
