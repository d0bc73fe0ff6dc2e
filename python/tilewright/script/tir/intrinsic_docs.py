"""Documentation, for ``help()``, of the functions that the core's table of intrinsics gives to the namespace T.

The types of arguments and results follow from that table (``src/ir/intrinsics.def``). What a function computes, and the
names of its arguments where they are more than three, stand here.
"""

from __future__ import annotations

#: Of a name: what it computes, in terms of its arguments: x, y and z, or those named in front of a colon.
SUMMARIES = {
    "exp": "e to the power of `x`.",
    "exp2": "2 to the power of `x`.",
    "exp10": "10 to the power of `x`.",
    "expm1": "e to the power of `x`, minus 1; exact for `x` near 0.",
    "log": "The natural logarithm of `x`; NaN below 0.",
    "log2": "The logarithm of `x` to the base 2; NaN below 0.",
    "log10": "The logarithm of `x` to the base 10; NaN below 0.",
    "log1p": "The natural logarithm of 1 + `x`; exact for `x` near 0.",
    "sqrt": "The square root of `x`; NaN below 0.",
    "cbrt": "The cube root of `x`.",
    "rsqrt": "1 divided by the square root of `x`.",
    "sigmoid": "The logistic function, 1 / (1 + exp(-x)).",
    "tanh": "The hyperbolic tangent of `x`.",
    "tan": "The tangent of the angle `x`, in radians.",
    "cos": "The cosine of the angle `x`, in radians.",
    "cosh": "The hyperbolic cosine of `x`.",
    "sin": "The sine of the angle `x`, in radians.",
    "sinh": "The hyperbolic sine of `x`.",
    "asin": "The arc sine of `x`, in radians; NaN outside of [-1, 1].",
    "acos": "The arc cosine of `x`, in radians; NaN outside of [-1, 1].",
    "atan": "The arc tangent of `x`, in radians.",
    "asinh": "The inverse hyperbolic sine of `x`.",
    "acosh": "The inverse hyperbolic cosine of `x`; NaN below 1.",
    "atanh": "The inverse hyperbolic tangent of `x`; NaN outside of [-1, 1].",
    "erf": "The error function of `x`.",
    "floor": "The largest integer that is not above `x`.",
    "ceil": "The smallest integer that is not below `x`.",
    "round": "The nearest integer; halves are rounded away from 0.",
    "nearbyint": "The nearest integer; halves are rounded to even.",
    "trunc": "`x` without its fraction: rounded towards 0.",
    "fabs": "The absolute value of `x`.",
    "atan2": "The angle of the point (y, x) = (`x`, `y`) in radians: that whose tangent is `x` / `y`.",
    "copysign": "The magnitude of `x` with the sign of `y`.",
    "fmod": "The remainder of `x` / `y`, with the sign of `x`.",
    "hypot": "The square root of `x` * `x` + `y` * `y`, without overflow on the way.",
    "nextafter": "The next number of the type after `x` in the direction of `y`.",
    "pow": "`x` to the power of `y`.",
    "ldexp": "`x` times 2 to the power of `y`.",
    "fma": "`x` * `y` + `z`, rounded once.",
    "isnan": "Whether `x` is not a number.",
    "isinf": "Whether `x` is an infinity.",
    "isfinite": "Whether `x` is neither an infinity nor NaN.",
    "isnullptr": "Whether the pointer `x` is null.",
    "popcount": "The number of bits of `x` that are 1.",
    "shift_left": "The bits of `x` moved up by `y` positions: `x` << `y`.",
    "shift_right": "The bits of `x` moved down by `y` positions; signed numbers keep their sign: `x` >> `y`.",
    "bitwise_and": "The bits that are 1 in both: `x` & `y`.",
    "bitwise_or": "The bits that are 1 in one of the two: `x` | `y`.",
    "bitwise_xor": "The bits that differ: `x` ^ `y`.",
    "bitwise_not": "All bits of `x` inverted: ~`x`.",
    "likely": "`x`, a condition that nearly always holds: a hint for the compiler, not a promise.",
    "assume": "Promise that the condition `x` holds, such as n % 16 == 0: T.evaluate(T.assume(n % 16 == 0)).",
    "q_multiply_shift": "x, y, q, s: `x` * `y` / 2**(`q` - `s`) in fixed point with `q` fraction bits, rounded.",
    "q_multiply_shift_per_axis": "x, y, left, right, q, is_left, is_right: `x` * `y` in fixed point, with "
    "shifts for each channel.",
    "large_uint_imm": "low, high: the constant `high` * 2**32 + `low`.",
    "vscale": "How many times 128 bits a scalable vector of the processor has.",
    "get_active_lane_mask": "base, limit: the mask of lanes i with `base` + i < `limit`.",
    "ret": "Return the value `x` from the function.",
    "atomic_add": "Add `y` to the element at the address `x`, as one step; return the element before.",
    "atomic_min": "Let the element at the address `x` be at most `y`, as one step; return the element before.",
    "atomic_max": "Let the element at the address `x` be at least `y`, as one step; return the element before.",
    "atomic_and": "Replace the element at the address `x` by its AND with `y`, as one step; return the element before.",
    "atomic_or": "Replace the element at the address `x` by its OR with `y`, as one step; return the element before.",
    "atomic_xor": "Replace the element at the address `x` by its XOR with `y`, as one step; return the element before.",
    "atomic_exchange": "Store `y` in the element at the address `x`, as one step; return the element before.",
    "call_extern": "name, ...: call the C function of that name, which may have effects.",
    "call_pure_extern": "name, ...: call the C function of that name, which has no effects.",
    "call_packed": "name, ...: call a packed function of TVM's runtime by its name.",
    "call_cpacked": "name, ...: call a packed function with the C interface of TVM's runtime by its name.",
    "call_llvm_intrin": "name, ...: call the intrinsic of LLVM of that name, which may have effects.",
    "call_llvm_pure_intrin": "name, ...: call the intrinsic of LLVM of that name, which has no effects.",
    "tvm_access_ptr": "type, data, offset, extent, mask: a pointer to elements from `offset` on, of which `extent` are "
    "used; bit 1 of `mask` stands for reading, bit 2 for writing.",
    "type_annotation": "A value that stands for its type, in the arguments of other calls.",
    "tvm_storage_sync": 'scope, ...: a barrier for all threads that share the scope, such as "shared" or "warp".',
    "tvm_thread_allreduce": "size, value, condition, result, ...: reduce `value` over the threads named last, and "
    "store the result for each of them.",
    "tvm_warp_shuffle": "mask, value, lane, width, warp_size: `value` of thread `lane` of the warp.",
    "tvm_warp_shuffle_up": "mask, value, delta, width, warp_size: `value` of the thread `delta` places before.",
    "tvm_warp_shuffle_down": "mask, value, delta, width, warp_size: `value` of the thread `delta` places behind.",
    "tvm_warp_activemask": "The mask of threads of the warp that run.",
    "tvm_tuple": "...: several values as one argument of another call.",
    "tvm_stack_alloca": "type, count: memory on the stack for `count` structures, as TVM's runtime takes arguments.",
    "tvm_stack_make_shape": "...: a shape of these extents on the stack.",
    "tvm_stack_make_array": "data, shape, strides, ndim, dtype, elem_offset: a DLTensor on the stack.",
    "tvm_struct_get": "handle, index, field: a field of a structure of TVM's runtime.",
    "tvm_struct_set": "handle, index, field, value: store a field of a structure of TVM's runtime.",
    "tvm_throw_last_error": "Raise the last error of TVM's runtime.",
    "vectorlow": "The lower half of the vector `x`.",
    "vectorhigh": "The upper half of the vector `x`.",
    "vectorcombine": "The lanes of the vector `x`, then those of `y`.",
    "dp4a": "The sum of the products of the four bytes of `x` and `y`, added to `z`.",
    "tvm_thread_invariant": "`x`, a condition that is the same for all threads of a block.",
    "ignore_loop_partition": "`x`, a condition that loops are not cut at.",
    "tvm_call_packed_lowered": "name, arguments, types, begin, end: a packed call whose arguments are on the stack.",
    "tvm_call_cpacked_lowered": "name, arguments, types, begin, end, resource: a packed call with the C interface, "
    "whose arguments are on the stack.",
    "tvm_check_return": "expected, unexpected, call: check what `call` returns, and fail otherwise.",
    "tvm_context_id": "The number of the context that TVM's runtime runs the function in.",
    "tvm_static_handle": "A handle that keeps its value between calls.",
    "lookup_param": "The parameter of a network called `x`.",
    "anylist_getitem": "list, index: an item of a list of TVM's runtime.",
    "anylist_resetitem": "list, index: empty an item of a list of TVM's runtime.",
    "anylist_setitem_call_packed": "list, index, name, ...: store what a packed call returns.",
    "anylist_setitem_call_cpacked": "list, index, name, ...: store what a packed call with the C interface returns.",
    "TVMBackendAllocWorkspace": "device_type, device_id, bytes, dtype_code, dtype_bits: memory for the rest of a call.",
    "TVMBackendFreeWorkspace": "device_type, device_id, pointer: free memory of TVMBackendAllocWorkspace.",
    "start_profile_intrinsic": "The profiler begins to count under the number `x`.",
    "end_profile_intrinsic": "The profiler stops to count under the number `x`.",
    "tvm_load_matrix_sync": "fragment, m, n, k, index, pointer, stride, layout: load a fragment of a matrix (WMMA).",
    "tvm_mma_sync": "d, index_d, a, index_a, b, index_b, c, index_c: the product of fragments, d = a * b + c (WMMA).",
    "tvm_bmma_sync": "d, index_d, a, index_a, b, index_b, c, index_c: the product of fragments of single bits.",
    "tvm_fill_fragment": "fragment, m, n, k, index, value: fill a fragment of a matrix (WMMA).",
    "tvm_store_matrix_sync": "fragment, m, n, k, index, pointer, stride, layout: store a fragment of a matrix (WMMA).",
    "ptx_mma": "shape, a_layout, b_layout, a_dtype, b_dtype, c_dtype, a, a_index, b, b_index, c, c_index, saturate, "
    "...: the instruction mma of PTX.",
    "ptx_mma_sp": "shape, a_layout, b_layout, a_dtype, b_dtype, c_dtype, a, a_index, b, b_index, c, c_index, metadata, "
    "meta_index, selector, saturate: the instruction mma.sp of PTX, whose first operand is sparse.",
    "ptx_ldmatrix": "trans, num, type, local, local_offset, shared, shared_offset: the instruction ldmatrix of PTX.",
    "ptx_cp_async": "shared, shared_offset, global, global_offset, bytes, ...: copy to shared memory asynchronously.",
    "ptx_cp_async_bulk": "shared, shared_offset, global, global_offset, bytes, barrier: copy in bulk, asynchronously.",
    "ptx_wait_group": "Wait until at most `x` groups of asynchronous copies are left.",
    "ptx_commit_group": "Close a group of asynchronous copies.",
    "ptx_cp_async_barrier": "Let the barrier `x` wait for the asynchronous copies of this thread.",
    "ptx_init_barrier_thread_count": "barrier, threads: prepare a barrier for so many threads.",
    "ptx_arrive_barrier": "Arrive at the barrier `x`.",
    "ptx_arrive_barrier_expect_tx": "barrier, bytes: arrive, and let the barrier wait for so many bytes.",
    "ptx_wait_barrier": "Wait at the barrier `x`.",
    "create_barriers": "Create `x` barriers in shared memory.",
    "mma_store": "m, n, destination, source, source_offset, stride: store the result of ptx_mma.",
    "mma_fill": "size, local, offset: fill the accumulators of ptx_mma with 0.",
    "make_filled_simdgroup_matrix": "matrix, index, value, columns, rows: fill a matrix of a simdgroup (Metal).",
    "simdgroup_load": "matrix, index, pointer, stride, columns, rows, transpose: load a matrix of a simdgroup (Metal).",
    "simdgroup_store": "matrix, index, pointer, stride, columns, rows, transpose: store a matrix of a simdgroup.",
    "simdgroup_multiply_accumulate": "d, index_d, a, index_a, b, index_b, c, index_c: d = a * b + c of a simdgroup.",
}

