"""How all commands end: one sentence for what the user can mend, and the exit code."""

import sys

import typer
from typer.core import TyperGroup

WRONG_USE, INTERRUPTED = 2, 130


class Interrupted(Exception):
    """The user interrupted a command; the message says how to continue, if that is possible."""


class Commands(TyperGroup):
    """The commands. Errors that a user can mend are one sentence, with exit code 2."""

    def invoke(self, ctx):
        """Run a command. An interruption keeps its notes, which would be lost further out."""
        try:
            return super().invoke(ctx)
        except BaseException as error:
            cause = interruption_of(error)
            if cause is None:
                raise
            raise Interrupted(" ".join(getattr(cause, "__notes__", []))) from error

    def main(self, *args, **options):
        """Run a command, and exit with its code."""
        options["standalone_mode"] = False
        try:
            code = super().main(*args, **options)
        except (KeyboardInterrupt, typer.Abort):
            code = interrupted()
        except Interrupted as error:
            code = interrupted(str(error))
        except (ValueError, OSError, ImportError) as error:
            code = fail(str(error))
        except Exception as error:
            # Wrong options; their class is click's or typer's own, by version.
            if not hasattr(error, "format_message"):
                raise
            code = fail(error.format_message())
        sys.exit(code if isinstance(code, int) else 0)


def interruption_of(error):
    """The interruption that led to an error, or None.

    Code in C that is interrupted while a module is imported raises an ImportError, for example.
    """
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__cause__ or error.__context__
    return error


def interrupted(how_to_continue=""):
    """Say that the command was interrupted; return the exit code."""
    typer.echo(f"Interrupted. {how_to_continue}".rstrip(), err=True)
    return INTERRUPTED


def fail(message):
    """Print an error in one line; return the exit code."""
    typer.echo(f"Error: {' '.join(message.split())}", err=True)
    return WRONG_USE
