class Value(_core.Var):
    """What a script calculates with: a variable, a constant or an expression of them."""

    def __init__(self, expr: ExprLike | str | None = None, *, is_size_var: builtins.bool = False) -> None: ...
    def __add__(self, other: ExprLike, /) -> Value: ...
    def __radd__(self, other: ExprLike, /) -> Value: ...
    def __sub__(self, other: ExprLike, /) -> Value: ...
    def __rsub__(self, other: ExprLike, /) -> Value: ...
    def __mul__(self, other: ExprLike, /) -> Value: ...
    def __rmul__(self, other: ExprLike, /) -> Value: ...
    def __truediv__(self, other: ExprLike, /) -> Value: ...
    def __rtruediv__(self, other: ExprLike, /) -> Value: ...
    def __floordiv__(self, other: ExprLike, /) -> Value: ...
    def __rfloordiv__(self, other: ExprLike, /) -> Value: ...
    def __mod__(self, other: ExprLike, /) -> Value: ...
    def __rmod__(self, other: ExprLike, /) -> Value: ...
    def __pow__(self, other: ExprLike, /) -> Value: ...
    def __rpow__(self, other: ExprLike, /) -> Value: ...
    def __and__(self, other: ExprLike, /) -> Value: ...
    def __rand__(self, other: ExprLike, /) -> Value: ...
    def __or__(self, other: ExprLike, /) -> Value: ...
    def __ror__(self, other: ExprLike, /) -> Value: ...
    def __xor__(self, other: ExprLike, /) -> Value: ...
    def __rxor__(self, other: ExprLike, /) -> Value: ...
    def __lshift__(self, other: ExprLike, /) -> Value: ...
    def __rlshift__(self, other: ExprLike, /) -> Value: ...
    def __rshift__(self, other: ExprLike, /) -> Value: ...
    def __rrshift__(self, other: ExprLike, /) -> Value: ...
    def __eq__(self, other: object, /) -> Value: ...  # type: ignore[override]
    def __ne__(self, other: object, /) -> Value: ...  # type: ignore[override]
    def __lt__(self, other: ExprLike, /) -> Value: ...
    def __le__(self, other: ExprLike, /) -> Value: ...
    def __gt__(self, other: ExprLike, /) -> Value: ...
    def __ge__(self, other: ExprLike, /) -> Value: ...
    def __neg__(self) -> Value: ...
    def __pos__(self) -> Value: ...
    def __invert__(self) -> Value: ...
    def __hash__(self) -> int: ...
    def __index__(self) -> int:
        """In a script `range(n)` is a loop; Python's own `range` asks for this."""
    def astype(self, dtype: DType) -> Value:
        """The value as another type."""
    # T.axis.remap gives one value, or as many as there are targets.
    def __iter__(self) -> Iterator[Value]: ...
    def __len__(self) -> int: ...
    def __getitem__(self, index: int, /) -> Value: ...
    # T.allocate and the like define a value for a scope.
    def __enter__(self) -> Value: ...
    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None, /
    ) -> None: ...

class Frame(Generic[_T]):
    """A scope: for `with`; in a script it may also be the iterator of a loop or a statement of its own.

    Variables of loops have the type Any: one name often stands for a loop over `range` and for another one.
    """

    def __enter__(self) -> _T: ...
    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None, /
    ) -> None: ...
    def __iter__(self) -> Iterator[_T]: ...

class handle(Value):
    """A pointer: the type of a parameter, or a fresh variable when called."""

    def __init__(
        self, dtype: DType | None = None, storage_scope: str = "global", *, is_size_var: builtins.bool = False
    ) -> None: ...