#: By the core's rule for the type of a result: what one argument is, what several are, and what the result is.
_TYPES = {
    "kSameFloat": (
        "a floating-point number or vector",
        "floating-point numbers or vectors of one type",
        "An expression of that type.",
    ),
    "kSameAny": ("a number or a vector", "numbers or vectors of one type", "An expression of that type."),
    "kBool": ("a number, a vector or a pointer", "numbers or vectors", "A bool, or a vector of as many bools."),
    "kInteger": (
        "an integer or a vector of integers",
        "integers or vectors of one type",
        "An expression of that type.",
    ),
    "kSecond": ("an expression", "expressions", "An expression of the type of the second argument."),
}
_RESULTS = {
    "kFirst": "An expression of the type of the first argument.",
    "kSecond": "An expression of the type of the second argument.",
    "kInt32": "An expression of type int32; where the call is made for its effect, a statement `T.evaluate(...)`.",
    "kUint32": "An expression of type uint32.",
    "kBoolean": "An expression of type bool.",
    "kVoid": "An expression without a value: the statement is `T.evaluate(...)`.",
    "kHandle": "An expression of type handle, a pointer.",
    "kDtypeFirst": "An expression of the type `dtype`.",
    "kDtypeLast": "An expression of the type `dtype`.",
}


def parameters_of(name: str, arity: int) -> list[str]:
    """Return the names of the arguments, the last one "..." where there may be more."""
    before, _, after = SUMMARIES.get(name, "").partition(": ")
    names = before.split(", ")
    if after and all(each == "..." or each.isidentifier() for each in names):
        return names
    return ["x", "y", "z"][:arity] if 0 <= arity <= 3 else ["..."]


