"""The data that is asked for: one organization with its frameworks, and policies that it has archived."""

from benchmarks.world import EDITOR, Arrays, Tokens, World, made_id, notifications
from normata.records.kinds import Policy

FRAMEWORKS = 5
MATCHES = FRAMEWORKS - 1  # to each control: one from each of the other frameworks

ORGANIZATION = made_id("organization", 0)
CALLER = made_id("user", EDITOR)
READER, WRITER = (EDITOR, "read"), (EDITOR, "write")  # the caller's tokens


def policy_id(number: int) -> str:
    """The id of an archived policy. All are of one length, and none is a UUID, see `statements.py`."""
    return made_id("policy", number)


def arrays(tokens: Tokens, *, controls: int, policies: int) -> Arrays:
    """The bundle."""
    world = World([controls // FRAMEWORKS] * FRAMEWORKS, [0], adoptable=controls, matches=MATCHES, assessed=0.3)
    yield from world.arrays(tokens)
    yield "policies", world.records(Policy, policies, policies)
    yield "notifications", notifications([EDITOR], 300)
