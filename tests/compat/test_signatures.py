"""Every method of TVM v0.20's schedules takes the same parameters, in the same order, with the same defaults."""

import ast
import inspect

import pytest

from tilewright._core import Schedule
from tilewright.compat.tvm.tir.schedule.schedule import ScheduleAsTVM

TABLE = """
work_on(func_name)
copy()
seed(seed)
fork_seed()
get(rand_var_or_sref)
get_sref(rand_var_or_stmt)
remove_rv(rand_var)
sample_categorical(candidates, probs, decision=None)
sample_perfect_tile(loop, n, max_innermost_factor=16, decision=None)
sample_partitioned_tile(loop, n, partition_pos=0, innerpart_factor=1, decision=None)
sample_compute_location(block, decision=None)
get_block(name, func_name=None)
get_loops(block)
get_child_blocks(block_or_loop)
get_producers(block)
get_consumers(block)
get_output_blocks(scope_block)
merge(*loops)
fuse(*loops, preserve_unit_iters=True)
split(loop, factors, preserve_unit_iters=True, disable_predication=False)
loop_partition(loop, factors, preserve_unit_iters=True)
reorder(*ordered_loops)
reorder_block_iter_var(block, new_order)
add_unit_loop(block_or_loop)
parallel(loop)
vectorize(loop)
bind(loop, thread_axis)
unroll(loop)
cache_read(block, read_buffer_index, storage_scope, consumer_blocks=None)
cache_write(block, write_buffer_index, storage_scope, consumer_blocks=None)
reindex_cache_read(block, read_buffer_index, storage_scope, index_map)
reindex_cache_write(block, write_buffer_index, storage_scope, index_map)
cache_inplace(block, read_buffer_index, storage_scope)
cache_index(block, storage_scope, cse_thresh=0)
reindex(block, buffer)
read_at(loop, block, read_buffer_index, storage_scope)
write_at(loop, block, write_buffer_index, storage_scope)
compute_at(block, loop, preserve_unit_loops=False, index=-1)
reverse_compute_at(block, loop, preserve_unit_loops=False, index=-1)
compute_inline(block)
reverse_compute_inline(block)
decompose_reduction(block, loop)
rfactor(loop, factor_axis)
storage_align(block, buffer_index, axis, factor, offset)
set_scope(block, buffer_index, storage_scope)
unsafe_set_dtype(block, buffer_index, dtype)
blockize(target, preserve_unit_iters=True)
tensorize(block_or_loop, tensor_intrin, preserve_unit_iters=True)
annotate(block_or_loop, ann_key, ann_val)
unannotate(block_or_loop, ann_key)
transform_layout(block, buffer, index_map, pad_value=None, *, assume_injective_transform=False)
transform_block_layout(block, index_map)
set_axis_separator(block, buffer, axis_separators)
decompose_padding(block, loop)
can_decompose_padding(block, loop)
pad_einsum(block, padding)
rolling_buffer(block, write_buffer_index)
enter_postproc()
unsafe_hide_buffer_access(block, buf_type, buf_index_array)
annotate_buffer_access(block, buffer_index, buf_type, gen_new_ranges)
"""
SIGNATURES = TABLE.strip().splitlines()


def parameters(definition):
    """Names of a definition's parameters, those by name only behind a star, and their defaults as text."""
    args = ast.parse(definition + ": ...").body[0].args
    plain = [arg.arg for arg in (*args.posonlyargs, *args.args) if arg.arg != "self"]
    defaults = dict(zip(plain[len(plain) - len(args.defaults) :], map(ast.unparse, args.defaults), strict=True))
    by_name = [arg.arg for arg in args.kwonlyargs]
    defaults |= {k: ast.unparse(v) for k, v in zip(by_name, args.kw_defaults, strict=True) if v is not None}
    return plain, args.vararg and args.vararg.arg, by_name, defaults


def definitions_of(method):
    """As text; overloads are several."""
    method = inspect.unwrap(method)
    signatures = getattr(method, "__nb_signature__", None)
    if signatures is None:
        return [f"def f{inspect.signature(method)}"]
    return [text for text, *_ in signatures]


@pytest.mark.parametrize("signature", SIGNATURES, ids=[line.split("(")[0] for line in SIGNATURES])
def test_a_method(signature):
    name = signature.split("(")[0]
    want = parameters("def " + signature)
    for owner in (Schedule, ScheduleAsTVM):
        for definition in definitions_of(getattr(owner, name)):
            plain, star, by_name, defaults = parameters(definition)
            if name != "get":  # whatever the parameter is called, TVM's scripts pass it by position
                assert plain[: len(want[0])] == want[0], definition
            assert star == want[1]
            assert set(want[2]) <= {*plain, *by_name}, definition
            assert {key: defaults[key] for key in want[3]} == want[3]
            # What TVM does not have comes last, and has a default.
            own = [*plain[len(want[0]) :], *by_name]
            assert all(key in defaults for key in own), definition
