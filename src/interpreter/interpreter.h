// The reference interpreter: what a program means, executed directly.
//
// It runs any program at any stage: blocks with their init, views, vector expressions, predicates, functions that call
// one another, thread-bound loops (as teams of threads with barriers where the program has them). It is the judge of
// all transformations, so it follows the letter: integers wrap, every floating-point operation rounds to its type, and
// what a compiled program would leave undefined is an error:
//
//   interpret/out-of-bounds   an access outside of its buffer
//   interpret/uninitialized   a read of memory that nothing has written
//   interpret/race            iterations of a parallel, vectorized or thread-bound loop that depend on each other
//   interpret/axis            a block axis bound to a value outside of its domain
//   interpret/assertion, interpret/divide-by-zero, interpret/barrier, ...
//
// A message names block, buffer and index, and the diagnostic carries the node, for the user's own line.
//
// Programs become compact code over numbered slots (compile.cc), which a loop executes
// (run.cc): some tens of millions of operations per second, and no recursion at run time.
#pragma once

#include <algorithm>
#include <functional>
#include <string_view>
#include <variant>
#include <vector>

#include "ir/stmt.h"
#include "support/ranges.h"
#include "support/result.h"

namespace tilewright {

/// Memory of the caller, in the layout of a buffer (ir/numeric.h). Counts are in elements.
struct TensorArg {
  void* data = nullptr;
  DataType dtype;
  std::vector<int64_t> shape;
  std::vector<int64_t> strides = {};  ///< empty: row-major and compact
  bool writable = true;

  /// In elements.
  int64_t stride(size_t dimension) const { return strides.empty() ? compact_stride(dimension) : strides[dimension]; }
  /// The stride of a row-major and compact argument of this shape.
  int64_t compact_stride(size_t dimension) const {
    int64_t stride = 1;
    for (size_t d = dimension + 1; d < shape.size(); ++d) stride *= shape[d];
    return stride;
  }
  /// Whether the stride of a dimension leads to a second element.
  bool uses_stride(size_t dimension) const { return shape[dimension] > 1 && !is_contained(shape, 0); }
};
struct ScalarArg {
  DataType dtype;
  int64_t as_int = 0;   ///< integers, bool
  double as_float = 0;  ///< floating point
};
using InterpretArg = std::variant<TensorArg, ScalarArg>;

struct InterpretOptions {
  uint64_t max_steps = 0;      ///< loop iterations and calls; 0: no limit
  double timeout_seconds = 0;  ///< 0: no limit
  bool check_races = true;
  bool check_uninitialized = true;
  /// The semantics of vectorized loops in a lowered program: all lanes execute a statement before the next one, so a
  /// lane may read what a later lane writes. In a program that is not lowered, iterations are independent.
  bool lanes_in_step = false;
  int vscale = 2;  ///< value of T.vscale()
  /// Called every few milliseconds; returning false stops the program.
  std::function<bool()> keep_going = {};
  /// Where T.print writes; standard output if empty.
  std::function<void(std::string_view)> print = {};
  /// Receives the value that the function returns, if any.
  ScalarArg* returned = nullptr;
};

/// Runs function `name` of the module on arguments in the order of its parameters.
Status interpret(const Ref<Module>& module, std::string_view name, const std::vector<InterpretArg>& args,
                 const InterpretOptions& options = {});

}  // namespace tilewright
