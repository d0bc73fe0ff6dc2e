#include "target/memory_scope.h"
#include "support/ranges.h"

#include <algorithm>
#include <iterator>

namespace tilewright {
namespace {

constexpr Storage kMemory = Storage::kMemory, kRegisters = Storage::kRegisters;

constexpr MemoryScope kScopes[] = {
#define X(prefix, rank, lanes, on_cpu, tags) {prefix, rank, lanes, on_cpu, tags},
#include "target/memory_scopes.def"
#undef X
};

bool is_lane(const ThreadAxis& axis) { return axis.level == ThreadAxis::Level::kThread && axis.dimension == 0; }

}  // namespace

bool MemoryScope::is_shared_by(const ThreadAxis& axis) const {
  return rank <= axis.rank() || (lanes > 1 && is_lane(axis));
}

bool MemoryScope::joins_threads(const ThreadAxis& axis, int64_t extent) const {
  if (!axis.in_team() || rank == 0 || !is_shared_by(axis)) return false;
  return lanes == 1 || (extent >= 0 && extent <= lanes);
}

std::span<const MemoryScope> memory_scopes() { return kScopes; }

const MemoryScope* find_memory_scope(std::string_view scope) {
  if (scope.empty()) return &kScopes[0];
  const auto* row = find_if(kScopes, [&](const MemoryScope& known) { return scope.starts_with(known.prefix); });
  return row == std::end(kScopes) ? nullptr : row;
}

bool is_memory_scope(std::string_view scope) {
  const MemoryScope* row = find_memory_scope(scope);
  if (!row) return false;
  if (scope.size() <= row->prefix.size()) return true;
  std::string_view wanted = scope.substr(row->prefix.size()), left = row->tags;
  wanted = wanted.substr(0, wanted.find_last_not_of("0123456789") + 1);
  if (wanted.empty()) return true;
  while (!left.empty()) {
    size_t end = std::min(left.find(' '), left.size());
    if (left.substr(0, end) == wanted) return true;
    left.remove_prefix(std::min(end + 1, left.size()));
  }
  return false;
}

const MemoryScope& memory_scope(std::string_view scope) {
  const MemoryScope* row = find_memory_scope(scope);
  return row ? *row : kScopes[0];
}

}  // namespace tilewright
