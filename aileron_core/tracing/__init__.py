"""Spans of OpenTelemetry, through its API alone; it is imported only where the environment names an exporter."""
