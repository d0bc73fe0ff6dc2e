#include "ir/node.h"

#include <array>
#include <vector>

namespace tilewright {
namespace {

struct KindRow {
  Sort sort;
  Stage first, last;
};
using enum Stage;
constexpr KindRow row(Sort sort, Stage first = kSparse, Stage last = kLowered) { return {sort, first, last}; }
constexpr KindRow kKindRows[] = {
#define X(name, sort, ...) row(Sort::k##sort __VA_OPT__(, ) __VA_ARGS__),
#include "ir/kinds.def"
#undef X
};

}  // namespace

const std::string& kind_name(Kind kind) {
  static const std::string names[] = {
#define X(name, ...) #name,
#include "ir/kinds.def"
#undef X
  };
  return names[static_cast<int>(kind)];
}
Sort kind_sort(Kind kind) { return kKindRows[static_cast<int>(kind)].sort; }
std::string_view stage_name(Stage stage) {
  switch (stage) {
    case Stage::kSparse:
      return "sparse";
    case Stage::kScheduled:
      return "scheduled";
    case Stage::kLowered:
      return "lowered";
  }
  return {};
}
bool kind_allowed(Kind kind, Stage stage) {
  const KindRow& row = kKindRows[static_cast<int>(kind)];
  return row.first <= stage && stage <= row.last;
}

void NodeBase::destroy(const NodeBase* node) {
  // Children whose count falls to zero while a node is freed wait here, so a chain of any length frees in a loop.
  struct Waiting {
    std::array<const NodeBase*, 64> first;
    size_t count;
    std::vector<const NodeBase*> rest;
  };
  // A plain pointer: reading it takes no check whether it was initialized.
  thread_local Waiting* current = nullptr;
  Waiting*& draining = current;
  if (draining) {
    if (draining->count < draining->first.size()) {
      draining->first[draining->count++] = node;
    } else {
      draining->rest.push_back(node);
    }
    return;
  }
  Waiting waiting;
  waiting.count = 0;
  draining = &waiting;
  delete node;
  for (;;) {
    const NodeBase* next = nullptr;
    if (!waiting.rest.empty()) {
      next = waiting.rest.back();
      waiting.rest.pop_back();
    } else if (waiting.count > 0) {
      next = waiting.first[--waiting.count];
    } else {
      break;
    }
    delete next;
  }
  draining = nullptr;
}

std::shared_ptr<const void> keep(const NodeRef& node) {
  const NodeBase* pointer = node.get();
  if (!pointer) return nullptr;
  pointer->retain();
  return std::shared_ptr<const void>(pointer, [](const void* p) { static_cast<const NodeBase*>(p)->release(); });
}

NodeRef kept(const std::shared_ptr<const void>& pointer) {
  return NodeRef(static_cast<const NodeBase*>(pointer.get()));
}

}  // namespace tilewright
