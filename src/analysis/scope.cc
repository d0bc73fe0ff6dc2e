#include "analysis/scope.h"

#include <algorithm>

#include "ir/traverse.h"

namespace tilewright::analysis {
namespace {

void unite(std::vector<int>& sorted, int item) {
  auto it = std::lower_bound(sorted.begin(), sorted.end(), item);
  if (it == sorted.end() || *it != item) sorted.insert(it, item);
}

}  // namespace

const NodeBase* bare_statement_in(const Stmt& stmt) {
  const NodeBase* found = nullptr;
  auto bare = [&](const NodeRef& node) {
    if (!found) found = node.get();
  };
  visit(
      stmt, [](const Ref<BlockRealize>&, Visitor&) {}, [&](const Ref<BufferStore>& store, Visitor&) { bare(store); },
      [&](const Ref<BufferLoad>& load, Visitor&) { bare(load); },
      [&](const Ref<Evaluate>& evaluate, Visitor&) {
        if (!evaluate->value.is<IntImm>()) bare(evaluate);
      },
      [&](const Ref<Prefetch>& prefetch, Visitor&) { bare(prefetch); },
      [&](const Ref<While>& loop, Visitor& walk) {
        bare(loop);
        walk.descend(loop);
      });
  return found;
}

const Scope& Scope::of(const Block& block) {
  return block.id.memo.get<Scope>([&] {
    Scope scope;
    for (const Def<Buffer>& buffer : block.alloc_buffers) scope.allocated_.push_back(buffer->data.get());
    for (const Ref<MatchBufferRegion>& match : block.match_buffers) {
      scope.views_.emplace_back(match->buffer->data.get(), match->source->buffer->data.get());
    }
    scope.bare_ = bare_statement_in(block.body);
    visit(block.body, [&](const Ref<BlockRealize>& realize, Visitor&) { scope.children_.push_back(&*realize); });
    auto touches = [&](const std::vector<Ref<BufferRegion>>& regions, const NodeBase* data) {
      return scope.touches(regions, data);
    };
    auto depend = [&](int src, int dst, DependenceKind kind, const NodeBase* data) {
      scope.dependences_.push_back({src, dst, kind, data});
    };
    for (int dst = 0; dst < static_cast<int>(scope.children_.size()); ++dst) {
      const Block& reader = *scope.children_[dst]->block;
      for (int src = 0; src < dst; ++src) {
        const Block& earlier = *scope.children_[src]->block;
        for (const Ref<BufferRegion>& write : earlier.writes) {
          const NodeBase* data = scope.memory(write->buffer);
          if (touches(reader.reads, data)) depend(src, dst, DependenceKind::kFlow, data);
          if (touches(reader.writes, data)) depend(src, dst, DependenceKind::kOutput, data);
        }
        for (const Ref<BufferRegion>& read : earlier.reads) {
          const NodeBase* data = scope.memory(read->buffer);
          if (touches(reader.writes, data)) depend(src, dst, DependenceKind::kAnti, data);
        }
      }
    }
    return scope;
  });
}

const NodeBase* Scope::memory(const Ref<Buffer>& buffer) const {
  const NodeBase* data = buffer->data.get();
  for (size_t i = views_.size(); i-- > 0;) {
    if (views_[i].first == data) data = views_[i].second;
  }
  return data;
}

bool Scope::touches(const std::vector<Ref<BufferRegion>>& regions, const NodeBase* data) const {
  return std::any_of(regions.begin(), regions.end(),
                     [&](const Ref<BufferRegion>& region) { return memory(region->buffer) == data; });
}

int Scope::child(uint64_t identity) const {
  for (size_t i = 0; i < children_.size(); ++i) {
    if (children_[i]->block->id.value == identity) return static_cast<int>(i);
  }
  return -1;
}

std::vector<int> Scope::consumers(int src) const {
  std::vector<int> result;
  for (const Dependence& d : dependences_) {
    if (d.src == src && d.kind == DependenceKind::kFlow) unite(result, d.dst);
  }
  return result;
}

std::vector<int> Scope::producers(int dst) const {
  std::vector<int> result;
  for (const Dependence& d : dependences_) {
    if (d.dst == dst && d.kind == DependenceKind::kFlow) unite(result, d.src);
  }
  return result;
}

std::vector<int> Scope::writers(const Ref<Buffer>& buffer) const {
  std::vector<int> result;
  for (size_t i = 0; i < children_.size(); ++i) {
    if (touches(children_[i]->block->writes, memory(buffer))) result.push_back(static_cast<int>(i));
  }
  return result;
}

std::vector<int> Scope::readers(const Ref<Buffer>& buffer) const {
  std::vector<int> result;
  for (size_t i = 0; i < children_.size(); ++i) {
    if (touches(children_[i]->block->reads, memory(buffer))) result.push_back(static_cast<int>(i));
  }
  return result;
}

bool Scope::is_output(int child) const {
  const auto& writes = children_[child]->block->writes;
  return std::any_of(writes.begin(), writes.end(), [&](const Ref<BufferRegion>& write) {
    return std::find(allocated_.begin(), allocated_.end(), memory(write->buffer)) == allocated_.end();
  });
}

}  // namespace tilewright::analysis