class Buffer(_core.Buffer):
    """A typed, shaped view of memory: the type of a parameter, or a buffer that is declared nowhere when called."""

    def __init__(
        self,
        shape: Shape | _core.Buffer,
        dtype: DType = "float32",
        data: ExprLike | None = None,
        strides: Shape | None = None,
        elem_offset: ExprLike | None = None,
        scope: str = "global",
        align: int = 0,
        offset_factor: int = 0,
        buffer_type: str = "",
        axis_separators: Sequence[int] | None = None,
        name: str = "buffer",
    ) -> None: ...
    @overload  # type: ignore[override]
    def __getitem__(self, indices: ExprLike | tuple[ExprLike, ...], /) -> Value: ...
    @overload
    def __getitem__(self, indices: slice | tuple[ExprLike | slice, ...], /) -> Any: ...
    def __setitem__(self, indices: Any, value: ExprLike, /) -> None: ...
    @property
    def data(self) -> Value: ...
    @property
    def shape(self) -> tuple[Value, ...]: ...
    def vload(  # type: ignore[override]
        self, begin: Sequence[ExprLike], dtype: DType | None = None, predicate: ExprLike | None = None
    ) -> Value:
        """A load of a vector."""
    def vstore(  # type: ignore[override]
        self, begin: Sequence[ExprLike], value: ExprLike, predicate: ExprLike | None = None) -> None:
        """A store of a vector."""
    def access_ptr(  # type: ignore[override]
        self,
        access_mask: str | int,
        ptr_type: str = "handle",
        content_lanes: int = 1,
        offset: ExprLike = 0,
        extent: ExprLike | None = None,
    ) -> Value:
        """A pointer into the buffer, for calls of functions outside of the program."""
    # T.decl_buffer declares a buffer for a scope.
    def __enter__(self) -> Buffer: ...
    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None, /
    ) -> None: ...

class Function(_core.PrimFunc):
    """A function; inside a module others call it by the name of the module's class."""

    def __call__(self, *args: Any) -> Value: ...  # type: ignore[override]

@overload
def prim_func(func: Callable[..., Any], /) -> Function:
    """Decorator: the function that the text of a Python function says."""

@overload
def prim_func(
    *, private: builtins.bool = False, check_well_formed: builtins.bool = True, s_tir: builtins.bool = False
) -> Callable[[Callable[..., Any]], Function]: ...
@overload
def macro(func: _F, /) -> _F:
    """Decorator: a piece of a script for use in others, as a statement.

    In a hygienic macro names mean what they mean where it is defined, in another one, where it is called.
    """

@overload
def macro(*, hygienic: builtins.bool = True) -> Callable[[_F], _F]: ...

inline = macro

def meta_var(value: _T, /) -> _T:
    """Keeps what a name is assigned as a Python value, instead of a variable of the program."""

class axis:
    """The axes of a block."""

    @staticmethod
    def spatial(dom: Domain, binding: ExprLike | None = None, dtype: str = "int32") -> Value:
        """An axis whose iterations are independent of each other."""
    @staticmethod
    def reduce(dom: Domain, binding: ExprLike | None = None, dtype: str = "int32") -> Value:
        """An axis over which the block reduces."""
    @staticmethod
    def scan(dom: Domain, binding: ExprLike | None = None, dtype: str = "int32") -> Value:
        """An axis whose iterations run in order."""
    @staticmethod
    def opaque(dom: Domain, binding: ExprLike | None = None, dtype: str = "int32") -> Value:
        """An axis whose iterations may need what earlier ones have done: they stay in their order."""
    @staticmethod
    def S(dom: Domain, binding: ExprLike | None = None, dtype: str = "int32") -> Value:
        """T.axis.spatial."""
    @staticmethod
    def R(dom: Domain, binding: ExprLike | None = None, dtype: str = "int32") -> Value:
        """T.axis.reduce."""
    @staticmethod
    def remap(kinds: str, bindings: Iterable[ExprLike], dtype: str = "int32") -> Value:
        """Axes over the whole domains of loop variables, one letter each: S or R."""

def block(name: str = "", no_realize: builtins.bool = False) -> Frame[None]:
    """A block: a computation with axes of its own."""

def init() -> Frame[None]:
    """What a reduction does before its first step."""

def where(predicate: ExprLike) -> None:
    """The block runs only where this holds."""

def block_attr(attrs: Mapping[str, Any]) -> None:
    """Annotations of the block."""

def func_attr(attrs: Mapping[str, Any]) -> None:
    """Attributes of the function."""

def func_name(name: str) -> None:
    """The name of a function that is built by calls."""

def arg(name: str, obj: _T) -> _T:
    """A parameter of a function that is built by calls."""

def evaluate(value: ExprLike) -> None:
    """A statement that calculates the value, for what that does."""

def serial(start: ExprLike, stop: ExprLike | None = None, *, annotations: Mapping[str, Any] | None = None) -> Frame[Any]:
    """A loop from `start` (0 when left out) up to, not including, `stop`."""

