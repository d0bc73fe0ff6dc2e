#include "schedule/annotations.h"

#include "ir/build.h"
#include "ir/literal.h"
#include "schedule/edit.h"
#include "schedule/primitive.h"

namespace tilewright::schedule {

const Annotations& annotations_of(const Place& place) {
  return (*place.tree)[place.at].is_loop ? place.loop().annotations : place.block().annotations;
}

Ref<Block> with_annotations(const Place& place, Annotations annotations) {
  TreeEdit edit(*place.tree);
  if ((*place.tree)[place.at].is_loop) {
    For loop = place.loop();
    loop.annotations = std::move(annotations);
    edit.replace(place.at, make(std::move(loop), place.node().span()));
  } else {
    edit.change_block(place.at, [&](Block& block) { block.annotations = annotations; });
  }
  return edit.finish();
}

const Annotations& Annotated::annotations() const {
  const SparseNest* nest = std::get_if<SparseNest>(&where_);
  return nest ? nest->iteration->annotations : annotations_of(std::get<Place>(where_));
}

NodeRef Annotated::node() const {
  const SparseNest* nest = std::get_if<SparseNest>(&where_);
  return nest ? NodeRef(nest->iteration) : std::get<Place>(where_).node();
}

std::string Annotated::describe() const {
  const SparseNest* nest = std::get_if<SparseNest>(&where_);
  return nest ? "the iteration '" + nest->iteration->name_hint + "'" : schedule::describe(std::get<Place>(where_));
}

Plan Annotated::with(const State& state, Annotations annotations) const {
  if (const SparseNest* nest = std::get_if<SparseNest>(&where_)) {
    SparseIteration changed = *nest->iteration;
    changed.annotations = std::move(annotations);
    return give_iteration(state, *nest, std::move(changed));
  }
  const Place& place = std::get<Place>(where_);
  return give_loops(place.func, with_annotations(place, std::move(annotations)), {});
}

Result<Annotated> find_annotated(const State& state, const BlockOrLoop& rv) {
  const BlockRV* block = std::get_if<BlockRV>(&rv);
  if (block && is_iteration(state, *block)) {
    TW_TRY(nest, find_iteration(state, *block, "schedule/expired"));
    return Annotated(std::move(nest));
  }
  TW_TRY(place, state.find(rv));
  return Annotated(place);
}

namespace {

/// Whether a trace can replay the node on any program: a variable would stay that of this program.
bool is_literal(const NodeRef& node) { return node.is<IntImm>() || node.is<FloatImm>() || node.is<StringImm>(); }

}  // namespace

std::optional<NodeRef> annotation_value(const State& state, const Value& value) {
  auto integer = [](int64_t number) -> NodeRef {
    bool fits_int32 = number == static_cast<int32_t>(number);
    return fits_int32 ? i32(number) : i64(number);
  };
  if (auto* number = value.as<int64_t>()) return integer(*number);
  if (auto* truth = value.as<bool>()) return bool_imm(*truth);
  if (auto* real = value.as<double>()) return as_attribute(number_of_python(*real).node);
  if (auto* text = value.as<std::string>()) return string_imm(*text);
  if (auto* sampled = value.as<ExprRV>()) return integer(state.value(*sampled));
  if (auto* node = value.as<NodeRef>(); node && node->defined() && is_literal(*node)) return *node;
  if (auto* list = value.as<Value::List>()) {
    List result;
    for (const Value& item : *list) {
      std::optional<NodeRef> made = annotation_value(state, item);
      if (!made) return std::nullopt;
      result.items.push_back(std::move(*made));
    }
    return make(std::move(result));
  }
  if (auto* dict = value.as<Value::Dict>()) {
    Dict result;
    for (const auto& [key, item] : *dict) {
      std::optional<NodeRef> made = annotation_value(state, item);
      if (!made) return std::nullopt;
      result.items.set(key, std::move(*made));
    }
    return make(std::move(result));
  }
  return std::nullopt;
}

}  // namespace tilewright::schedule
