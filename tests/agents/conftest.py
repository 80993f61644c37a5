"""A workbench, and a real Python before any version manager's stand-in.

The agents of these tests begin with `#!/usr/bin/env python3`. A stand-in (pyenv's, say) reads the
person's home, and in the sandbox that is not there.
"""

import os
from collections.abc import Iterator

import pytest

from aileron_core.containment.programs import own_interpreter
from tests.agents.agents_bench import Bench, bench_of, silent

_REAL = str(own_interpreter().parent)
if os.environ["PATH"].split(os.pathsep)[0] != _REAL:
    os.environ["PATH"] = os.pathsep.join([_REAL, os.environ["PATH"]])


@pytest.fixture
def bench() -> Iterator[Bench]:
    with bench_of(silent) as running:
        yield running
