// A small change of the decisions of a good candidate.
#pragma once

#include <memory>
#include <optional>

#include "search/part.h"
#include "search/tune_context.h"

namespace tilewright::search {

class Mutator {
 public:
  using Kind = Mutator;
  virtual ~Mutator() = default;
  virtual std::string name() const = 0;
  /// Called once, before the first apply().
  virtual Status initialize(const TuneContext&) { return Ok{}; }
  /// The trace, without what postprocessors did, with a decision changed; none where there is nothing to change.
  /// Depends on nothing but its arguments and what initialize() saw. Several threads may call it at once.
  virtual Result<std::optional<Trace>> apply(const Trace& trace, Random& random) const = 0;
  virtual std::shared_ptr<Mutator> clone() const = 0;
};

}  // namespace tilewright::search