def parallel(
    start: ExprLike, stop: ExprLike | None = None, annotations: Mapping[str, Any] | None = None
) -> Frame[Any]:
    """A loop whose iterations may run at the same time, on several threads."""

def vectorized(
    start: ExprLike, stop: ExprLike | None = None, annotations: Mapping[str, Any] | None = None
) -> Frame[Any]:
    """A loop that becomes vector instructions."""

def unroll(start: ExprLike, stop: ExprLike | None = None, annotations: Mapping[str, Any] | None = None) -> Frame[Any]:
    """A loop whose body is repeated in the code."""

def thread_binding(
    start: ExprLike,
    stop: ExprLike | str | None = None,
    thread: str | None = None,
    *,
    annotations: Mapping[str, Any] | None = None,
) -> Frame[Any]:
    """A loop whose iterations are the threads of an axis: ``T.thread_binding(32, thread="threadIdx.x")``."""

def grid(*extents: ExprLike | Sequence[ExprLike]) -> Frame[Any]:
    """A nest of serial loops, the first one outermost."""

def While(condition: ExprLike) -> Frame[None]:
    """A loop that runs while the condition holds."""

def If(condition: ExprLike) -> Frame[None]:
    """A branch; T.Then() and T.Else() stand inside."""

def Then() -> Frame[None]:
    """What happens where the condition of T.If holds."""

def Else() -> Frame[None]:
    """What happens where the condition of T.If does not hold."""

def Assert(condition: ExprLike, message: str) -> Frame[None]:
    """What the statements inside rely on."""

def attr(node: Any, attr_key: str, value: Any) -> Frame[None]:
    """An attribute of a node for the statements inside."""

def LetStmt(value: ExprLike, type_annotation: Any = None, *, var: Value | None = None) -> Value:
    """Binds a variable (`var`, or a fresh one) to a value."""

@overload
def let(var: Value, value: ExprLike) -> Frame[Any]:
    """The expression ``let var = value in body``, or without body a scope."""

@overload
def let(var: Value, value: ExprLike, body: ExprLike) -> Value: ...
def env_thread(thread_tag: str, dtype: str = "int32") -> Value:
    """The variable of a thread axis, for T.launch_thread."""

def launch_thread(thread: Value | str, extent: ExprLike) -> Value:
    """The statements inside run on `extent` threads of an axis."""

def match_buffer(
    param: Any,
    shape: Shape | None = None,
    dtype: DType | None = None,
    data: ExprLike | None = None,
    strides: Shape | None = None,
    elem_offset: ExprLike | None = None,
    scope: str = "global",
    align: int = 0,
    offset_factor: int = 0,
    buffer_type: str = "",
    axis_separators: Sequence[int] | None = None,
) -> Buffer:
    """The buffer behind a parameter, or a view of a region inside a block."""

def dense_fixed(length: ExprLike, idtype: DType = "int32") -> _core.Axis:
    """A root axis of sparse buffers: an ordinary dimension."""

def dense_variable(
    parent: _core.Axis, sizes: Sequence[ExprLike], indptr: Any, idtype: DType = "int32"
) -> _core.Axis:
    """A ragged dimension."""

def sparse_fixed(
    parent: _core.Axis,
    sizes: Sequence[ExprLike],
    indices: Any,
    idtype: DType = "int32",
    sorted: builtins.bool = True,
) -> _core.Axis:
    """Equally many coordinates below each position of the parent, as in ELL."""

def sparse_variable(
    parent: _core.Axis,
    sizes: Sequence[ExprLike],
    structure: Sequence[Any],
    idtype: DType = "int32",
    sorted: builtins.bool = True,
) -> _core.Axis:
    """Coordinates as in CSR."""

def attach(axis: _core.Axis, parent: _core.Axis) -> _core.Axis:
    """The positions of an axis below those coordinates that an iteration over another one takes."""

def flatten(
    axes: Sequence[_core.Axis], nnz: ExprLike | None = None, offsets: Any = (), idtype: DType = "int32"
) -> _core.Axis:
    """A root axis that numbers the elements over other axes."""

def fuse(*axes: _core.Axis) -> tuple[_core.Axis, ...]:
    """Axes that an iteration runs through in one loop."""

def match_sparse_buffer(
    param: Any,
    axes: Sequence[_core.Axis],
    dtype: DType = "float32",
    extra_storage: ExprLike | None = None,
    default_value: ExprLike | None = None,
) -> Buffer:
    """The elements of a sparse buffer behind a parameter."""

