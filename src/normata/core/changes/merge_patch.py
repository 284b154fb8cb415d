"""JSON merge patches (RFC 7396)."""

from __future__ import annotations

from typing import Any


def merge_patch(target: Any, patch: Any) -> Any:
    """``target`` with ``patch`` applied: objects are merged by member, and null removes; other values replace."""
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
    """The patch from ``before`` to ``after``.

    No patch can set a member to null, because null removes it: then the result lacks that member, and callers must
    compare.
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
    """Whether two JSON values are the same; true and 1 are different."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(is_same(one[name], other[name]) for name in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(is_same, one, other))
    return isinstance(one, bool) == isinstance(other, bool) and bool(one == other)
