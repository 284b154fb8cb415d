"""The program ``normata``, also ``python -m normata``: it can be interrupted at any moment.

Importing the commands takes a while, so this module is prepared for an interrupt before it imports them.
"""

from __future__ import annotations

import signal


def main() -> None:
    """Run the command line. An interrupt ends it with the exit code 130, also while it is still being imported."""
    try:
        from normata.cli.main import main as run  # noqa: PLC0415 - see above

        run()
    except KeyboardInterrupt:
        raise SystemExit(130) from None
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Python would answer with a traceback while it cleans up


if __name__ == "__main__":
    main()
