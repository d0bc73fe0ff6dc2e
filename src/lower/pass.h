// Types of all lowering passes. A pass is a free function from function to function.
#pragma once

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "analysis/size_limits.h"
#include "arith/analyzer.h"
#include "ir/stmt.h"
#include "support/result.h"
#include "target/target.h"

namespace tilewright::lower {

/// Whether a buffer of scope "local" is in registers: the search refuses candidates whose tiles are not.
struct Promotion {
  std::string function, buffer;
  bool promoted = false;
  int registers = 0;   ///< vector registers that its values occupy at once, if promoted
  std::string reason;  ///< why not
  SpanId span = 0;
};

/// A note for the user about a correct program, such as a loop that could not be vectorized.
struct Note {
  std::string code, function, message;
  SpanId span = 0;  ///< span of the loop, the block or the buffer
};

/// Shared state of passes: options, and what they report.
struct PassContext {
  const Target& target;
  std::string function;  ///< name of the function being lowered; empty while the module is
  bool called = false;   ///< another function of the module calls it
  bool check_bounds = false, check_races = true;
  std::vector<Promotion> promotions;
  std::vector<Note> notes;
  /// size limits by function, from before the first pass
  std::map<std::string, std::vector<analysis::SizeLimit>> size_limits;
  /// The loops that the program marks as vectorized: the name of the variable, and the location in the user's text.
  std::set<std::pair<std::string, SpanId>> vectorized_loops = {};
};

using PassResult = Result<Ref<PrimFunc>>;
/// The types of passes. A function pass sees one function at a time. A module pass may add, replace and remove
/// functions, as the split into host and device functions does.
using FunctionPass = PassResult(const Ref<PrimFunc>& func, PassContext& context);
using ModulePass = Result<Ref<Module>>(const Ref<Module>& module, PassContext& context);

/// Returns the bytes in all vector registers of a CPU, or in the registers of one GPU thread.
inline int64_t register_bytes(const Target& target) {
  if (target.is_in(TargetSet::kGpu)) return int64_t{255} * 4;
  return int64_t{target.vector_bits} / 8 * target.vector_registers;
}
/// Whether the buffer is private to one thread (registers, on a CPU).
bool is_local(const Buffer& buffer);
bool is_local(const Allocate& allocate);
/// Returns why a buffer of scope "local" cannot live in registers, however it is accessed; empty if its size allows it.
std::string why_no_registers(const Allocate& allocate, const Target& target);
/// Whether the allocation is a buffer of scope "local" that could live in registers.
inline bool fits_registers(const Allocate& allocate, const Target& target) {
  return is_local(allocate) && why_no_registers(allocate, target).empty();
}

/// Lets the analyzer assume that argument sizes are nonnegative.
void assume_sizes(const PrimFunc& func, arith::Analyzer& analyzer);

/// Returns the statement with its body replaced by `change(body)`.
template <class T, class F>
Stmt around_changed(const Ref<T>& s, F&& change) {
  T copy = *s;
  copy.body = change(copy.body);
  return make(std::move(copy), s.span());
}

}  // namespace tilewright::lower
