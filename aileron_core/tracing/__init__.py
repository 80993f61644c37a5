"""Spans of OpenTelemetry, through its API alone; it is imported only where the environment names an exporter.

The environment names it in the variables that OpenTelemetry's own programs read.
"""

import logging
import os

from aileron_core import __version__
from aileron_core.tracing.spans import NO_TRACER, Tracer

_log = logging.getLogger(__name__)
_VARIABLE = "OTEL_TRACES_EXPORTER"


def tracer_from_environment() -> Tracer:
    """Return the tracer for the exporter that `OTEL_TRACES_EXPORTER` names.

    Aileron has no exporter: the package opentelemetry-distro, installed beside it, sets it up. Where it
    cannot, nothing is traced, and the log says why.
    """
    if os.environ.get(_VARIABLE, "none").strip() in ("", "none"):
        return NO_TRACER
    from importlib.metadata import entry_points  # which takes long, for nearly nobody

    found = [*entry_points(group="opentelemetry_configurator")]
    if not found:
        _log.warning("%s is set, but the package opentelemetry-distro is not installed", _VARIABLE)
        return NO_TRACER
    try:
        found[0].load()().configure()
    except Exception as error:  # noqa: BLE001 - its exporter is any package's; the message may quote a key
        _log.warning(
            "nothing is traced: setting up the exporter failed with %s", type(error).__name__
        )
        return NO_TRACER
    from opentelemetry.trace import get_tracer_provider

    from aileron_core.tracing.opentelemetry import ExportedTracer

    return ExportedTracer(get_tracer_provider(), __version__)
