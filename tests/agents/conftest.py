"""Puts the workbench within reach, and a real Python before any version manager's stand-in.

The agents of these tests begin with `#!/usr/bin/env python3`. A stand-in (pyenv's, say) reads the
person's home, and in the sandbox that is not there.
"""

import os
import sys
from pathlib import Path

from aileron_core.containment.programs import own_interpreter

HERE = str(Path(__file__).parent)
if HERE not in sys.path:
    sys.path.insert(0, HERE)

_REAL = str(own_interpreter().parent)
if os.environ["PATH"].split(os.pathsep)[0] != _REAL:
    os.environ["PATH"] = os.pathsep.join([_REAL, os.environ["PATH"]])
