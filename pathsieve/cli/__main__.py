"""python -m pathsieve.cli is the command `pathsieve`."""

from pathsieve.cli import main

main()
