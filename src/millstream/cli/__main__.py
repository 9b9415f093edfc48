"""`python -m millstream.cli`: the command line where its script is not on the path."""

from millstream.cli import main

main()
