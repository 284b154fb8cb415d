"""The program ``normata``, also ``python -m normata``: it can be interrupted at any moment.

Importing the commands takes a while, so this module is prepared for an interrupt before it imports them.
"""

from __future__ import annotations

import gc
import signal
import sys
from typing import Any


def main() -> None:
    """Run the command line. An interrupt ends it with the exit code 130, also while it is still being imported."""
    sys.unraisablehook = _interrupt_again
    # What is imported stays. To search it for reference cycles again and again takes a tenth of a command's start.
    gc.set_threshold(50_000, 20, 20)
    try:
        from normata.cli.main import main as run  # noqa: PLC0415 - see above

        run()
    except KeyboardInterrupt:
        raise SystemExit(130) from None
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Python would answer with a traceback while it cleans up


def _interrupt_again(lost: Any) -> None:
    """Interrupt again, in a moment, if a finalizer was interrupted: Python ignores whatever is raised there."""
    if lost.exc_type is not KeyboardInterrupt:
        sys.__unraisablehook__(lost)
        return
    signal.signal(signal.SIGALRM, lambda *_: signal.raise_signal(signal.SIGINT))
    signal.setitimer(signal.ITIMER_REAL, 0.01)


if __name__ == "__main__":
    main()
