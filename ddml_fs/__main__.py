"""``ddml-fs`` and ``python -m ddml_fs``: the command line."""

import signal
import sys


def main():
    """Run the command line, so that an interruption at any moment ends in one line."""
    try:
        from ddml_fs.cli import app

        app(prog_name="ddml-fs")
    except KeyboardInterrupt:  # while the commands are imported
        print("Interrupted.", file=sys.stderr)
        sys.exit(130)
    finally:
        # All is printed. Without this, an interruption while Python tidies up would kill it, and a
        # finished command would look like a failed one.
        signal.signal(signal.SIGINT, signal.SIG_IGN)


if __name__ == "__main__":
    main()
