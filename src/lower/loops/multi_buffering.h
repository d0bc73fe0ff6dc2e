// Buffers of which a pipelined loop keeps several versions, one for each iteration that overlaps with others. An
// iteration uses version `iteration % count`.
#pragma once

#include <functional>
#include <optional>
#include <unordered_map>

#include "ir/fragments.h"
#include "ir/stmt.h"
#include "support/result.h"

namespace tilewright::lower {

/// A buffer with an additional first dimension, the number of the version.
struct Versions {
  Ref<Buffer> buffer;
  int64_t count = 1;
  Expr stride;  ///< distance between two versions, in elements
  Expr size;    ///< elements of one version, without padding
};

/// The multi-versioned buffers of one loop, and the rewriting of statements that use them.
class MultiBuffering {
 public:
  explicit MultiBuffering(const Stmt& body) : fragments_(body) {}

  /// Forgets the buffers of another loop.
  void clear() { versions_.clear(); }
  /// Gives `buffer` `count` versions. Returns the buffer that replaces it.
  Ref<Buffer> add(const Ref<Buffer>& buffer, int64_t count);
  /// Replaces each multi-versioned buffer in the step by the version of the step's iteration. Error
  /// "lower/pipeline-order" for a call that takes a pointer to such a buffer and is not known to this file.
  Result<Stmt> use_versions(const Ref<For>& loop, const Stmt& step);

 private:
  using VersionOfIteration = std::function<Expr(const Versions&)>;
  Expr use_versions_in_call(const Ref<Call>& call, const VersionOfIteration& version_of_iteration);
  void fail_pointer(const Ref<Call>& call);
  const Versions* find(const NodeRef& data) const;

  Fragments fragments_;
  std::unordered_map<NodeRef, Versions> versions_;  ///< by data pointer of the original buffer
  std::optional<Diagnostic> error_;
};

}  // namespace tilewright::lower
