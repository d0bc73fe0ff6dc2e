"""Records in which every field is filled: also those that later versions add to the list in database.h."""

from __future__ import annotations

from typing import Any

from tilewright import _core


def filled(**given: Any) -> _core.Record:
    """A record in which each field has another value than by default, or the given one; `workload` is given."""
    for number, name in enumerate(_core.Record.fields, 1):
        values = (f'{{"P\\u00e9":[{number},0.3333333333333333]}}', number, number + 1 / 3, [number / 3])
        if name not in given:
            given[name] = next(value for value in values if _is_accepted(name, value))
    return _core.Record(**given)


def fields_of(record: _core.Record) -> dict[str, Any]:
    """What a record says, without the number that its database gave it."""
    return {name: getattr(record, name) for name in record.fields if name != "id"}


def _is_accepted(name: str, value: Any) -> bool:
    try:
        _core.Record(**{name: value})
    except TypeError:
        return False
    return True
