"""The command `pathsieve`.

    serve, dev-cluster                         start a server, or a cluster to try things out with
    sub add|import|list|get|rm|test|explain    subscriptions
    publish, attach                            documents in, notifications out
    cluster status|watch|drain                 several servers: who owns what
    top, bench, doctor, version                how it does

Commands find their server by flags (--address …) or by the environment (PATHSIEVE_ADDRESS …); `exits` has the exit
codes. Each command is a module; engines and server are imported only by those that need them.
"""

import os

import typer

from pathsieve.cli import cluster, sub
from pathsieve.cli.attach import attach
from pathsieve.cli.bench import bench
from pathsieve.cli.checks import versions
from pathsieve.cli.dev_cluster import dev_cluster
from pathsieve.cli.doctor import doctor
from pathsieve.cli.help_texts import help_of, help_text
from pathsieve.cli.publish import publish
from pathsieve.cli.serve import serve
from pathsieve.cli.top import top

__all__ = ["app", "main"]

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help=help_text("""Which of millions of standing subscriptions want this document?

    Start a server, subscribe, publish, and see who wants what:

      $ pathsieve serve

      $ pathsieve sub add --id ibm --xpath "//quote[@symbol='IBM']"

      $ pathsieve attach ibm

      $ echo "<quote symbol='IBM'/>" | pathsieve publish -

    Exit codes: 0 done, 1 refused or no match, 2 not understood, 3 nobody answers, 4 not allowed, 130 interrupted.
    """),
)

app.add_typer(sub.app, name="sub")
app.add_typer(cluster.app, name="cluster")
for command in (serve, dev_cluster, publish, attach, top, bench, doctor):
    app.command(help=help_of(command))(command)


@app.command("version")
def show_version() -> None:
    """Show the versions of this installation."""
    typer.echo(versions())


def main() -> None:
    """Run the command that the arguments ask for. What gRPC has to say on stderr, our errors say better."""
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    app()
