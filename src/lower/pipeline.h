// From a scheduled module to the lowered form that code generation reads.
//
//   TW_TRY(lowered, lower::lower(module, target));
//
// The lowered form has no blocks, and buffers of one dimension with explicit offsets; vector loops are vector
// operations, and buffers of scope "local" are slots that code generation keeps in registers.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "ir/stmt.h"
#include "ir/verify.h"
#include "lower/pass.h"
#include "support/result.h"
#include "target/target.h"

namespace tilewright::lower {

struct LowerOptions {
  std::string stop_after;  ///< name of the last pass to run; empty: all of them
  /// Called with the module as it came in ("input") and after each pass; null: nobody looks.
  std::function<void(std::string_view pass, const Ref<Module>&)> observe;
#ifdef NDEBUG
  bool verify = false;  ///< check the program after each pass; a broken one is an InternalError
#else
  bool verify = true;
#endif
  /// Refuse a program with a buffer of scope "local" that cannot live in registers ("lower/not-in-registers"), as soon
  /// as that is known.
  bool require_registers = false;
  /// Guard every access: a kernel then returns an error instead of leaving a buffer.
  bool check_bounds = false;
  /// Refuse parallel and vectorized loops whose iterations provably depend on one another.
  bool check_races = true;
  /// Check that each block keeps to its regions, and that all accesses are within their buffers. Off for candidates of
  /// a search: primitives have proved it step by step, and the result is lowered once more with the check.
  bool check_accesses = true;
};

/// A row of the pipeline.
struct Row {
  std::string_view name;
  std::variant<FunctionPass*, ModulePass*> run;  ///< also says what it is run on
  TargetSet targets;                             ///< programs of other targets are not changed
  Stage leaves;                                  ///< stage of the result
  std::string_view reason;                       ///< for its place in the order
};
/// The pipeline, in the order it runs. Functions that take the name of a pass take the one that it had in an earlier
/// version, too.
std::span<const Row> rows();

struct PassTime {
  std::string_view pass;
  double seconds;
};

/// Optional output of a lowering.
struct LowerReport {
  std::vector<PassTime> times;
  std::vector<Promotion> promotions;
  std::vector<Note> notes;
};

Result<Ref<Module>> lower(const Ref<Module>& module, const Target& target, const LowerOptions& options = {},
                          LowerReport* report = nullptr);

/// Lowers with other rows.
Result<Ref<Module>> lower_by(std::span<const Row> rows, const Ref<Module>& module, const Target& target,
                             const LowerOptions& options = {}, LowerReport* report = nullptr);

/// One pass alone, on a program that has all that it needs; ScriptError "verify/..." for one of another stage.
Result<Ref<Module>> run_pass(std::string_view name, const Ref<Module>& module, const Target& target);

/// Checks that the result of a pass is a program of its stage. A failure is a bug of Tilewright; the message names the
/// pass. `accesses`: as LowerOptions::check_accesses.
Status check_pass(const Ref<Module>& module, std::string_view pass, Stage stage, bool accesses = true);

}  // namespace tilewright::lower
