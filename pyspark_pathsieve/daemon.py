"""Spark's daemon of Python workers, with the engines in it before it forks the first.

    spark.python.daemon.module = pyspark_pathsieve.daemon      set when the session or cluster is started

Every worker is a fork of the daemon. With this one, engines and kernels are loaded once a machine and shared by all
workers, instead of once, and apart, in each.
"""

from pyspark.daemon import manager

import boolmatch
import xpathfilter

__all__ = ["main"]


def main() -> None:
    xpathfilter.warm_up()
    boolmatch.warm_up()
    manager()


if __name__ == "__main__":
    main()
