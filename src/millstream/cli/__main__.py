"""`python -m millstream.cli`: the command line, for when its script is not on the PATH."""

from millstream.cli import main

main()