def alloc_sparse_buffer(
    axes: Sequence[_core.Axis],
    dtype: DType = "float32",
    scope: str = "global",
    default_value: ExprLike | None = None,
    extra_storage: int = 0,
) -> Buffer:
    """A sparse buffer of the function's own."""

def sp_iter(axes: Sequence[_core.Axis | tuple[_core.Axis, ...]], kinds: str, name: str) -> Frame[Any]:
    """Runs for all coordinates that the axes hold."""

def iter(axes: Sequence[_core.Axis | tuple[_core.Axis, ...]], kinds: str, name: str) -> Frame[Any]:
    """Runs for all coordinates that the axes hold."""

def sp_iter_attr(attrs: Mapping[str, Any]) -> None:
    """Annotations of a sparse iteration."""

def iter_attr(attrs: Mapping[str, Any]) -> None:
    """Annotations of a sparse iteration."""

class sp:
    """Axes, sparse buffers and iterations over them."""

    Axis = _core.Axis
    dense_fixed = staticmethod(dense_fixed)
    dense_varied = staticmethod(dense_variable)
    compressed_fixed = staticmethod(sparse_fixed)
    compressed_varied = staticmethod(sparse_variable)
    attach = staticmethod(attach)
    flatten = staticmethod(flatten)
    fuse = staticmethod(fuse)
    match_buffer = staticmethod(match_sparse_buffer)
    alloc_buffer = staticmethod(alloc_sparse_buffer)
    iteration = staticmethod(sp_iter)
    iteration_attr = staticmethod(sp_iter_attr)

def alloc_buffer(
    shape: Shape,
    dtype: DType = "float32",
    data: ExprLike | None = None,
    strides: Shape | None = None,
    elem_offset: ExprLike | None = None,
    scope: str = "global",
    align: int = 0,
    offset_factor: int = 0,
    buffer_type: str = "",
    axis_separators: Sequence[int] | None = None,
) -> Buffer:
    """Memory of the innermost block, or of the function."""

def decl_buffer(
    shape: Shape,
    dtype: DType = "float32",
    data: ExprLike | None = None,
    strides: Shape | None = None,
    elem_offset: ExprLike | None = None,
    scope: str = "global",
    align: int = 0,
    offset_factor: int = 0,
    buffer_type: str = "",
    axis_separators: Sequence[int] | None = None,
) -> Buffer:
    """A buffer on a pointer, or without `data` on memory of its own."""

def allocate(
    extents: Shape,
    dtype: DType,
    scope: str = "global",
    condition: ExprLike | None = None,
    annotations: Mapping[str, Any] | None = None,
) -> Value:
    """A pointer to fresh memory."""

def allocate_const(data: Any, dtype: DType, extents: Shape, annotations: Mapping[str, Any] | None = None) -> Value:
    """A constant array that lives as long as the scope; `data` is an array or nested lists."""

def realize(buffer_slice: Any, storage_scope: str | None = None, condition: ExprLike = True) -> Frame[None]:
    """Memory for a region of a buffer; a scope is said by an attribute around it."""

def reads(*regions: Any) -> None:
    """The regions that the block reads; left out, they are computed from its body."""

def writes(*regions: Any) -> None:
    """The regions that the block writes; left out, they are computed from its body."""

def print(*args: ExprLike | str) -> None:
    """Prints the values on one line when the program runs."""

def iter_var(var: Any, dom: Any, iter_type: str, thread_tag: str = "") -> _core.IterVar:
    """An iteration variable; `dom` may be None."""

def index_map(mapping: Callable[..., Any], *, inverse_index_map: Any = None) -> _core.IndexMap:
    """The map of indices that a function of them says."""

def comm_reducer(combiner: Callable[..., Any], identity: Sequence[Any]) -> Any:
    """A reducer from a function of two values (or of two times as many, for a tuple) and the identity."""

def compute(shape: Shape, fcompute: Callable[..., Any], name: str | None = None, out: Any = None) -> Buffer:
    """A buffer each of whose elements is given by a function of its indices."""

def Range(begin: ExprLike, end: ExprLike) -> _core.Range:
    """The integers from `begin` up to, not including, `end`."""

GlobalVar = _core.GlobalVar
Op = _core.Op
StringImm = _core.StringImm
Ptr: Any
