// Structures of sparse tensors that come from outside: their values, and how they sort.
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>

#include <optional>

#include "analysis/validator.h"
#include "python/bind_structures.h"
#include "python/module.h"
#include "python/node_caster.h"
#include "python/process_exit.h"
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
}

}  // namespace tilewright::python
