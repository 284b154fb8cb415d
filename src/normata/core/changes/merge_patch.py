"""JSON merge patches (RFC 7396)."""

from __future__ import annotations

from typing import Any


def merge_patch(target: Any, patch: Any) -> Any:
    """What ``patch`` makes of ``target``: objects are merged by member, where null removes; all else replaces."""
    if not isinstance(patch, dict):
        return patch
    merged = dict(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if value is None:
            merged.pop(name, None)
        else:
            merged[name] = merge_patch(merged.get(name), value)
    return merged


def patch_between(before: Any, after: Any) -> Any:
    """The patch that makes ``after`` of ``before``.

    There is none if an object gets a member that is null, which a patch can only remove: then what it makes lacks
    that member. Whoever needs to know compares.
    """
    if not isinstance(before, dict) or not isinstance(after, dict):
        return after
    gone: dict[str, Any] = {name: None for name in before if name not in after}
    changed = {
        name: patch_between(before.get(name), value)
        for name, value in after.items()
        if name not in before or not is_same(before[name], value)
    }
    return gone | changed


def is_same(one: Any, other: Any) -> bool:
    """Whether two JSON values are the same; true is not 1 here."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(is_same(one[name], other[name]) for name in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(is_same, one, other))
    return isinstance(one, bool) == isinstance(other, bool) and bool(one == other)
