"""Programs whose parameters share names, and the ways to call them: a parameter is its position."""

from __future__ import annotations

import json
import random
from collections import Counter
from typing import Any

import numpy as np

import tilewright as tw
from tilewright import _core, ir
from tilewright.search.expectations import Expectations
from tilewright.support.numpy_dtype import numpy_dtype
from tilewright.task.task import task_of


def shared(func: ir.PrimFunc, seed: int) -> ir.PrimFunc:
    """For every third seed the function with names of its arrays given to others of them: to one, some or all."""
    rng = random.Random(f"names {seed}")
    if rng.random() > 0.3:
        return func
    names = [func.buffer_map[param].name for param in func.params]
    pool = rng.choice([names[:1], names[:2], names])
    given = {name: rng.choice(pool) for name in names}
    graph = json.loads(ir.save_json(func))
    for node in graph["nodes"]:
        field = {"Buffer": "name", "Var": "name_hint"}.get(node["class"])
        if field is not None:
            node[field] = given.get(node[field], node[field])
    renamed = ir.load_json(json.dumps(graph))
    assert isinstance(renamed, ir.PrimFunc)
    return renamed


def names_of(func: ir.PrimFunc) -> list[str]:
    """The names of the arrays, in order."""
    return [func.buffer_map[param].name for param in func.params]


def outputs_of(func: ir.PrimFunc) -> list[int]:
    """The positions of arrays that are only written; none where a size or stride is open."""
    buffers = [func.buffer_map[param] for param in func.params]
    if any(not isinstance(extent, ir.IntImm) for buffer in buffers for extent in buffer.shape):
        return []
    if any(len(buffer.strides) for buffer in buffers):
        return []
    roles = [role for _, _, _, role in _core.analyze_workload(func)["params"]]
    return [position for position, role in enumerate(roles) if role == "output"]


def zeros_for(func: ir.PrimFunc, position: int) -> np.ndarray:
    """The array that a call makes for an output."""
    buffer = func.buffer_map[func.params[position]]
    return np.zeros([extent.value for extent in buffer.shape], numpy_dtype(buffer.dtype))


def without(kernel: tw.Kernel, arrays: list[np.ndarray], outputs: list[int]) -> list[np.ndarray]:
    """What a call returns that leaves the outputs out."""
    made = kernel(*[array for position, array in enumerate(arrays) if position not in outputs])
    return list(made) if len(outputs) > 1 else [made]


def by_keywords(kernel: tw.Kernel, names: list[str], arrays: list[np.ndarray]) -> str | None:
    """Calls with the arrays from the first name on that is the only one of its kind; what is wrong with that."""
    counts = Counter(names)
    first = next((at for at in range(len(names)) if all(counts[name] == 1 for name in names[at:])), len(names))
    kernel(*arrays[:first], **dict(zip(names[first:], arrays[first:], strict=True)))
    repeated = next((name for name in names if counts[name] > 1), None)
    if repeated is not None:
        try:
            kernel(*arrays[:-1], **{repeated: arrays[-1]})
        except tw.ArgumentError:
            return None
        return f"the keyword {repeated}, which several parameters have, was taken"
    return None


def in_place(kernel: tw.Kernel, arrays: list[np.ndarray], source: int, target: int) -> list[np.ndarray] | None:
    """What a call leaves in its arguments that has one array for two parameters; None where that is refused."""
    shared = list(arrays)
    shared[target] = shared[source]
    try:
        kernel(*shared)
    except tw.ArgumentError as error:
        if error.code != "call/overlap":
            raise
        return None
    return shared


def judged(func: ir.PrimFunc, arrays: list[np.ndarray], kernel: Any) -> str:
    """How a search would check the program as it was written: "full", "sampled", or "unchecked".

    Raises:
        tilewright.Error: it finds that the compiled program is wrong.
    """
    task = task_of(func)
    keys: list[Any] = [p.name for p in task.parameters]
    given = {key: array for key, array in zip(keys, arrays, strict=True) if array.dtype.kind in "iub"}
    expectations = Expectations(task, given, 1)
    initial = expectations.arguments()
    of_search = [
        np.frombuffer(bytearray(data), numpy_dtype(dtype)).reshape(shape) for _, dtype, shape, _, data, _ in initial
    ]
    kernel(*of_search)
    written = [p.name for p in task.parameters if p.role != "input"]
    results = zip((name for name, *_ in initial), of_search, strict=True)
    return expectations.judge({name: array.tobytes() for name, array in results if name in written})[0]
