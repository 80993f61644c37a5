"""`python -I -m aileron_mcp.relay`, and what a copy of the relay in one file or folder runs."""

import sys

from aileron_mcp.relay.main import main

sys.exit(main())
