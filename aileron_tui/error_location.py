"""Where an internal error came from. Its kind and location are logged, never its text, which may quote anything."""

import traceback
from pathlib import Path

_HERE = str(Path(__file__).parent)


def error_location(error: BaseException) -> str:
    """Return the kind of *error* and where in the console it came from: `KeyError in rows.py:121`."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if frame.filename.startswith(_HERE)] or frames
    location = f" in {Path(ours[-1].filename).name}:{ours[-1].lineno}" if ours else ""
    return f"{type(error).__name__}{location}"
