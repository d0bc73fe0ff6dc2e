#include "ir/tensor_intrin.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <shared_mutex>

#include "ir/build.h"
#include "ir/structural.h"
#include "ir/substitute.h"
#include "ir/traverse.h"
#include "ir/wide_indices.h"
#include "support/ranges.h"

namespace tilewright {
namespace {

using Entry = std::shared_ptr<const TensorIntrin>;

/// How one spells the implementation of an intrinsic, and what it says then.
struct Known {
  Entry intrin;
  Ref<PrimFunc> text, desc;
};

struct Table {
  std::shared_mutex mutex;
  std::map<std::string, Entry, std::less<>> by_name;
  std::multimap<Hash128, Known> by_implementation;
  std::function<void(std::string_view)> source;
};
Table& table() {
  static Table* const the_table = new Table;  // used until the process ends
  return *the_table;
}

/// Returns the computation of a block as a function of its views, independent of the memory that they refer to. Blocks
/// with equal computations have equal functions.
Ref<PrimFunc> as_function(const Block& block, const std::vector<Ref<Buffer>>& views) {
  PrimFunc func;
  for (const Ref<Buffer>& view : views) {
    Ref<Var> param = var("p", DataType::handle());
    func.params.emplace_back(param);
    func.buffer_map.emplace_back(param, view);
  }
  Block inside;
  inside.alloc_buffers = block.alloc_buffers;
  inside.match_buffers.assign(block.match_buffers.begin(), block.match_buffers.end());
  inside.init = block.init;
  inside.body = block.body;
  func.ret_type = make<TupleType>({});
  func.body = realized(make(std::move(inside)));
  VarMap moved;
  for (const Ref<Buffer>& view : views) {
    if (view->scope() != "global") moved[view->data] = pointer_var(view->name, view->dtype);
  }
  Ref<PrimFunc> result = make(std::move(func));
  return moved.empty() ? result : substitute(result, moved);
}

std::vector<Ref<Buffer>> buffers_of(const PrimFunc& func) {
  std::vector<Ref<Buffer>> buffers;
  for (const Ref<Var>& param : func.params) buffers.push_back(func.buffer_of(param));
  return buffers;
}

Ref<PrimFunc> implementation(const Ref<PrimFunc>& impl) {
  return as_function(*TensorIntrin::block_of(impl), buffers_of(*impl));
}

Ref<PrimFunc> with_64_bit_indices(const Ref<PrimFunc>& func) {
  try {
    return with_wide_indices(func);
  } catch (const Exception&) {
    return {};  // it uses its indices in a way that both sizes do not share
  }
}

Status check_signature(const TensorIntrin& intrin) {
  auto no = [&](const std::string& why) -> Status {
    return argument_error("tensor-intrin/signature", "the tensor intrinsic '" + intrin.name + "': " + why,
                          "description and implementation take the same buffers, in the same order");
  };
  for (const Ref<PrimFunc>& func : {intrin.desc, intrin.impl}) {
    const char* which = func == intrin.desc ? "the description" : "the implementation";
    if (!func.defined()) return no(std::string(which) + " is missing");
    if (!TensorIntrin::block_of(func).defined()) return no(std::string(which) + " is not one block without axes");
    for (const Ref<Buffer>& buffer : buffers_of(*func)) {
      if (!buffer.defined()) return no(std::string(which) + " has a parameter that is not a buffer");
    }
  }
  std::vector<Ref<Buffer>> desc = buffers_of(*intrin.desc), impl = buffers_of(*intrin.impl);
  if (desc.size() != impl.size()) {
    return no("the description has " + std::to_string(desc.size()) + " parameters, the implementation " +
              std::to_string(impl.size()));
  }
  for (size_t i : indices_of(desc)) {
    bool same = desc[i]->dtype == impl[i]->dtype && desc[i]->shape.size() == impl[i]->shape.size();
    for (size_t d = 0; same && d < desc[i]->shape.size(); ++d) {
      auto a = const_int(desc[i]->shape[d]), b = const_int(impl[i]->shape[d]);
      same = a.has_value() && b.has_value() ? *a == *b : a.has_value() == b.has_value();
    }
    if (!same) {
      return no("parameter " + std::to_string(i) + " ('" + desc[i]->name +
                "') has another shape or type in the implementation");
    }
  }
  return Ok{};
}

bool calls_machine(const Stmt& body) {
  return any_node(body, [](const Ref<Call>& call) { return is_machine_call(*call); });
}

/// The description of the intrinsic that the block stands for; null if it is none.
Ref<PrimFunc> description_of(const Block& block, std::vector<Ref<Buffer>>& views) {
  Table& t = table();
  std::shared_lock lock(t.mutex);
  if (t.by_name.empty()) return {};
  // Views that the implementation makes itself stand behind those of its parameters.
  Block rest = block;
  for (size_t count = block.match_buffers.size(); count > 0; --count) {
    views.assign(count, {});
    for (size_t i = 0; i < count; ++i) views[i] = block.match_buffers[i]->buffer;
    rest.match_buffers.assign(block.match_buffers.begin() + static_cast<ptrdiff_t>(count), block.match_buffers.end());
    Ref<PrimFunc> func = as_function(rest, views);
    auto [begin, end] = t.by_implementation.equal_range(structural_hash(func));
    for (auto it = begin; it != end; ++it) {
      if (structural_equal(func, it->second.text)) return it->second.desc;
    }
  }
  return {};
}

}  // namespace

Ref<Block> TensorIntrin::block_of(const Ref<PrimFunc>& func) {
  const BlockRealize* realize = func->body.as<BlockRealize>();
  return realize && realize->block->iter_vars.empty() ? realize->block : Ref<Block>();
}

Status register_tensor_intrin(TensorIntrin intrin, bool replace) {
  TW_RETURN_IF_ERROR(check_signature(intrin));
  intrin.wide_desc = with_64_bit_indices(intrin.desc);
  intrin.wide_impl = with_64_bit_indices(intrin.impl);
  auto entry = std::make_shared<const TensorIntrin>(std::move(intrin));
  std::vector<Known> texts = {{entry, implementation(entry->impl), entry->desc}};
  if (entry->wide_desc.defined() && entry->wide_impl.defined()) {
    texts.push_back({entry, implementation(entry->wide_impl), entry->wide_desc});
  }
  Table& t = table();
  std::unique_lock lock(t.mutex);
  auto [it, fresh] = t.by_name.try_emplace(entry->name, entry);
  if (!fresh) {
    if (!replace) {
      return argument_error("tensor-intrin/name", "the tensor intrinsic '" + entry->name + "' is registered already",
                            "override=True replaces it");
    }
    std::erase_if(t.by_implementation, [&](const auto& known) { return known.second.intrin == it->second; });
    it->second = entry;
  }
  for (Known& known : texts) t.by_implementation.emplace(structural_hash(known.text), std::move(known));
  return Ok{};
}

std::shared_ptr<const TensorIntrin> find_tensor_intrin(std::string_view name) {
  Table& t = table();
  auto known = [&]() -> Entry {
    std::shared_lock lock(t.mutex);
    return find_value_or(t.by_name, name, nullptr);
  };
  static thread_local bool asking = false;  // the source looks up names, too
  Entry found = known();
  if (found || asking || !t.source) return found;
  asking = true;
  t.source(name);
  asking = false;
  return known();
}

void set_tensor_intrin_source(std::function<void(std::string_view)> source) { table().source = std::move(source); }

std::vector<std::string> tensor_intrin_names() {
  Table& t = table();
  std::shared_lock lock(t.mutex);
  std::vector<std::string> names;
  for (const auto& [name, entry] : t.by_name) names.push_back(name);
  return names;
}

bool is_machine_call(const Call& call) {
  switch (intrinsic_of(call)) {
    case Intrinsic::kUnknown:
    case Intrinsic::k_call_pure_extern:
    case Intrinsic::k_call_llvm_pure_intrin:
      return !call.op.is<GlobalVar>();
    case Intrinsic::k_ret:
    case Intrinsic::k_print:
      return false;
    default:
      return intrinsic_row(intrinsic_of(call)).effect == Effect::kUpdateState;
  }
}

Ref<Block> described(const Ref<Block>& block) {
  if (block->match_buffers.empty() || !calls_machine(block->body)) return block;
  std::vector<Ref<Buffer>> views;
  Ref<PrimFunc> desc = description_of(*block, views);
  if (!desc.defined()) return block;
  desc = renew_defs(desc);
  Ref<Block> desc_block = TensorIntrin::block_of(desc);
  std::unordered_map<NodeRef, Ref<Buffer>> by_view;
  for (size_t i : indices_of(views)) by_view[desc->buffer_of(desc->params[i])] = views[i];
  Block copy = *block;
  copy.match_buffers.resize(views.size());
  copy.alloc_buffers = desc_block->alloc_buffers;
  copy.init = desc_block->init.defined() ? replace_buffers(desc_block->init, by_view) : Stmt();
  copy.body = replace_buffers(desc_block->body, by_view);
  return make(std::move(copy), block.span());
}

Ref<Module> described(const Ref<Module>& module) {
  bool any = false;
  {
    Table& t = table();
    std::shared_lock lock(t.mutex);
    any = !t.by_name.empty();
  }
  if (!any) return module;
  return rewrite(module, [&](const Ref<Block>& block, Rewriter& r) -> Stmt {
    Ref<Block> description = described(block);
    return description == block ? Stmt(r.descend(block)) : Stmt(description);
  });
}

}  // namespace tilewright
