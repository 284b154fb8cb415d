"""SQLAlchemy statements for a plain driver: compiled once, with only the conversions that their types need."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any
from weakref import WeakKeyDictionary

from sqlalchemy import Dialect, Insert, Update
from sqlalchemy.types import TypeEngine

from normata.core.db.transaction import Parameters, Statement

Conversion = Callable[[Any], Any]
# Makes a statement whose parameter with this number, alone in an IN, is one value take an array of them instead.
FromArray = Callable[[str, int], str]

_LONG = 64  # items of a list, from which on a database that can take one array does
_LENGTHS = 100  # of the lists of a statement; there are ten of one list, and more must not fill the memory

_SHAPES = 1_000  # of statements; there are a few hundred, and more must not fill the memory


class Rows:
    """Makes named tuples of a driver's rows, with each value converted by its column's type."""

    def __init__(self, columns: Iterable[tuple[str, Conversion | None]]) -> None:
        columns = list(columns)
        self._make: Callable[[Iterable[Any]], Any] = _row_type(tuple(name for name, _ in columns))
        self._conversions = [(place, conversion) for place, (_, conversion) in enumerate(columns) if conversion]

    def __call__(self, found: Iterable[Iterable[Any]]) -> list[Any]:
        if not self._conversions:
            return list(map(self._make, found))
        return [self._converted(row) for row in found]

    def _converted(self, row: Iterable[Any]) -> Any:
        values = list(row)
        for place, conversion in self._conversions:
            values[place] = conversion(values[place])
        return self._make(values)


@lru_cache(maxsize=2_000)  # creating a class takes longer than most statements
def _row_type(names: tuple[str, ...]) -> Callable[[Iterable[Any]], Any]:
    row_type: Any = namedtuple("Row", names, rename=True)  # type: ignore[misc]
    make: Callable[[Iterable[Any]], Any] = row_type._make
    return make


class _Shape:
    """The compiled form of a statement, independent of its literal values."""

    def __init__(self, compiled: Any, dialect: Dialect, type_code: object, from_array: FromArray | None) -> None:
        def bind_conversion(name: str) -> Conversion | None:
            element: TypeEngine[Any] = compiled.binds[name].type
            return element.dialect_impl(dialect).bind_processor(dialect)

        def result_conversion(element: TypeEngine[Any]) -> Conversion | None:
            return element.dialect_impl(dialect).result_processor(dialect, type_code)

        if compiled.insert_prefetch or compiled.update_prefetch:
            raise NotImplementedError("a default that Python computes must be a value of the statement")
        late = compiled.post_compile_params | compiled.literal_execute_params
        expanding = {compiled.bind_names[bind] for bind in late}
        self.sql: str = compiled.string
        self.parameters = [
            (name, None if name in expanding else bind_conversion(name)) for name in compiled.positiontup
        ]
        self.conversions = dict(self.parameters)
        self.compiled = compiled
        self.expands = bool(expanding)
        # These are written into the SQL itself, which differs each time.
        self._lists = [] if compiled.literal_execute_params else sorted(expanding)
        self._expanded: dict[tuple[int, ...], _Expanded] = {}
        self._from_array = from_array
        # Only the compiler knows the columns of the result: their order, and their names in the SQL.
        columns = [(entry.keyname, result_conversion(entry.type)) for entry in compiled._result_columns]
        self.rows: Rows | None = Rows(columns) if columns else None

    def expand(self, values: Parameters) -> tuple[str, list[Any]]:
        """The SQL and its values, if the SQL depends on the values; it is cached by the lengths of the lists."""
        if not self._lists:
            once = _Expanded(self.compiled, values, self.conversions)
            return once.sql, once.bind(values)
        lists = {name: list(values[name]) for name in self._lists}
        arrays = {name: items for name, items in lists.items() if self._from_array and _is_long(items)}
        lists = {name: items if name in arrays else _padded(items) for name, items in lists.items()}
        values = {**values, **lists}
        lengths = tuple(-1 if name in arrays else len(lists[name]) for name in self._lists)
        expanded = self._expanded.get(lengths)
        if expanded is None:
            if len(self._expanded) >= _LENGTHS:
                self._expanded.clear()
            expanded = _Expanded(self.compiled, values, self.conversions, arrays, self._from_array)
            self._expanded[lengths] = expanded
        return expanded.sql, expanded.bind(values)


class _Expanded:
    """A statement with lists of certain lengths; of ``arrays`` each is one value."""

    def __init__(
        self,
        compiled: Any,
        values: Parameters,
        conversions: Mapping[str, Conversion | None],
        arrays: Collection[str] = (),
        from_array: FromArray | None = None,
    ) -> None:
        state = compiled.construct_expanded_state({**values, **{name: values[name][:1] for name in arrays}})
        items = {
            item: (name, place) for name, those in state.parameter_expansion.items() for place, item in enumerate(those)
        }
        all_conversions = {**conversions, **state.processors}
        self._arrays = frozenset(arrays)
        self._lists = [name for name in state.parameter_expansion if name not in self._arrays]
        self._parameters = [(*items.get(name, (name, None)), all_conversions.get(name)) for name in state.positiontup]
        self.sql: str = state.statement
        for number, (name, _, _) in enumerate(self._parameters, 1):
            if from_array is not None and name in self._arrays:
                self.sql = from_array(self.sql, number)

    def bind(self, values: Parameters) -> list[Any]:
        """The values, in the order of the SQL."""
        lists = {name: _flat(values[name]) for name in self._lists}
        bound = []
        for name, place, conversion in self._parameters:
            if name in self._arrays:
                items = values[name]
                bound.append(items if conversion is None else [conversion(item) for item in items])
                continue
            value = values[name] if place is None else lists[name][place]
            bound.append(value if conversion is None else conversion(value))
        return bound


def _is_long(items: Sequence[Any]) -> bool:
    return len(items) > _LONG and not isinstance(items[0], tuple)


def _padded(items: Collection[Any]) -> list[Any]:
    """The items of a list for an IN, the last one repeated until their number is a power of two.

    A repeated item changes nothing for an IN or a NOT IN. But each number of items is another SQL text, which the
    compiler expands and a connection prepares anew. PostgreSQL takes longer to plan most statements than to execute
    them, and a connection caches a hundred of them. With this, an explanation takes a quarter less processor there, and
    an assessment a tenth.
    """
    padded = list(items)
    if padded:
        padded += padded[-1:] * ((1 << (len(padded) - 1).bit_length()) - len(padded))
    return padded


def _flat(values: Iterable[Any]) -> list[Any]:
    """The items of a list, or the values of its tuples one after the other."""
    items = list(values)
    return [value for item in items for value in item] if items and isinstance(items[0], tuple) else items


class Prepared:
    """A statement, ready to be executed.

    ``names`` are those of its parameters, ``required`` those without which it cannot be executed. ``expands`` is true
    if the SQL depends on the values: an IN has as many parameters as its list has items.
    """

    def __init__(self, shape: _Shape, cache_key: Any) -> None:
        own = {bind.key: bind for bind in cache_key.bindparams} if cache_key else {}
        binds = {name: own.get(bind.key, bind) for bind, name in shape.compiled.bind_names.items()}
        values = shape.compiled.construct_params(
            cache_key.params if cache_key else None,
            extracted_parameters=cache_key.bindparams if cache_key else None,
            _check=False,
        )
        self._shape = shape
        self.names = frozenset(values)
        self.required = frozenset(name for name, bind in binds.items() if bind.required)
        self._literals = {name: value for name, value in values.items() if name not in self.required}
        self.expands = shape.expands
        self.rows = shape.rows

    def bind(self, parameters: Parameters) -> tuple[str, list[Any]]:
        """The SQL and its values as the driver takes them. Raises KeyError for a parameter that is missing."""
        shape = self._shape
        values = {**self._literals, **parameters} if self._literals else parameters
        if shape.expands:
            if not self.required <= values.keys():
                raise KeyError(*sorted(self.required - values.keys()))
            return shape.expand(values)
        return shape.sql, [
            values[name] if conversion is None else conversion(values[name]) for name, conversion in shape.parameters
        ]


class Statements:
    """The statements of one kind of database: each is prepared once, and dropped with the statement itself.

    Those that differ only in literal values share one shape, which is compiled once: compiling the statement of a list
    takes as long as executing it. ``type_code`` is passed to result types as the driver's type. ``from_array`` is null
    if the database takes no arrays.
    """

    def __init__(self, dialect: Dialect, type_code: object = None, from_array: FromArray | None = None) -> None:
        self._dialect = dialect
        self._type_code = type_code
        self._from_array = from_array
        self._whole: WeakKeyDictionary[Statement, Prepared] = WeakKeyDictionary()
        self._partial: WeakKeyDictionary[Statement, dict[frozenset[str], Prepared]] = WeakKeyDictionary()
        self._shapes: dict[Any, _Shape] = {}

    def prepare(self, statement: Statement, parameters: Parameters) -> Prepared:
        """The statement, prepared for parameters with these names."""
        prepared = self._whole.get(statement)
        if prepared is None:
            prepared = self._whole[statement] = self._prepare(statement)
        if prepared.required <= parameters.keys() or not isinstance(statement, Insert | Update):
            return prepared
        # Without values it would set all columns. Like SQLAlchemy, it sets those with values.
        known = self._partial.setdefault(statement, {})
        names = frozenset(parameters)
        if names not in known:
            prepared = self._prepare(statement, sorted(names))
            if not names <= prepared.names:
                raise KeyError(*sorted(names - prepared.names))  # SQLAlchemy would ignore it
            known[names] = prepared
        return known[names]

    def quoted(self, name: str) -> str:
        """A name quoted for SQL."""
        return self._dialect.identifier_preparer.quote_identifier(name)

    def rows(self, columns: Mapping[str, TypeEngine[Any]]) -> Rows:
        """The function that makes rows of these columns, for plain SQL."""
        return Rows(
            (name, element.dialect_impl(self._dialect).result_processor(self._dialect, self._type_code))
            for name, element in columns.items()
        )

    def _prepare(self, statement: Statement, column_keys: Sequence[str] | None = None) -> Prepared:
        # SQLAlchemy's own cache key, without literal values; null if it has none.
        cache_key = statement._generate_cache_key()
        key = cache_key and (cache_key.key, column_keys and tuple(column_keys))
        shape = self._shapes.get(key) if key else None
        if shape is None:
            # A compiler keeps its statement, so give it a copy. Else the cache would keep all statements.
            copy = statement.execution_options()
            compiled = copy.compile(dialect=self._dialect, column_keys=column_keys, cache_key=cache_key)
            shape = _Shape(compiled, self._dialect, self._type_code, self._from_array)
            if key:
                if len(self._shapes) >= _SHAPES:
                    self._shapes.clear()
                self._shapes[key] = shape
        return Prepared(shape, cache_key)


_shared: dict[tuple[type[Dialect], object], Statements] = {}


def statements_for(dialect: Dialect, type_code: object = None, from_array: FromArray | None = None) -> Statements:
    """The statements of all databases of this kind in a process, which share compiled ones."""
    return _shared.setdefault((type(dialect), type_code), Statements(dialect, type_code, from_array))
