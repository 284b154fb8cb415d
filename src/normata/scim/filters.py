"""SCIM filters as conditions of SQL (RFC 7644, section 3.4.2.2).

A filter compares the few attributes that providers look for. Any other is refused: to compare it, everybody would have
to be read.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from scim2_models import InvalidFilterException
from scim2_models.path import (
    AttrPath,
    CompareOperator,
    Comparison,
    FilterNode,
    LogicalExpr,
    LogicalOperator,
    Not,
    Present,
    ValuePath,
)
from sqlalchemy import ColumnElement, and_, false, not_, or_, true

LONGEST_FILTER = 2_000  # characters

_NO_TEXT = re.compile(r"[\x00\ud800-\udfff]")  # characters that no database stores

Condition = ColumnElement[bool]
# The condition that an attribute compares so with a value, which is null for whether it is present at all.
Compare = Callable[[CompareOperator | None, Any], Condition]


def condition(node: FilterNode, attributes: Mapping[str, Compare]) -> Condition:
    """The condition of a filter over ``attributes``, by their names in small letters. Raises InvalidFilterException."""
    match node:
        case Comparison():
            return _compare(attributes, node.attr_path, node.op, node.value)
        case Present():
            return _compare(attributes, node.attr_path, None, None)
        case Not():
            return not_(condition(node.expr, attributes))
        case LogicalExpr():
            terms = [condition(term, attributes) for term in node.terms]
            return and_(*terms) if node.op == LogicalOperator.and_ else or_(*terms)
        case ValuePath():
            within = node.attr_path.attr.lower()
            inner = {
                name.removeprefix(f"{within}."): compare
                for name, compare in attributes.items()
                if name.startswith(f"{within}.")
            }
            return condition(node.val_filter, inner)
    raise InvalidFilterException(detail="This filter is not supported")


def _compare(
    attributes: Mapping[str, Compare], path: AttrPath, operator: CompareOperator | None, value: Any
) -> Condition:
    name = f"{path.attr}{f'.{path.sub_attr}' if path.sub_attr else ''}".lower()
    found = attributes.get(name) or attributes.get(f"{name}.value")
    if found is None:
        raise InvalidFilterException(detail=f"Filters compare {', '.join(sorted(attributes))}, and not {name}")
    return found(operator, value)


def compares(expression: ColumnElement[Any], fold: Callable[[str], str] = str) -> Compare:
    """The comparisons of a text, whose values are folded as ``fold`` folds one."""

    def compare(operator: CompareOperator | None, value: Any) -> Condition:
        if operator is None:
            return expression.is_not(None)
        if value is None:
            return _null(operator, expression)
        if not isinstance(value, str) or _NO_TEXT.search(value):
            raise InvalidFilterException(detail="The attribute is a text")
        wanted = fold(value)
        conditions: dict[CompareOperator, Condition] = {
            CompareOperator.eq: expression == wanted,
            CompareOperator.ne: or_(expression != wanted, expression.is_(None)),
            CompareOperator.co: expression.contains(wanted, autoescape=True),
            CompareOperator.sw: expression.startswith(wanted, autoescape=True),
            CompareOperator.ew: expression.endswith(wanted, autoescape=True),
        }
        if operator not in conditions:
            raise InvalidFilterException(detail=f"This attribute cannot be compared with {operator.value}")
        return conditions[operator]

    return compare


def compares_flag(is_true: Condition) -> Compare:
    """The comparisons of a flag that is never null."""

    def compare(operator: CompareOperator | None, value: Any) -> Condition:
        if operator is None:
            return true()
        if isinstance(value, str) and value.lower() in ("true", "false"):
            value = value.lower() == "true"
        if operator not in (CompareOperator.eq, CompareOperator.ne) or not isinstance(value, bool):
            raise InvalidFilterException(detail="The attribute is true or false")
        return is_true if value == (operator == CompareOperator.eq) else not_(is_true)

    return compare


def always(_operator: CompareOperator | None, _value: Any) -> Condition:
    """The comparison of what only narrows others, such as the type of the one address that an account has."""
    return true()


def compares_any(of: Callable[[Condition], Condition], expression: ColumnElement[Any]) -> Compare:
    """The comparisons of a value among several: ``of`` says that any of these fulfils a condition."""
    compare_one = compares(expression)

    def compare(operator: CompareOperator | None, value: Any) -> Condition:
        return of(compare_one(operator, value))

    return compare


def _null(operator: CompareOperator, expression: ColumnElement[Any]) -> Condition:
    if operator == CompareOperator.eq:
        return expression.is_(None)
    return expression.is_not(None) if operator == CompareOperator.ne else false()
