// From a scheduled module to the lowered form that code generation reads.
//
//   TW_TRY(lowered, lower::lower(module, target));
//
// The lowered form has no blocks, and buffers of one dimension with explicit offsets; vector loops are vector
// operations, and buffers of scope "local" are slots that code generation keeps in registers.
#pragma once

#include <functional>
#include <string>
#include <string_view>
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
};

struct PassTime {
  std::string_view pass;
  double seconds;
};

/// What else there is to know about a lowering.
struct LowerReport {
  std::vector<PassTime> times;
  std::vector<Promotion> promotions;
  std::vector<Note> notes;
};

Result<Ref<Module>> lower(const Ref<Module>& module, const Target& target, const LowerOptions& options = {},
                          LowerReport* report = nullptr);

/// What a pass made is a program of its stage; if not, that is a defect of ours, and the message names the pass.
Status check_pass(const Ref<Module>& module, std::string_view pass, Stage stage);

struct PassInfo {
  std::string_view name;
  std::string_view reason;  ///< for its place in the order
};
/// In the order they run.
std::vector<PassInfo> list_passes();

}  // namespace tilewright::lower
