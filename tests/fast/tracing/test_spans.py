"""Which `traceparent` counts, and that nothing is traced, or imported, unless the environment asks for it."""

import importlib.metadata
import os
import subprocess
import sys
from importlib.metadata import EntryPoint

import pytest

import aileron_core.tracing
from aileron_core.tracing import tracer_from_environment
from aileron_core.tracing.spans import NO_TRACER, RemoteSpan, remote_span

TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
CONFIGURATOR = "opentelemetry.sdk._configuration:_OTelSDKConfigurator"
"""What the package opentelemetry-distro, which has its own releases, declares a subclass of."""
SCRIPT = """
import importlib.metadata, sys
import aileron_tui.cli.runtime
from aileron_core.tracing import tracer_from_environment

group, real = "opentelemetry_configurator", importlib.metadata.entry_points
declared = [importlib.metadata.EntryPoint("configurator", sys.argv[1], group)]
importlib.metadata.entry_points = lambda **of: declared if of.get("group") == group else real(**of)
with tracer_from_environment().begin("run", None, action="a") as run:
    run.child("op").end()
print("imported:", "opentelemetry" in sys.modules)
"""
GOOD = f"00-{TRACE}-{SPAN}-01"
SPOILT = (f"{GOOD}\n", f" {GOOD}", f"{GOOD}-more", f"00-{TRACE.upper()}-{SPAN}-01")
OTHERS = (f"01-{TRACE}-{SPAN}-01", f"ff-{TRACE}-{SPAN}-01", f"00-{TRACE[1:]}-{SPAN}-01")
ZEROS = (f"00-{'0' * 32}-{SPAN}-01", f"00-{TRACE}-{'0' * 16}-01", f"00-{'٠' * 32}-{SPAN}-01")
NONE: tuple[list[object], ...] = ([], [""], [None], [{"traceparent": 1}], [GOOD] * 2)


def test_a_traceparent_names_its_span() -> None:
    expected = RemoteSpan(trace_id=int(TRACE, 16), span_id=int(SPAN, 16))
    for flags in ("00", "01", "ff"):
        assert remote_span([f"00-{TRACE}-{SPAN}-{flags}"]) == expected


@pytest.mark.parametrize("claimed", [*NONE, *([each] for each in (*SPOILT, *OTHERS, *ZEROS))])
def test_what_is_not_exactly_one_names_none(claimed: list[object]) -> None:
    assert remote_span(claimed) is None


def run_script(**variables: str) -> str:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("OTEL_")}
    done = subprocess.run(
        [sys.executable, "-I", "-c", SCRIPT, CONFIGURATOR],
        env=kept | variables, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_opentelemetry_is_imported_for_an_exporter_alone_which_gets_the_spans() -> None:
    """That alone takes 40 ms of each start."""
    assert run_script() == "imported: False\n"
    assert run_script(OTEL_TRACES_EXPORTER="none") == "imported: False\n"
    printed = run_script(OTEL_TRACES_EXPORTER="console")
    assert '"name": "aileron.run"' in printed
    assert '"name": "aileron.op"' in printed


def test_an_exporter_that_cannot_be_had_is_named_in_the_log(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("OTEL_TRACES_EXPORTER", "no-such-exporter")
    configurator = EntryPoint("configurator", CONFIGURATOR, "opentelemetry_configurator")
    entry_points = importlib.metadata.entry_points
    for found in ([configurator], []):
        monkeypatch.setattr(
            "importlib.metadata.entry_points",
            lambda found=found, **of: (
                found if of.get("group") == configurator.group else entry_points(**of)
            ),
        )
        assert tracer_from_environment() is NO_TRACER
    name = aileron_core.tracing.__name__
    assert [each.getMessage() for each in caplog.records if each.name == name] == [
        "nothing is traced: setting up the exporter failed with RuntimeError",
        "OTEL_TRACES_EXPORTER is set, but the package opentelemetry-distro is not installed",
    ]
