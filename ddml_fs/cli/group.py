"""How all commands end: one sentence for what the user can mend, and the exit code."""

import sys

import typer
from typer.core import TyperGroup

WRONG_USE, INTERRUPTED = 2, 130


class Commands(TyperGroup):
    """The commands. Errors that a user can mend are one sentence, with exit code 2."""

    def main(self, *args, **options):
        """Run a command, and exit with its code."""
        options["standalone_mode"] = False
        try:
            code = super().main(*args, **options)
        except (KeyboardInterrupt, typer.Abort):
            code = INTERRUPTED
        except (ValueError, OSError, ImportError) as error:
            code = fail(str(error))
        except Exception as error:
            # Wrong options; their class is click's or typer's own, by version.
            if not hasattr(error, "format_message"):
                raise
            code = fail(error.format_message())
        if code == INTERRUPTED:
            typer.echo("Interrupted.", err=True)
        sys.exit(code if isinstance(code, int) else 0)


def fail(message):
    """Print an error in one line; return the exit code."""
    typer.echo(f"Error: {' '.join(message.split())}", err=True)
    return WRONG_USE