def doc_of(name: str, arity: int, typing: str, result: str) -> str:
    """Return the docstring of an intrinsic function.

    Args:
        name: without the prefix "tir.".
        arity: the number of arguments; -1 for any number.
        typing: the core's rule for the type of the result, such as "same_float".
        result: where the type comes from if that rule is "explicit", such as "kDtypeFirst".
    """
    names = parameters_of(name, arity)
    summary = SUMMARIES.get(name, f"The intrinsic `tir.{name}`.")
    if summary.startswith(", ".join(names) + ": "):
        summary = summary.partition(": ")[2]
        summary = summary if summary.startswith("d = ") else summary[0].upper() + summary[1:]
    one, several, returned = _TYPES.get(
        typing, ("an expression", "expressions", _RESULTS.get(result, "An expression."))
    )
    kind = one if len(names) == 1 and names[0] != "..." else several
    lines = [summary, "", "Args:"]
    takes_dtype = result in ("kDtypeFirst", "kDtypeLast")
    if takes_dtype and result == "kDtypeFirst":
        lines.append("    dtype: the type of the result, as a string; it comes first.")
    if names:
        lines.append(f"    {', '.join('*args' if each == '...' else each for each in names)}: {kind}.")
    if not takes_dtype:
        lines.append("    dtype: the type of the result, where it differs from what follows from the arguments.")
    elif result == "kDtypeLast":
        lines.append("    dtype: the type of the result, as a string; it comes last.")
    return "\n".join([*lines, "", "Returns:", f"    {returned}", "", f"The intrinsic `tir.{name}`."])
