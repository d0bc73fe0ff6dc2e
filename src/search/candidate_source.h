// Where the candidates of a search come from.
#pragma once

#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

#include "schedule/schedule.h"

namespace tilewright::search {

/// One point of a space.
struct Drawn {
  Ref<Module> module;
  std::string trace;  ///< JSON
};

struct Draw {
  uint64_t seed = 0, attempt = 0;
  /// The trace (JSON) of a good candidate whose neighbor is wanted; empty: any point of the space.
  std::string parent;
};

/// The decisions that the drawing steps take over from the parent, in their order; the one that makes the difference is
/// none, and drawn anew. Empty without a parent.
Result<std::vector<schedule::Value>> given_decisions(const Draw& request);

class CandidateSource {
 public:
  virtual ~CandidateSource() = default;
  /// A point, nothing when an earlier attempt drew the same decisions, or a refusal, which is data. Depends on nothing
  /// but its argument and, for what is left out, the earlier ones.
  virtual Result<std::optional<Drawn>> draw(const Draw& request) = 0;
};

/// Replays a trace with other decisions: all fresh, or those of the parent but for one.
class TraceSource final : public CandidateSource {
 public:
  TraceSource(Ref<Module> module, schedule::Trace trace);
  Result<std::optional<Drawn>> draw(const Draw& request) override;

 private:
  Ref<Module> module_;
  schedule::Trace trace_;
  schedule::Trace draws_;  // as far as its last drawing step
  std::unordered_set<std::string> drawn_;
};

/// The program with the steps of a trace (JSON) applied.
Result<Drawn> redraw(const Ref<Module>& module, const std::string& trace);

}  // namespace tilewright::search
