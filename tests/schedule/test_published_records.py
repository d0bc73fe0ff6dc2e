"""Records as TVM v0.20 lays them out, written by hand: they load, do what they say, and are written the same way."""

import json

import pytest

import tilewright as tw
from tilewright.testing import workloads


def index_map(inputs, *finals):
    """An index map as TVM saves it: of these names, to items that are names or (class, name, number)."""
    nodes = [{"type_key": ""}]

    def add(**node):
        nodes.append(node)
        return len(nodes) - 1

    top = add(type_key="tir.IndexMap", attrs={})
    variables = {}
    for name in inputs:
        text = add(type_key="runtime.String", repr_str=name)
        kind = add(type_key="PrimType", attrs={"dtype": "int32"})
        attrs = {"dtype": "int32", "name": str(text), "span": "0", "type_annotation": str(kind)}
        variables[name] = add(type_key="tir.Var", attrs=attrs)

    def expression(item):
        if isinstance(item, str):
            return variables[item]
        number = add(type_key="IntImm", attrs={"dtype": "int32", "span": "0", "value": str(item[2])})
        attrs = {"a": str(variables[item[1]]), "b": str(number), "dtype": "int32", "span": "0"}
        return add(type_key=f"tir.{item[0]}", attrs=attrs)

    results = [expression(item) for item in finals]
    nodes[top]["attrs"] = {
        "initial_indices": str(add(type_key="Array", data=list(variables.values()))),
        "final_indices": str(add(type_key="Array", data=results)),
        "inverse_index_map": "0",
    }
    graph = {"root": top, "nodes": nodes, "b64ndarrays": [], "attrs": {"tvm_version": "0.20.0"}}
    return json.dumps(graph)


TILED = index_map(["i", "j"], ("FloorDiv", "i", 4), "j", ("FloorMod", "i", 4))

