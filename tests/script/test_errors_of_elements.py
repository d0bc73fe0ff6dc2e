"""Sizes, regions and whole buffers where a script needs elements."""

from marked_errors import check, check_body

from tilewright.script import from_source


def test_a_size_that_no_parameter_defines() -> None:
    error = check(
        "verify/undefined",
        "@T.prim_func\ndef f(a: T.handle):\n    n = T.int32()\n"
        '    A = «T.match_buffer(a, (n * 2,), "float32")»\n    A[0] = 0.0\n',
        "an extent of 'A' is computed from 'n', and no parameter defines 'n'",
        "as an extent by itself, (n,), or as a parameter, n: T.int32",
    )
    assert "^^^" in str(error)
    # Defined by another parameter, before or after it.
    for extents in (("n * 2", "n"), ("n", "n * 2")):
        from_source(
            "@T.prim_func\ndef f(a: T.handle, b: T.handle):\n    n = T.int32()\n"
            f'    A = T.match_buffer(a, ({extents[0]},), "float32")\n'
            f'    B = T.match_buffer(b, ({extents[1]},), "float32")\n    A[0] = B[0]\n'
        )


def test_strides_and_offsets_that_no_parameter_defines() -> None:
    for layout, what in (("strides=(n + 1, 1)", "a stride"), ("elem_offset=n * 2", "the offset")):
        check(
            "verify/undefined",
            "@T.prim_func\ndef f(a: T.handle):\n    n = T.int32()\n"
            f'    A = «T.match_buffer(a, (4, 4), "float32", {layout})»\n    A[0, 0] = 0.0\n',
            f"{what} of 'A' is computed from 'n', and no parameter defines 'n'",
            "or as a parameter, n: T.int32",
        )


def test_a_domain_that_depends_on_an_axis_of_its_block() -> None:
    for binding, instead in (("i", "bound to, 'i': domains"), ("15 - i", "bound to: domains")):
        check_body(
            "verify/axis",
            'for i in range(16):\n    for k in range(i, 16):\n        with T.block("B"):\n'
            f"            vi = T.axis.spatial(16, {binding})\n            vk = «T.axis.reduce((vi, 16), k)»\n"
            "            with T.init():\n                A[vi] = 0.0\n            A[vi] = A[vi] + 1.0",
            "the domain of axis 'vk' depends on 'vi', an axis of the same block",
            instead,
        )


def test_regions_where_elements_are_needed() -> None:
    loop = "loop over each dimension that is sliced"
    square = '@T.prim_func\ndef f(A: T.Buffer((8, 8), "float32"), B: T.Buffer((8, 8), "float32")):\n'
    check("builder/store-value", square + "    «B[0, :] = A[0, :]»\n", "a region of 'A' is stored to 'B'", loop)
    check(
        "ir/vector-index", square + "    «B[0:8, 0:8] = T.float32(0)»\n", "only the last index", "loop over the other"
    )
    check(
        "builder/store-dtype",
        square + "    «B[0, 0] = A[0, 0:4] + T.float32(1)»\n",
        "float32x4",
        "is a vector of elements: loop over them, or store as many",
    )
    check("script/type", square + "    B[0, 0] = «A[0, :] + 1.0»\n", "BufferRegion", "a region is not a value: " + loop)
    for what in ("A[0, :]", "A"):
        check(
            "te/value",
            square + f"    B[0, 0] = «T.sum({what})»\n",
            "sum of a region of 'A', which is not an expression",
            "reduce in a block: vk = T.axis.reduce(n, k), with T.init()",
        )


def test_products_of_whole_buffers() -> None:
    square = '@T.prim_func\ndef f(A: T.Buffer((8, 8), "float32"), B: T.Buffer((8, 8), "float32")):\n'
    check("script/type", square + "    C = «A @ B»\n", "for @", "a product of matrices is a block in three loops")
    check("script/type", square + "    B[0, 0] = «A + B»\n", "for +", "index it: A[i]")


def test_match_buffer_of_a_buffer() -> None:
    check_body(
        "builder/twice",
        'B = «T.match_buffer(A, (4, 4), "float32")»',
        "T.match_buffer of 'A', which is a buffer already",
        "use 'A' itself; T.match_buffer gives a shape to a parameter of type T.handle",
    )
