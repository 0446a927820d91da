"""Docstrings as help texts."""

import inspect
from collections.abc import Callable
from typing import Any

from rich.markup import escape

__all__ = ["help_of", "help_text"]


def help_text(text: str) -> str:
    """Paragraphs on one line each, for the terminal to wrap; examples start with $. A bracket is no markup.

    >>> print(help_text("One\\n    two.\\n\\n      $ pathsieve sub add --xpath //a[b]"))
    One two.
    <BLANKLINE>
      $ pathsieve sub add --xpath //a\\[b]
    """
    paragraphs = inspect.cleandoc(text).split("\n\n")
    joined = [" ".join(paragraph.split("\n")).strip() for paragraph in paragraphs]
    return "\n\n".join(escape(f"  {one}" if one.startswith("$") else one) for one in joined)


def help_of(command: Callable[..., Any]) -> str:
    """The help of a command."""
    return help_text(command.__doc__ or "")
