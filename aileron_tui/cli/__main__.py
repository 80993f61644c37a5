"""`python -I -m aileron_tui.cli`: what the `aileron` command runs."""

from aileron_tui.cli import main

main()