#: What is recorded behind GetBlock (b0) and GetLoops (l1, l2, l3) of C, and the same by hand.
RECORDS = {
    "reindex": (
        [["ReIndex", ["b0"], [1, 0], ["b4"]]],
        lambda sch, block, i, j, k: sch.reindex(block, ("read", 1)),
    ),
    "reorder_block_iter_var": (
        [["ReorderBlockIterVar", ["b0", [1, 0, 2]], [], []]],
        lambda sch, block, i, j, k: sch.reorder_block_iter_var(block, [1, 0, 2]),
    ),
    "transform_layout": (
        [["TransformLayout", ["b0", TILED], [0, 0, None, True], []]],
        lambda sch, block, i, j, k: sch.transform_layout(
            block, ("read", 0), lambda i, j: [i // 4, j, i % 4], assume_injective_transform=True
        ),
    ),
    "reindex_cache_write": (
        [["ReindexCacheWrite", ["b0", index_map(["i", "j", "k"], "j", "i")], [0, "local"], ["b4"]]],
        lambda sch, block, i, j, k: sch.reindex_cache_write(block, 0, "local", lambda i, j, k: [j, i]),
    ),
    "transform_block_layout": (
        [["TransformBlockLayout", ["b0"], [index_map(["i", "j", "k"], "j", "i", "k")], []]],
        lambda sch, block, i, j, k: sch.transform_block_layout(block, lambda i, j, k: [j, i, k]),
    ),
    "set_axis_separator": (
        [["SetAxisSeparator", ["b0"], [0, 1, [1]], []]],
        lambda sch, block, i, j, k: sch.set_axis_separator(block, ("write", 0), [1]),
    ),
    "unsafe_hide_buffer_access": (
        [["UnsafeHideBufferAccess", ["b0", '"read"', [1]], [], []]],
        lambda sch, block, i, j, k: sch.unsafe_hide_buffer_access(block, "read", [1]),
    ),
    "annotate_buffer_access": (
        [["AnnotateBufferAccess", ["b0", 0, 0, index_map(["i", "j", "k"], "i", "i", "k", "k")], [], []]],
        None,
    ),
    "loops": (
        [
            ["SampleCategorical", [], [[2, 4], [0.5, 0.5]], ["v4"]],
            ["Split", ["l2", "v4", "None"], [True, False], ["l5", "l6"]],
            ["LoopPartition", ["l1", 4, "None"], [True], ["l7", "l8"]],
        ],
        None,
    ),
    "caches": (
        [
            ["CacheRead", ["b0", []], [0, "global"], ["b4"]],
            ["StorageAlign", ["b4"], [0, 0, 32, 1], []],
            ["ComputeAt", ["b4", "l1"], [True, -1], []],
        ],
        None,
    ),
    "rfactor": ([["RFactor", ["l3"], [0], ["b4"]]], lambda sch, block, i, j, k: sch.rfactor(k, 0)),
    "annotations": (
        [
            ["Annotate", ["b0", [1, 2]], ["list"], []],
            ["Annotate", ["b0", {"a": 1, "b": '"text"'}], ["dict"], []],
            ["Unannotate", ["b0"], ["list"], []],
            ["Blockize", ["l2"], [True], ["b4"]],
            ["EnterPostproc", [], [], []],
            ["Parallel", ["l1"], [], []],
        ],
        None,
    ),
}
START = [["GetBlock", [], ["C", "main"], ["b0"]], ["GetLoops", ["b0"], [], ["l1", "l2", "l3"]]]


def unfold(graph, number):
    """A node of a saved map with those that it refers to in their places; names by the place of their variable."""
    references = {"a", "b", "value", "name", "type_annotation", "initial_indices", "final_indices", "inverse_index_map"}
    node = graph["nodes"][number]
    attrs = {
        key: unfold(graph, int(value)) if key in references and node["type_key"] != "IntImm" else value
        for key, value in node.get("attrs", {}).items()
    }
    return node | {"attrs": attrs, "data": [unfold(graph, item) for item in node.get("data", [])]}


def plain(entry):
    """A record with what its maps say instead of their texts: how nodes are numbered is nobody's business."""
    if isinstance(entry, list):
        return [plain(item) for item in entry]
    if not (isinstance(entry, str) and entry.startswith("{")):
        return entry
    graph = json.loads(entry)
    assert graph["nodes"][0] == {"type_key": ""} and graph["b64ndarrays"] == []
    return unfold(graph, graph["root"]), graph["attrs"]


def same(left, right):
    return plain(left) == plain(right)


@pytest.mark.parametrize("name", RECORDS)
def test_a_record(name):
    steps, by_hand = RECORDS[name]
    program = workloads.matmul(16, 16, 16)
    trace = tw.Trace.from_json([[*START, *steps], [[2, 1]] if name == "loops" else []])
    sch = tw.Schedule(program, seed=1)
    trace.apply_to_schedule(sch)
    if "hide" not in name:
        sch.verify()
    if by_hand is not None:
        hand = tw.Schedule(program)
        block = hand.get_block("C")
        by_hand(hand, block, *hand.get_loops(block))
        tw.ir.assert_structural_equal(sch.mod, hand.mod)
    written, decisions = sch.trace.as_json()
    assert same([*START, *steps], written), written
    assert decisions == ([[2, 1]] if name == "loops" else [])
    again = tw.Schedule(program, seed=1)
    tw.Trace.from_json(sch.trace.as_json()).apply_to_schedule(again)
    tw.ir.assert_structural_equal(sch.mod, again.mod)


def test_records_of_before_are_read():
    """All constants stood among the attributes, sides as texts."""
    old = [
        ["Reindex", ["b0"], [["read", 1]], ["b4"]],
        ["ReorderBlockIterVar", ["b0"], [[1, 0, 2]], []],
        ["SetAxisSeparator", ["b0"], [["write", 0], [1]], []],
        ["UnsafeHideBufferAccess", ["b0"], ["read", [1]], []],
    ]
    layout = ["TransformLayout", ["b0", []], [["read", 0], TILED, None, True], []]
    now = tw.Trace.from_json([[*START, layout], []]).as_json()[0][2]
    assert same(now, ["TransformLayout", ["b0", TILED], [0, 0, None, True], []])
    written = tw.Trace.from_json([[*START, *old], []]).as_json()
    assert written[0][2:] == [
        ["ReIndex", ["b0"], [1, 0], ["b4"]],
        ["ReorderBlockIterVar", ["b0", [1, 0, 2]], [], []],
        ["SetAxisSeparator", ["b0"], [0, 1, [1]], []],
        ["UnsafeHideBufferAccess", ["b0", '"read"', [1]], [], []],
    ]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda graph: graph["nodes"][1].update(type_key="tir.For"), "a node 'tir.For' is none of index maps"),
        (lambda graph: graph["nodes"][1]["attrs"].update(final_indices="99"), "there is no node 99"),
        (lambda graph: graph["nodes"][1]["attrs"].update(final_indices="2"), "'final_indices' is not a list"),
        (lambda graph: graph.update(nodes={}), "the nodes are not a list"),
        (lambda graph: graph["nodes"][1]["attrs"].update(inverse_index_map="1"), "nest deeper"),
        (lambda graph: graph["nodes"][3]["attrs"].update(dtype="int"), "a node 'PrimType'"),
        (lambda graph: graph["nodes"][4]["attrs"].update(dtype="number"), "unknown data type 'number'"),
        (lambda graph: graph["nodes"][4]["attrs"].update(name="x", dtype="int32") or graph.update(root=3), "PrimType"),
    ],
)
def test_maps_that_cannot_be_read(change, said):
    graph = json.loads(TILED)
    change(graph)
    if said == "a node 'PrimType'":
        graph["root"] = 3
    with pytest.raises(tw.ScriptError) as error:
        tw.ir.load_json(json.dumps(graph))
    assert error.value.code == "json/content" and said in str(error.value)


def test_expressions_as_tvm_saves_them():
    graph = json.loads(index_map(["i"], ("Mul", "i", 4)))
    loaded = tw.ir.load_json(json.dumps(graph))
    assert str(loaded.map_indices([3])[0]) == "12"


def test_a_layout_with_padding_is_written_as_published():
    program = workloads.matmul(10, 10, 10)
    sch = tw.Schedule(program)
    block = sch.get_block("C")
    sch.transform_layout(block, ("write", 0), lambda i, j: [i, j // 4, j % 4], pad_value=1.5)
    ((_, inputs, attrs, _),) = [step for step in sch.trace.as_json()[0] if step[0] == "TransformLayout"]
    assert json.loads(inputs[1])["nodes"][1]["type_key"] == "tir.IndexMap", inputs
    assert attrs == [0, 1, 1.5, False]
