"""The data of the benchmark: an organization with frameworks, and policies that it archives and creates."""

from collections.abc import Mapping
from random import Random
from typing import Any, NamedTuple

from benchmarks.world import EDITOR, ROLES, Arrays, Tokens, World, made_id, notifications, sentence
from normata.records.kinds import Policy, Task

FRAMEWORKS = 5
MATCHES = FRAMEWORKS - 1  # to each control, one from each other framework

SHORT = 123  # controls of a further framework: as many as ISO/IEC 27001:2022 has requirements
SHORT_FRAMEWORK = made_id("framework", FRAMEWORKS)

CREATED = "Created"  # the beginning of new policies' titles

ORGANIZATION = made_id("organization", 0)
CALLER = made_id("user", EDITOR)
READER, WRITER = (EDITOR, "read"), (EDITOR, "write")  # the caller's tokens
IMPORTER = (ROLES.index("admin"), "write")  # the token of somebody who may import


def policy_id(number: int) -> str:
    """The id of an archived policy. All have the same length, and none is a UUID, see `statements.py`."""
    return made_id("policy", number)


class Post(NamedTuple):
    """A request that changes something; ``mark`` is the text that distinguishes it from others of its type."""

    path: str
    body: Mapping[str, Any] | None
    mark: str


def restoring(number: int) -> Post:
    """A request that restores a policy."""
    return Post(f"/policies/{policy_id(number)}/restore/", None, policy_id(number))


def creating(number: int) -> Post:
    """A request that creates a policy."""
    mark = f"no-{number:08}"  # unchanged in a slug
    body = {"organizationId": ORGANIZATION, "title": f"{CREATED} {mark}", "content": {"text": sentence(Random(1), 40)}}
    return Post("/policies/", body, mark)


def arrays(tokens: Tokens, *, controls: int, policies: int, tasks: int = 0, with_short: bool = False) -> Arrays:
    """The bundle. ``with_short`` adds a further framework; the total number of controls stays the same."""
    sizes = [controls // FRAMEWORKS] * FRAMEWORKS
    if with_short:
        sizes = [(controls - SHORT) // FRAMEWORKS] * FRAMEWORKS + [SHORT]
        sizes[0] += controls - sum(sizes)  # what the division has left
    world = World(sizes, [0], adoptable=controls, matches=MATCHES, assessed=0.3)
    yield from world.arrays(tokens)
    yield "policies", world.records(Policy, policies, policies)
    yield "tasks", world.records(Task, tasks, tasks // 2)
    yield "notifications", notifications([EDITOR], 300)
