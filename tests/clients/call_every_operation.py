"""Runs in the generator's own environment: calls what was generated, and writes what came back.

Arguments: the folder of the generated client, the base of the server's addresses. Standard input has the requests as
JSON: a list of ``[tag, operation, arguments, name of the body's model, body, token]``.
"""

from __future__ import annotations

import enum
import importlib
import io
import json
import re
import sys
import typing


def is_enum(one: object) -> bool:
    """Whether this type of a parameter is one of names."""
    return isinstance(one, type) and issubclass(one, enum.Enum)


def main() -> None:
    """Call every operation and write its status and the type of what was parsed, a line each."""
    folder, base = sys.argv[1:]
    sys.path.insert(0, folder)
    package = importlib.import_module("normata_client")
    for tag, operation, arguments, body_model, body, token in json.load(sys.stdin):
        client = package.AuthenticatedClient(base_url=base, token=token, raise_on_unexpected_status=True)
        name = re.sub(r"(?<!^)(?=[A-Z])", "_", operation).lower()
        folder = tag.lower().replace(" ", "_")
        module = importlib.import_module(f"normata_client.api.{folder}.{name}")
        if body_model is not None and body_model.endswith("FilesBody"):
            file = getattr(module, body_model).from_dict({"file": body.encode()})
            file.file.file_name = "docks.csv"
            arguments["body"] = file
        elif body_model is None and body is not None:
            arguments["body"] = importlib.import_module("normata_client.types").File(payload=io.BytesIO(body.encode()))
        elif body is not None:
            arguments["body"] = getattr(module, body_model).from_dict(body)
        hints = typing.get_type_hints(module.sync_detailed)
        for argument, value in arguments.items():
            arguments[argument] = next((one(value) for one in typing.get_args(hints[argument]) if is_enum(one)), value)
        response = module.sync_detailed(client=client, **arguments)
        answer = [operation, int(response.status_code), type(response.parsed).__name__]
        sys.stdout.write(json.dumps(answer) + "\n")


if __name__ == "__main__":
    main()
