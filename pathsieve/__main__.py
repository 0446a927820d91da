"""python -m pathsieve is the command `pathsieve`."""

from pathsieve.cli import main

main()
