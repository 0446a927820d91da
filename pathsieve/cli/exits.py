"""How a command ends: one clear message, and a number that a script can go by.

0     done; what was asked for is so
1     refused by the server, in part or in whole; or a test that does not match
2     the command was not understood
3     nobody answers
4     the token does not allow it
130   interrupted
"""

import contextlib
from collections.abc import Iterator

import typer

from pathsieve.cli.printing import complain
from pathsieve.errors import DeadlineExceeded, PathSieveError, PermissionDenied, Unauthenticated, Unavailable

__all__ = ["INTERRUPTED", "NOT_ALLOWED", "OK", "REFUSED", "UNREACHABLE", "USAGE", "exit_code_of", "reported"]

OK, REFUSED, USAGE, UNREACHABLE, NOT_ALLOWED, INTERRUPTED = 0, 1, 2, 3, 4, 130

HINTS: dict[type[PathSieveError], str] = {
    Unavailable: "Is it running? `pathsieve serve` starts one here; --address or PATHSIEVE_ADDRESS say where it is.",
    DeadlineExceeded: "--timeout gives it more time.",
    Unauthenticated: "--token or PATHSIEVE_TOKEN say who you are.",
    PermissionDenied: "`pathsieve doctor` shows what the token allows.",
}


def exit_code_of(error: PathSieveError) -> int:
    """The number that a command ends with because of an error."""
    if isinstance(error, Unavailable | DeadlineExceeded):
        return UNREACHABLE
    return NOT_ALLOWED if isinstance(error, Unauthenticated | PermissionDenied) else REFUSED


@contextlib.contextmanager
def reported() -> Iterator[None]:
    """Errors become one message on stderr and an exit code; an interruption is quiet."""
    try:
        yield
    except PathSieveError as error:
        complain(str(error), HINTS.get(type(error), ""))
        raise typer.Exit(exit_code_of(error)) from None
    except OSError as error:
        if error.filename is None:
            raise
        complain(f"{error.filename}: {error.strerror}")
        raise typer.Exit(USAGE) from None
    except (ValueError, TypeError) as error:
        complain(str(error))
        raise typer.Exit(USAGE) from None
    except KeyboardInterrupt:
        raise typer.Exit(INTERRUPTED) from None
