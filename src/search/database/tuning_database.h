// Interface of a database of measurements to strategies.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "schedule/trace.h"

namespace tilewright::search {

/// When two programs count as the same.
enum class ModuleEquality {
  kStructural,
  kIgnoreConstants,  ///< constant tensors by dtype and shape alone ("ignore-ndarray")
  kAnchorBlock,      ///< by the block with the most work alone ("anchor-block")
};

/// One measured candidate. `run_secs` empty: not measured.
struct TuningRecord {
  schedule::Trace trace;
  std::vector<double> run_secs;
};

class TuningDatabase {
 public:
  virtual ~TuningDatabase() = default;
  virtual ModuleEquality module_equality() const = 0;
  /// The best records of a program, best first, at most `count`.
  virtual Result<std::vector<TuningRecord>> top_k(const Ref<Module>& module, size_t count) = 0;
};

}  // namespace tilewright::search
