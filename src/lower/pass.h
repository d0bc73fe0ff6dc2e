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
#include "lower/memory/registers.h"
#include "support/result.h"
#include "target/target.h"

namespace tilewright::lower {

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
