"""Times for people: ages, what is left, the deadline's bar. All take seconds."""

import time

from aileron_tui.draw.text import Line, Piece, Role

_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


def age(seconds: float) -> str:
    """Return how long ago, in one unit: `12 s`, `4 min`, `3 h`, `2 d`."""
    whole = max(0, int(seconds))
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min"
    if whole < 86400:
        return f"{whole // 3600} h"
    return f"{whole // 86400} d"


def seconds_taken(seconds: float) -> str:
    """Return how long something took or takes: `0.4 s`, `12 s`, `4 min 5 s`, `1 h 05`."""
    if seconds < 10:
        return f"{max(0.0, seconds):.1f} s"
    whole = int(seconds)
    if whole < 60:
        return f"{whole} s"
    return f"{whole // 60} min {whole % 60} s" if whole < 3600 else time_left(seconds)


def time_left(seconds: float) -> str:
    """Return what is left: `4:31`, from one hour `1 h 05`, from one day `3 d`."""
    whole = max(0, int(seconds))
    if whole < 3600:
        return f"{whole // 60}:{whole % 60:02d}"
    if whole < 86400:
        return f"{whole // 3600} h {whole % 3600 // 60:02d}"
    return f"{whole // 86400} d"


def time_running(seconds: float, allowed: float | None) -> str:
    """Return how long something has been running, and how long it may: `0:42 of 3:00`; else as `seconds_taken`."""
    if allowed is None:
        return seconds_taken(seconds)
    return f"{time_left(seconds)} of {time_left(allowed)}"


def time_left_role(seconds: float, whole: float) -> Role:
    """Return grey, amber under a quarter of *whole*, red under one minute."""
    if seconds < 60:
        return "danger"
    return "attn" if seconds < whole / 4 else "muted"


def deadline_bar(requested_at: float, expires_at: float | None, now: float, width: int) -> Line:
    """Return the bar of *width* cells and the time left; `no deadline` where there is none."""
    if expires_at is None:
        return (Piece("no deadline", "muted"),)
    whole = max(1.0, expires_at - requested_at)
    rest = max(0.0, expires_at - now)
    role = time_left_role(rest, whole)
    halves = round(min(1.0, rest / whole) * width * 2)
    full = "━" * (halves // 2) + ("╸" if halves % 2 else "")
    return (
        Piece(full, role),
        Piece("─" * (width - len(full)), "faint"),
        Piece(f" {time_left(rest)} left", role),
    )


def clock_minutes(at: float) -> str:
    """Return the local time of day as `14:02`."""
    return time.strftime("%H:%M", time.localtime(at))


def clock_seconds(at: float) -> str:
    """Return the local time of day as `14:02:11`."""
    return time.strftime("%H:%M:%S", time.localtime(at))


def day(at: float) -> str:
    """Return the local date as `8 Oct 2026`."""
    local = time.localtime(at)
    return f"{local.tm_mday} {_MONTHS[local.tm_mon - 1]} {local.tm_year}"
