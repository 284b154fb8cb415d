"""The program ``normata``, also ``python -m normata``. It can be interrupted at any time.

Importing the commands takes a while, so this module handles an interrupt before it imports them.
"""

from __future__ import annotations

import gc
import signal
import sys
from typing import Any


def main() -> None:
    """Run the command line. An interrupt, even during the import, ends it with exit code 130."""
    sys.unraisablehook = _interrupt_again
    # Imported objects stay. Searching them for reference cycles would take a tenth of a command's start.
    gc.set_threshold(50_000, 20, 20)
    try:
        from normata.cli.main import main as run  # noqa: PLC0415 - see above

        run()
    except KeyboardInterrupt:
        raise SystemExit(130) from None
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Python would print a traceback during its cleanup


def _interrupt_again(lost: Any) -> None:
    """Interrupt again after a moment if a finalizer was interrupted, because Python ignores what a finalizer raises."""
    if lost.exc_type is not KeyboardInterrupt:
        sys.__unraisablehook__(lost)
        return
    signal.signal(signal.SIGALRM, lambda *_: signal.raise_signal(signal.SIGINT))
    signal.setitimer(signal.ITIMER_REAL, 0.01)


if __name__ == "__main__":
    main()
