#include "schedule/cache_stage.h"

#include <algorithm>
#include <array>

#include "analysis/scope.h"
#include "ir/build.h"
#include "ir/substitute.h"

namespace tilewright::schedule {

Ref<Buffer> make_cache(const Ref<Buffer>& buffer, const std::string& storage_scope) {
  return decl_buffer(buffer->shape, buffer->dtype, buffer->name + "_" + storage_scope, storage_scope);
}

CacheStage copy_stage(const Ref<Buffer>& from, const Ref<Buffer>& to, const std::string& name, const arith::Box& box,
                      arith::Analyzer& analyzer) {
  Block block;
  block.name_hint = name;
  BufferRegion read{from, {}}, write{to, {}};
  std::vector<Expr> indices, values;
  std::vector<std::pair<Ref<Var>, Expr>> loops;
  for (size_t d = 0; d < from->shape.size(); ++d) {
    const Expr& size = from->shape[d];
    DataType dtype = size.dtype();
    bool part = d < box.size() && box[d].is_bounded();
    Expr min = part ? cast(dtype, box[d].min) : zero(dtype);
    Expr extent = part ? analyzer.simplify(cast(dtype, box[d].max) - min + 1) : size;
    Ref<Var> v = var("v" + std::to_string(d), dtype), ax = var("ax" + std::to_string(d), dtype);
    block.iter_vars.push_back(make<IterVar>({range_of(size), v, IterType::kDataPar, ""}));
    indices.push_back(v);
    values.push_back(analyzer.simplify(min + ax));
    loops.emplace_back(ax, extent);
    read.region.push_back(range(v, one(dtype)));
    write.region.push_back(range(v, one(dtype)));
  }
  block.reads = {make<BufferRegion>(std::move(read))};
  block.writes = {make<BufferRegion>(std::move(write))};
  block.body = store(to, load(from, indices), indices);
  CacheStage stage;
  stage.block = make<Block>(std::move(block));
  stage.nest = make<BlockRealize>({.iter_values = values, .predicate = bool_imm(true), .block = stage.block});
  for (size_t d = loops.size(); d-- > 0;) stage.nest = loop(loops[d].first, loops[d].second, std::move(stage.nest));
  return stage;
}

Result<int64_t> resolve_buffer(const Place& block, const std::vector<Ref<BufferRegion>>& regions,
                               const BufferIndex& index, const std::string& method) {
  std::string names;
  for (const Ref<BufferRegion>& region : regions) names += (names.empty() ? "" : ", ") + region->buffer->name;
  std::string hint = names.empty() ? "it has none" : "it has, in this order: " + names;
  if (const int64_t* position = std::get_if<int64_t>(&index)) {
    if (*position >= 0 && *position < static_cast<int64_t>(regions.size())) return *position;
    return refuse(method + "/P1", describe(block) + " has no buffer number " + std::to_string(*position),
                  {block.node()}, hint);
  }
  const std::string& name = std::get<std::string>(index);
  std::optional<int64_t> found;
  for (size_t i = 0; i < regions.size(); ++i) {
    if (regions[i]->buffer->name != name) continue;
    if (found)
      return refuse(method + "/P1", describe(block) + " has several buffers named '" + name + "'", {block.node()},
                    hint);
    found = static_cast<int64_t>(i);
  }
  if (found) return *found;
  return refuse(method + "/P1", describe(block) + " has no buffer named '" + name + "'", {block.node()}, hint);
}

Status check_storage_scope(const Place& block, const std::string& storage_scope, const std::string& method) {
  static constexpr std::array kPrefixes = {"global", "shared", "texture"};
  static constexpr std::array kNames = {"local",
                                        "warp",
                                        "wmma.matrix_a",
                                        "wmma.matrix_b",
                                        "wmma.accumulator",
                                        "amx.tmm",
                                        "m16n8k8.matrixA",
                                        "m16n8k8.matrixB",
                                        "m16n8k8.matrixC",
                                        "metal.simdgroup"};
  bool known =
      std::any_of(kPrefixes.begin(), kPrefixes.end(), [&](const char* p) { return storage_scope.starts_with(p); }) ||
      std::find(kNames.begin(), kNames.end(), storage_scope) != kNames.end();
  if (known) return Ok{};
  return refuse(method + "/P2", "'" + storage_scope + "' is no storage scope", {block.node()},
                "on a CPU: \"global\" (memory) or \"local\" (registers); on a GPU also \"shared\", \"warp\", ...");
}

Result<std::vector<int>> cache_readers(const State& state, const Place& block, const Ref<Buffer>& buffer,
                                       const std::vector<BlockRV>& given, bool all_by_default,
                                       const std::string& method) {
  const Tree& tree = *block.tree;
  const analysis::Scope& scope = analysis::Scope::of(tree.block_at(tree[block.at].scope));
  std::vector<int> readers;
  for (int child : scope.readers(buffer)) {
    int at = tree.block(scope.children()[child]->block->id.value);
    if (at != block.at || method == "cache_read") readers.push_back(at);
  }
  if (given.empty()) return all_by_default ? readers : std::vector<int>{};
  std::vector<int> chosen;
  for (const BlockRV& rv : given) {
    TW_TRY(place, state.find(rv));
    if (place.func != block.func || std::find(readers.begin(), readers.end(), place.at) == readers.end()) {
      return refuse(method + "/P3",
                    describe(place) + " does not read '" + buffer->name + "' in the scope of " + describe(block),
                    {place.node(), block.node()}, "consumer_blocks are readers of the buffer");
    }
    chosen.push_back(place.at);
  }
  return chosen;
}

int outermost_statement(const Tree& tree, int at) {
  int scope = tree[at].scope;
  while (tree[at].parent != scope && !tree.stmt(tree[at].parent).is<SeqStmt>()) at = tree[at].parent;
  // A sequence below loops is not the scope's own.
  int parent = tree[at].parent;
  if (parent != scope && tree[parent].parent != scope) return outermost_statement(tree, parent);
  return at;
}

Stmt with_buffer(const Tree& tree, int block, const Ref<Buffer>& from, const Ref<Buffer>& to) {
  return replace_buffers(tree.stmt(block), {{from, to}});
}

}  // namespace tilewright::schedule
