// Structures of sparse tensors that come from outside: their values, and how they sort.
#include <nanobind/ndarray.h>

#include <optional>

#include "analysis/validator.h"
#include "python/module.h"
#include "python/node_caster.h"
#include "python/process_exit.h"
#include "runtime/array_memory.h"
#include "runtime/axis_positions.h"
#include "runtime/values.h"
#include "support/diagnostic.h"

namespace tilewright::python {
namespace {

using Integers = nb::ndarray<nb::ro, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Written = nb::ndarray<nb::ndim<1>, nb::c_contig, nb::device::cpu>;

template <class Array>
tw_integers view(const Array& array) {
  const nb::dlpack::dtype type = array.dtype();
  if (type != nb::dtype<int32_t>() && type != nb::dtype<int64_t>())
    throw Exception(argument_error("sparse/index-type", "structure is arrays of int32 or of int64",
                                   "convert them, as by array.astype('int64')"));
  return {array.data(), static_cast<int64_t>(array.shape(0)), type.bits};
}

void need_memory(int32_t code) {
  if (code != TW_OK)
    throw Exception(resource_error("sparse/memory", "no memory for the counters of a structure",
                                   "free some, or do not demand that nonzeros are unique"));
}

nb::tuple examine_values(const Integers& values, int64_t low, int64_t end, const std::optional<Integers>& segments) {
  tw_value_faults faults;
  const tw_integers array = view(values), offsets = segments ? view(*segments) : tw_integers{nullptr, 0, 32};
  need_memory(gil_released([&] { return tw_examine_values(tw_default_ctx(), array, low, end, offsets, &faults); }));
  return nb::make_tuple(faults.outside, faults.descent, faults.repeat);
}

int64_t find_duplicate(const Integers& values, int64_t end, const Integers& segments) {
  int64_t position = -1;
  const tw_integers array = view(values), offsets = view(segments);
  need_memory(gil_released([&] { return tw_find_duplicate(tw_default_ctx(), array, end, offsets, &position); }));
  return position;
}

void sort_by_key(const Integers& keys, Written offsets, Written permutation) {
  const tw_integers array = view(keys), starts = view(offsets), result = view(permutation);
  const int64_t num_keys = starts.count - 1;
  tw_value_faults faults;
  need_memory(
      gil_released([&] { return tw_examine_values(tw_default_ctx(), array, 0, num_keys, {nullptr, 0, 32}, &faults); }));
  if (array.bits != starts.bits || array.bits != result.bits || result.count != array.count || faults.outside >= 0)
    throw Exception(argument_error("sparse/keys",
                                   "keys are less than the number of offsets minus one, and the results "
                                   "are arrays of their type"));
  need_memory(gil_released(
      [&] { return tw_sort_by_key(tw_default_ctx(), array, num_keys, offsets.data(), permutation.data()); }));
}

void sort_by_length(const Integers& segments, const Integers& table, Written offsets, Written permutation) {
  const tw_integers array = view(segments), keys = view(table), starts = view(offsets), result = view(permutation);
  const int64_t num_keys = starts.count - 1;
  tw_value_faults faults;
  need_memory(
      gil_released([&] { return tw_examine_values(tw_default_ctx(), keys, 0, num_keys, {nullptr, 0, 32}, &faults); }));
  if (keys.bits != 32 || keys.count < 1 || array.bits != starts.bits || array.bits != result.bits ||
      result.count != array.count - 1 || faults.outside >= 0)
    throw Exception(argument_error("sparse/keys",
                                   "keys of lengths are of int32 and less than the number of offsets minus one, and "
                                   "the results are arrays of the type of the segments"));
  need_memory(gil_released([&] {
    return tw_sort_by_length(tw_default_ctx(), array, static_cast<const int32_t*>(keys.data), keys.count, num_keys,
                             offsets.data(), permutation.data());
  }));
}

/// Arrays that hold a number for each nonzero; those that are None hold zeros.
struct GivenNumbers {
  const std::optional<Integers>& base;
  int64_t radix;
  const std::optional<Integers>& offset;

