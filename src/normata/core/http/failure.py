"""Errors on their way from one process of this program to another."""

from __future__ import annotations

import pickle
import traceback
from typing import Any, NamedTuple

from normata.errors import Unavailable


class Failure(NamedTuple):
    """An error, in a form that leads from one process to another whatever its class takes to be made."""

    kind: type[Exception]
    arguments: tuple[Any, ...]
    attributes: dict[str, Any]

    @classmethod
    def of(cls, error: Exception) -> Failure:
        """The failure that an error is. Of one that is a fault of the program, it has the traceback as well."""
        from normata.core.http.problems import error_type_of  # noqa: PLC0415 - the main process never needs it

        if error_type_of(error) is None and not isinstance(error, Unavailable):
            error.add_note("".join(traceback.format_exception(error)))
        failure = cls(type(error), error.args, dict(vars(error)))
        try:
            pickle.dumps(failure)
        except Exception:  # it has something of the driver, which stays here
            return cls(
                RuntimeError,
                (f"{type(error).__qualname__} in another process",),
                {"__notes__": getattr(error, "__notes__", [])},
            )
        return failure

    def error(self) -> Exception:
        """The error."""
        made: Exception = self.kind.__new__(self.kind, *self.arguments)
        vars(made).update(self.attributes)
        return made
