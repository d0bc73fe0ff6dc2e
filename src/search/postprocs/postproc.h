// Changes to a schedule after all of its decisions are made, before it is built.
#pragma once

#include <memory>
#include <string>

#include "search/part.h"
#include "search/tune_context.h"

namespace tilewright::search {

class Postproc {
 public:
  using Kind = Postproc;
  virtual ~Postproc() = default;
  /// Returns the name that counts of refusals use.
  virtual std::string name() const = 0;
  /// Called once, before the first apply().
  virtual Status initialize(const TuneContext&) { return Ok{}; }
  /// False: this candidate is no good; the schedule may have been changed by then. An error is a refusal too, one that
  /// says why. Several threads may call it at once.
  virtual Result<bool> apply(Schedule& schedule) const = 0;
  virtual std::shared_ptr<Postproc> clone() const = 0;
};

}  // namespace tilewright::search