  bool have(int64_t nonzeros, int32_t base_bits, int32_t offset_bits) const {
    const runtime::MixedRadix all = numbers(base_bits, offset_bits);
    return all.base.bits == base_bits && all.offset.bits == offset_bits && (!base || all.base.count == nonzeros) &&
           (!offset || all.offset.count == nonzeros);
  }
  runtime::MixedRadix numbers(int32_t base_bits, int32_t offset_bits) const {
    return {base ? view(*base) : tw_integers{nullptr, 0, base_bits}, radix,
            offset ? view(*offset) : tw_integers{nullptr, 0, offset_bits}};
  }
};

Exception wrong_arrays() {
  return Exception(argument_error("sparse/keys", "arrays of nonzeros have different lengths or types"));
}

nb::tuple axis_positions(bool is_compressed, const std::optional<Integers>& base, int64_t radix,
                         const std::optional<Integers>& offset, const Integers& keys, Written positions,
                         Written offsets) {
  const GivenNumbers given{base, radix, offset};
  const tw_integers array = view(keys), placed = view(positions), starts = view(offsets);
  if (placed.count != array.count || starts.count < 1 || starts.bits != placed.bits ||
      !given.have(array.count, placed.bits, array.bits))
    throw wrong_arrays();
  const runtime::AxisKeys axis{given.numbers(placed.bits, array.bits), starts.count - 1, array};
  const runtime::AxisPositions result{positions.data(), offsets.data(), placed.bits};
  const runtime::AxisCount found = gil_released([&] {
    return is_compressed ? runtime::compressed_positions(tw_default_ctx(), axis, result)
                         : runtime::varied_positions(tw_default_ctx(), axis, result);
  });
  need_memory(found.code);
  return nb::make_tuple(found.count, found.fault);
}

int64_t scatter_values(const std::optional<Integers>& base, int64_t radix, const std::optional<Integers>& offset,
                       int64_t nonzeros, const std::optional<Integers>& values, bool verify, Written out) {
  const GivenNumbers given{base, radix, offset};
  const tw_integers written = view(out), stored = values ? view(*values) : tw_integers{nullptr, nonzeros, written.bits};
  const int32_t offset_bits = offset ? view(*offset).bits : written.bits;
  if (stored.count != nonzeros || stored.bits != written.bits || !given.have(nonzeros, written.bits, offset_bits))
    throw wrong_arrays();
  return gil_released([&] {
    return runtime::scatter(tw_default_ctx(), given.numbers(written.bits, offset_bits), nonzeros, stored, verify,
                            out.data(), written.count, written.bits);
  });
}

/// NumPy's description of where arrays get memory (PyDataMem_Handler, NEP 49), whose layout is part of its ABI.
struct NumpyMemory {
  char name[127];
  uint8_t version;
  void* context;
  void* (*allocate)(void*, size_t bytes);
  void* (*allocate_zeros)(void*, size_t count, size_t bytes);
  void* (*resize)(void*, void* memory, size_t bytes);
  void (*release)(void*, void* memory, size_t bytes);
};

NumpyMemory kept_memory = {"tilewright",
                           1,
                           nullptr,
                           [](void*, size_t bytes) { return runtime::acquire_array(bytes, false); },
                           [](void*, size_t count, size_t bytes) -> void* {
                             size_t total = 0;
                             if (__builtin_mul_overflow(count, bytes, &total)) return nullptr;
                             return runtime::acquire_array(total, true);
                           },
                           [](void*, void* memory, size_t bytes) { return runtime::resize_array(memory, bytes); },
                           [](void*, void* memory, size_t) { runtime::release_array(memory); }};

/// Lets NumPy call a handler in this context, and returns the one before: PyDataMem_SetHandler(), which is entry 304 of
/// the table of functions in every version of NumPy that has it.
nb::object set_array_memory(std::optional<nb::object> handler) {
  using SetHandler = PyObject* (*)(PyObject*);
  static void** const functions = [] {
    const nb::module_ numpy = nb::module_::import_("numpy");
    const char* core = nb::hasattr(numpy, "_core") ? "numpy._core._multiarray_umath" : "numpy.core._multiarray_umath";
    const nb::object table = nb::module_::import_(core).attr("_ARRAY_API");
    return static_cast<void**>(PyCapsule_GetPointer(table.ptr(), nullptr));
  }();
  if (!handler) handler = nb::capsule(&kept_memory, "mem_handler");
  PyObject* before = reinterpret_cast<SetHandler>(functions[304])(handler->ptr());
  if (!before) nb::raise_python_error();
  return nb::steal(before);
}

}  // namespace

void bind_structures(nb::module_& m) {
  m.def("validator_of", &analysis::validator_of, "func"_a,
        "A function of the same parameters that checks what a function declares of its arrays; None: it declares "
        "nothing.");
  m.def("examine_values", &examine_values, "values"_a, "low"_a, "end"_a, "segments"_a.none() = nb::none(),
        nb::sig("def examine_values(values: Any, low: int, end: int, segments: Any = None) -> tuple[int, int, int]"),
        "Find the first positions of an array of integers at which a value is not in [low, end), is less than the one\n"
        "before it, and equals the one before it; -1 where there is none. Values of different segments are not\n"
        "compared: segment s is from segments[s] to before segments[s + 1].");
  m.def("find_duplicate", &find_duplicate, "values"_a, "end"_a, "segments"_a,
        nb::sig("def find_duplicate(values: Any, end: int, segments: Any) -> int"),
        "Find the first position of a value in [0, end) that its segment holds earlier, in any order; -1: none.");
  m.def("sort_by_key", &sort_by_key, "keys"_a, "offsets"_a, "permutation"_a,
        nb::sig("def sort_by_key(keys: Any, offsets: Any, permutation: Any) -> None"),
        "Sort positions by keys, stably: permutation[offsets[k]:offsets[k + 1]] are those of key k, ascending.");
  m.def(
      "sort_by_length", &sort_by_length, "segments"_a, "table"_a, "offsets"_a, "permutation"_a,
      nb::sig("def sort_by_length(segments: Any, table: Any, offsets: Any, permutation: Any) -> None"),
      "Sort segments, given by ascending offsets, by the key table[length] of their length, stably; longer ones have\n"
      "the last key. The results are those of sort_by_key().");
  m.def(
      "axis_positions", &axis_positions, "is_compressed"_a, "base"_a.none(), "radix"_a, "offset"_a.none(), "keys"_a,
      "positions"_a, "offsets"_a,
      nb::sig("def axis_positions(is_compressed: bool, base: Any, radix: int, offset: Any, keys: Any, positions: Any, "
              "offsets: Any) -> tuple[int, int]"),
      "Find the position of each nonzero along an axis of a format, below position base * radix + offset of the axis\n"
      "around: with one position for each key that occurs there, or with as many as the largest key there needs. "
      "\nReturn how many there are, and the first nonzero whose key is negative, -1 if there is none. More positions\n"
      "than their type holds are counted only.");
  m.def("scatter_values", &scatter_values, "base"_a.none(), "radix"_a, "offset"_a.none(), "nonzeros"_a,
        "values"_a.none(), "verify"_a, "out"_a,
        nb::sig("def scatter_values(base: Any, radix: int, offset: Any, nonzeros: int, values: Any, verify: bool, "
                "out: Any) -> int"),
        "Store values[i], or i itself, at out[base[i] * radix + offset[i]]. Return the first i that is outside of the\n"
        "array or, with `verify`, whose element holds another value in the end; -1 if there is none.");
  m.def("set_array_memory", &set_array_memory, "handler"_a.none() = nb::none(),
        nb::sig("def set_array_memory(handler: Any = None) -> Any"),
        "Let NumPy take the memory of arrays that this context makes from a handler, and return the one before. None:\n"
        "from memory that stays mapped after arrays are freed.");
  m.def("idle_array_memory", &runtime::idle_array_memory,
        "How many bytes are kept for arrays although no array uses them.");
}

}  // namespace tilewright::python
