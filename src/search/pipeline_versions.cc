#include "search/pipeline_versions.h"

#include <algorithm>
#include <numeric>

#include "ir/build.h"
#include "ir/traverse.h"
#include "search/memory_steps.h"

namespace tilewright::search {
namespace {

bool mentions(const Stmt& stmt, const Ref<Buffer>& buffer, bool stores) {
  return any_node(
      stmt, [&](const Ref<BufferStore>& store) { return stores && store->buffer->data == buffer->data; },
      [&](const Ref<BufferLoad>& load) { return !stores && load->buffer->data == buffer->data; });
}

/// A statement of a pipelined loop, with the stages that its parts run in.
struct PipelineStep {
  Stmt stmt;
  int64_t first_stage, last_stage;
};

/// The parts into which a statement of a pipelined loop falls: a loop that is pipelined itself into what is before, in
/// and behind its iterations, a copy by way of registers into load and store.
size_t num_parts(const Stmt& step) {
  if (const For* loop = step.as<For>()) {
    if (loop->annotations.has("software_pipeline_stage")) return 3;
  }
  const bool by_registers = any_node(
      step, [](const Ref<Block>& block) { return block->annotations.has("tir.manifest_shared_memory_local_stage"); });
  return by_registers ? 2 : 1;
}

/// The steps of a pipelined loop, as its list of stages has them: of statements, or of their parts. None of others.
std::vector<PipelineStep> staged_steps(const For& loop) {
  std::vector<int64_t> stages = integer_list(loop.annotations.get("software_pipeline_stage"));
  if (stages.empty()) return {};
  std::vector<Stmt> statements = pipeline_steps(loop.body);
  std::vector<size_t> parts;
  for (const Stmt& statement : statements) parts.push_back(num_parts(statement));
  if (std::accumulate(parts.begin(), parts.end(), size_t{0}) != stages.size()) parts.assign(parts.size(), 1);
  std::vector<PipelineStep> steps;
  auto next = stages.begin();
  for (size_t i = 0; i < statements.size() && stages.end() - next >= static_cast<ptrdiff_t>(parts[i]); ++i) {
    auto [first, last] = std::minmax_element(next, next + static_cast<ptrdiff_t>(parts[i]));
    steps.push_back({statements[i], *first, *last});
    next += static_cast<ptrdiff_t>(parts[i]);
  }
  return steps;
}

}  // namespace

int64_t pipeline_versions(const For& loop, const Ref<Buffer>& buffer) {
  const std::vector<PipelineStep> steps = staged_steps(loop);
  int64_t versions = 1;
  for (const PipelineStep& from : steps) {
    if (!mentions(from.stmt, buffer, true)) continue;
    for (const PipelineStep& to : steps) {
      if (mentions(to.stmt, buffer, false)) versions = std::max(versions, to.last_stage - from.first_stage + 1);
    }
  }
  return versions;
}

}  // namespace tilewright::search
