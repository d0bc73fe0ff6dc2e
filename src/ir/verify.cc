#include "ir/verify.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "ir/atomic_operation.h"
#include "ir/buffer_domain.h"
#include "ir/build.h"
#include "ir/call_operands.h"
#include "ir/kind_cases.h"
#include "ir/refuse_at.h"
#include "ir/sizes.h"
#include "ir/sparse.h"
#include "ir/strides.h"
#include "ir/structural.h"
#include "ir/substitute.h"
#include "ir/traverse.h"
#include "ir/undefined.h"
#include "support/ranges.h"
#include "target/thread_axis.h"

namespace tilewright {
namespace {

class Verifier {
 public:
  Verifier(Stage stage, Rules rules) : stage_(stage), rules_(rules) {}
  void node(const NodeRef& n);
  std::optional<Diagnostic> failure;
  bool has_atomics = false;

 private:
  void fail(const char* code, std::string message, const NodeRef& where, std::string hint = {});
  void report(const char* code, const std::optional<UndefinedUse>& use) {
    if (use) fail(code, use->message, use->where, use->hint);
  }
  void fail(std::optional<SparseFault> fault) {
    if (fault) fail(fault->code, std::move(fault->message), fault->where, std::move(fault->hint));
  }
  /// Every child in order, without scopes.
  void children(const NodeRef& n) {
    for_each_child(n, [&](const NodeRef& child, Role) { node(child); });
  }
  template <class T>
  void each(const std::vector<T>& items) {
    for (const T& item : items) node(item);
  }

  // scopes
  enum class Repeat { kNever, kAllowed };
  bool is_defined(const NodeRef& n) const { return defined_.contains(n.get()); }
  void define(const NodeRef& n, const NodeRef& where, Repeat repeat = Repeat::kNever);
  void undefine(const NodeRef& n) { defined_.erase(n.get()); }
  /// Variables of a buffer that its declaration brings in.
  void define_sizes(const Buffer& buffer, const NodeRef& where);
  void undefine_sizes(size_t known);
  void define_buffer(const Ref<Buffer>& buffer, const NodeRef& where);
  void undefine_buffer(const Ref<Buffer>& buffer);
  void use_buffer(const Ref<Buffer>& buffer, const NodeRef& where);
  void check_pointer(const Buffer& buffer, const NodeRef& where);
  /// Memory of the caller for a buffer of the callee.
  void pass_memory(const NodeRef& argument, const Buffer& wanted, const std::string& callee, const NodeRef& where);
  void check_size(const std::string& name, DataType type, const std::vector<Expr>& extents, const NodeRef& where);

  // kinds
  void module(const Module& module, const NodeRef& where);
  void prim_func(const PrimFunc& func, const NodeRef& where);
  void for_loop(const For& loop, const NodeRef& where);
  void block_realize(const BlockRealize& realize, const NodeRef& where);
  void block(const Ref<Block>& block);
  void axes(const BlockRealize* realize, const Block& block, const NodeRef& where);
  void match_buffer(const MatchBufferRegion& match, const NodeRef& where);
  void region(const BufferRegion& region, const NodeRef& where);
  void attribute(const AttrStmt& attr, const NodeRef& where);
  struct Thread {
    std::string tag;
    Ref<Var> var;
    Expr min, extent;
    NodeRef scope;  ///< the innermost block with axes around
  };
  void launch(const Thread& thread, const NodeRef& where, const Stmt& body);
  void check_same_threads(const Thread& outer, const Thread& inner, const NodeRef& where, const Stmt& body);
  void call(const Call& call, const NodeRef& where);
  void call_function(const Call& call, const std::string& name, const NodeRef& where);
  void check_returned(const Call& call, const NodeRef& where);
  void call_intrinsic(const Call& call, const NodeRef& where);
  void annotations(const Annotations& values, const NodeRef& where);
  template <class T>
  void binding(const T& n, const NodeRef& where, Repeat repeat);
  void lambda(const std::vector<Def<Var>>& first, const std::vector<Def<Var>>& second, const std::vector<Expr>& results,
              const NodeRef& where);
  void allocation(const Ref<Var>& pointer, const std::vector<Expr>& extents, const Annotations& attrs, const Stmt& body,
                  const NodeRef& where);
  void decl_buffer(const DeclBuffer& decl, const NodeRef& where);
  void realize(const BufferRealize& realize, const NodeRef& where);
  void sparse_iteration(const SparseIteration& iteration, const NodeRef& where);
  /// False: a statement without rules of its own.
  bool stmt(const NodeRef& n);

  std::vector<Ref<Var>> sizes_;  ///< sizes that enclosing matched buffers define
  Stage stage_;
  Rules rules_;
  bool closed_ = false;  // inside a function: nothing is free
  Type result_;          // result type of the function
  const Module* module_ = nullptr;
  std::unordered_set<const NodeBase*> defined_, ever_;
  std::unordered_map<const NodeBase*, Ref<Buffer>> memory_;  ///< buffers that pointers were declared with
  std::unordered_set<uint64_t> blocks_;
  NodeRef scope_;                    // the innermost block with axes around
  std::vector<Thread> nest_;         // thread loops around
  std::vector<Thread> kernel_;       // all thread loops within the outermost of them
  std::vector<Ref<Axis>> iterated_;  // axes of the enclosing sparse iterations
};

std::string quoted(const std::string& name) { return "'" + name + "'"; }

void Verifier::fail(const char* code, std::string message, const NodeRef& where, std::string hint) {
  if (!failure) failure = refuse_at(where, code, std::move(message), std::move(hint));
}

// ---- scopes ----------------------------------------------------------------------------------------------------

void Verifier::define(const NodeRef& n, const NodeRef& where, Repeat repeat) {
  bool fresh = ever_.insert(n.get()).second;
  bool inside = !defined_.insert(n.get()).second;
  if (inside || (!fresh && repeat == Repeat::kNever)) {
    const Var* var = n.as<Var>();
    std::string what =
        var ? "variable " + quoted(var->name_hint) : "buffer " + quoted(n.is<Buffer>() ? n.as<Buffer>()->name : "?");
    fail("verify/redefined", what + " is defined a second time", where,
         "a copy of code needs variables and buffers of its own (renew_defs)");
  }
}

void Verifier::check_pointer(const Buffer& buffer, const NodeRef& where) {
  const PointerType* pointer = buffer.data->type_annotation.as<PointerType>();
  const PrimType* element = pointer ? pointer->element_type.as<PrimType>() : nullptr;
  if (!element || element->dtype.is_void()) return;
  // Lanes may differ: vectors are stored as their elements.
  DataType expected = buffer.dtype.is_bool() ? DataType::int_(8) : buffer.dtype.element();
  DataType actual = element->dtype.is_bool() ? DataType::int_(8) : element->dtype.element();
  if (actual != expected) {
    fail("verify/pointer",
         "buffer " + quoted(buffer.name) + " of " + buffer.dtype.str() + " uses a pointer to " + element->dtype.str(),
         where);
  }
}

/// Whatever counts the bytes of a buffer does so in 64 bits.
void Verifier::check_size(const std::string& name, DataType type, const std::vector<Expr>& extents,
                          const NodeRef& where) {
  constexpr int64_t kMostBytes = int64_t{1} << 60;
  int64_t bytes = int64_t{type.bytes()} * type.lanes;
  bool too_large = false;
  for (const Expr& extent : extents) {
    const IntImm* size = extent.as<IntImm>();
    if (!size) continue;
    if (size->value == 0) return;
    too_large |= __builtin_mul_overflow(bytes, size->value, &bytes) || bytes > kMostBytes;
  }
  if (too_large) fail("verify/size", "buffer " + quoted(name) + " has more bytes than there are addresses", where);
}

void Verifier::define_sizes(const Buffer& buffer, const NodeRef& where) {
  for_each_size(buffer, [&](const Size& size) {
    if (is_defined(size.var)) return;
    define(size.var, where);
    sizes_.push_back(size.var);
  });
}

/// Undefines the sizes that were defined since there were `known` sizes.
void Verifier::undefine_sizes(size_t known) {
  for (; sizes_.size() > known; sizes_.pop_back()) undefine(sizes_.back());
}

void Verifier::define_buffer(const Ref<Buffer>& buffer, const NodeRef& where) {
  check_pointer(*buffer, where);
  check_size(buffer->name, buffer->dtype, buffer->shape, where);
  each(buffer->shape);
  each(buffer->strides);
  node(buffer->elem_offset);
  each(buffer->axes);
  fail(fault_of(buffer));
  if (!is_defined(buffer->data)) {
    define(buffer->data, where);
    memory_[buffer->data.get()] = buffer;
  }
  define(buffer, where);
}

void Verifier::undefine_buffer(const Ref<Buffer>& buffer) {
  undefine(buffer);
  undefine(buffer->data);
}

void Verifier::use_buffer(const Ref<Buffer>& buffer, const NodeRef& where) {
  if (!closed_ || is_defined(buffer)) return;
  if (is_defined(buffer->data)) {
    check_pointer(*buffer, where);
    each(buffer->shape);
    each(buffer->strides);
    return node(buffer->elem_offset);
  }
  fail("verify/buffer", "buffer " + quoted(buffer->name) + " is used where nothing declares it", where,
       "make it a parameter, or allocate it around all its uses");
}

// ---- functions -------------------------------------------------------------------------------------------------

void Verifier::module(const Module& module, const NodeRef& where) {
  const Module* outer = std::exchange(module_, &module);
  annotations(module.attrs, where);
  for (const auto& [name, func] : module.functions) {
    if (!func.defined()) {
      fail("verify/function", "function " + quoted(name) + " of the module is missing", where);
    } else {
      node(func);
    }
  }
  module_ = outer;
}

void Verifier::prim_func(const PrimFunc& func, const NodeRef& where) {
  bool outer = std::exchange(closed_, true);
  const Type result = std::exchange(result_, func.ret_type);
  annotations(func.attrs, where);
  NodeRef symbol = func.attrs.get("global_symbol");
  if (symbol.defined() && !symbol.is<StringImm>()) fail("verify/function", "global_symbol is not a string", where);
  size_t known_sizes = sizes_.size();
  for (const Ref<Var>& param : func.params) define(param, where);
  for (const auto& [param, buffer] : func.buffer_map) {
    bool known = is_contained(func.params, param);
    if (!known || !param.dtype().is_handle()) {
      fail("verify/function",
           "buffer " + quoted(buffer->name) + " is matched to " + quoted(param->name_hint) +
               ", which is not a parameter of type handle",
           where);
    }
    auto matches = [&](const auto& entry) { return entry.first == param; };
    if (std::ranges::count_if(func.buffer_map, matches) > 1) {
      fail("verify/function", "parameter " + quoted(param->name_hint) + " is matched to two buffers", where);
    }
    define_sizes(*buffer, where);
  }
  for (const auto& [param, buffer] : func.buffer_map) {
    auto defined = [&](const Ref<Var>& v) { return is_defined(v); };
    if (buffer->axes.empty()) report("verify/undefined", undefined_size(buffer, defined));
  }
  // The axes of sparse buffers stand on buffers of other parameters.
  for (bool sparse : {false, true}) {
    for (const auto& [param, buffer] : func.buffer_map) {
      if (buffer->axes.empty() != sparse) define_buffer(buffer, buffer);
    }
  }
  node(func.ret_type);
  each(func.axes);
  const BlockRealize* root = func.body.as<BlockRealize>();
  bool has_root = root && root->block->iter_vars.empty() && root->iter_values.empty();
  if (!has_root && stage_ != Stage::kLowered) {
    NodeRef stray;
    visit(func.body, [&](const Ref<BlockRealize>& inner, Visitor&) { stray = inner; });
    if (stray.defined()) {
      fail("verify/root", "the function has blocks, and its body is not one root block without axes", stray,
           "put the body into `with T.block(\"root\"):`");
    }
  }
  node(func.body);
  for (const auto& [param, buffer] : func.buffer_map) undefine_buffer(buffer);
  undefine_sizes(known_sizes);
  for (const Ref<Var>& param : func.params) undefine(param);
  result_ = result;
  closed_ = outer;
}

void Verifier::annotations(const Annotations& values, const NodeRef& where) {
  for (const auto& [key, value] : values.entries()) {
    bool is_value = value.defined() &&
                    (value.sort() == Sort::kExpr || value.is<List>() || value.is<Dict>() || value.is<IndexMap>() ||
                     value.is<TensorData>() || value.is<BufferRegion>() || value.is<PrimType>() || value.is<Range>());
    if (!is_value) {
      fail("verify/annotation",
           "annotation " + quoted(key) + " is " + (value.defined() ? "a " + kind_name(value.kind()) : "null") +
               ", which is not a value",
           where);
    } else {
      node(value);
    }
  }
}

// ---- loops and threads -----------------------------------------------------------------------------------------

/// A loop bound again to an axis that a loop around is bound to means the same threads.
void Verifier::check_same_threads(const Thread& outer, const Thread& inner, const NodeRef& where, const Stmt& body) {
  std::string both = quoted(inner.tag) + " is bound to two loops, one inside the other, ";
  bool same_range = same_number(outer.min, inner.min) && same_number(outer.extent, inner.extent);
  if (!same_range) {
    return fail("verify/thread", both + "with different ranges", where,
                "the inner loop runs one iteration on each thread: give it the range of the outer one");
  }
  if (outer.scope != inner.scope) {
    return fail("verify/thread", both + "and a block stands between them", where,
                "fuse the loops, or bind one of them to another axis");
  }
  if (outer.var != inner.var && uses_var(body, outer.var)) {
    fail("verify/thread", both + "and what stands below uses the variable of the outer one", where,
         "use the variable of the inner loop: on each thread, it has the same value");
  }
}

void Verifier::launch(const Thread& thread, const NodeRef& where, const Stmt& body) {
  const std::string& tag = thread.tag;
  auto axis = ThreadAxis::parse(tag);
  if (!axis) {
    fail("verify/thread", quoted(tag) + " is not a thread axis", where, "use blockIdx.x, threadIdx.x, vthread.x, ...");
  }
  auto same_tag = [&](const Thread& other) { return other.tag == tag; };
  bool unique = rules_ == Rules::kAll && axis && axis->is_unique();
  auto around = std::find_if(nest_.rbegin(), nest_.rend(), same_tag);
  if (unique && around != nest_.rend()) check_same_threads(*around, thread, where, body);
  auto other = find_if(kernel_, same_tag);
  int64_t extent = const_int(thread.extent).value_or(-1);
  int64_t known = other == kernel_.end() ? extent : const_int(other->extent).value_or(-1);
  if (unique && extent >= 0 && known >= 0 && extent != known) {
    fail("verify/thread",
         quoted(tag) + " has the extent " + std::to_string(extent) + " here and " + std::to_string(known) +
             " in another loop of the same kernel",
         where, "a kernel is launched with one extent for each axis");
  }
  nest_.push_back(thread);
  kernel_.push_back(thread);
  node(body);
  nest_.pop_back();
  if (nest_.empty()) kernel_.clear();
}

void Verifier::for_loop(const For& loop, const NodeRef& where) {
  node(loop.min);
  node(loop.extent);
  annotations(loop.annotations, where);
  define(loop.loop_var, where);
  if (loop.kind == ForKind::kThreadBinding) {
    const Ref<Var>& thread = loop.thread_binding->var;
    bool fresh = !is_defined(thread);
    if (fresh) define(thread, where, Repeat::kAllowed);
    launch({loop.thread_binding->thread_tag, loop.loop_var, loop.min, loop.extent, scope_}, where, loop.body);
    if (fresh) undefine(thread);
  } else {
    node(loop.body);
  }
  undefine(loop.loop_var);
}

void Verifier::attribute(const AttrStmt& attr, const NodeRef& where) {
  const IterVar* thread = attr.node.as<IterVar>();
  bool launches = attr.attr_key == "thread_extent" || attr.attr_key == "virtual_thread";
  node(attr.value);
  if (!thread || !launches || !attr.value.defined() || attr.value.sort() != Sort::kExpr) {
    // A realization declares its buffer, and the attribute that says its scope stands around it.
    const BufferRealize* realized = attr.attr_key == "realize_scope" ? attr.body.as<BufferRealize>() : nullptr;
    if (attr.node.defined() && !(realized && attr.node == realized->buffer)) node(attr.node);
    return node(attr.body);
  }
  bool fresh = !is_defined(thread->var);
  if (fresh) define(thread->var, where, Repeat::kAllowed);
  const auto& extent = static_cast<const Expr&>(attr.value);
  launch({thread->thread_tag, thread->var, zero(extent.dtype()), extent, scope_}, where, attr.body);
  if (fresh) undefine(thread->var);
}

// ---- blocks ----------------------------------------------------------------------------------------------------

void Verifier::axes(const BlockRealize* realize, const Block& block, const NodeRef& where) {
  for (size_t i : indices_of(block.iter_vars)) {
    const IterVar& axis = *block.iter_vars[i];
    const std::string name = quoted(axis.var->name_hint);
    if (axis.iter_type != IterType::kDataPar && axis.iter_type != IterType::kCommReduce &&
        axis.iter_type != IterType::kOrdered && axis.iter_type != IterType::kOpaque) {
      fail("verify/axis",
           "axis " + name + " of block " + quoted(block.name_hint) + " is neither spatial, reduce, scan nor opaque",
           where);
    }
    if (!axis.dom.defined()) {
      fail("verify/axis", "axis " + name + " of block " + quoted(block.name_hint) + " has no domain", where);
      continue;
    }
    report("verify/axis", dependent_domain(axis, realize, block));
    node(axis.dom);
    DataType type = axis.var.dtype();
    if (axis.dom->extent.dtype() != type || (realize && realize->iter_values[i].dtype() != type)) {
      fail("verify/axis",
           "axis " + name + " is " + type.str() + ", its domain " + axis.dom->extent.dtype().str() +
               (realize ? " and its binding " + realize->iter_values[i].dtype().str() : ""),
           where);
    }
  }
  for (const Ref<IterVar>& axis : block.iter_vars) define(axis->var, where);
}

void Verifier::region(const BufferRegion& region, const NodeRef& where) {
  use_buffer(region.buffer, where);
  each(region.region);
  if (region.region.size() != region.buffer->shape.size()) {
    fail("verify/region",
         "a region of " + std::to_string(region.region.size()) + " dimensions of buffer " +
             quoted(region.buffer->name) + ", which has " + std::to_string(region.buffer->shape.size()),
         where);
  }
}

void Verifier::match_buffer(const MatchBufferRegion& match, const NodeRef& where) {
  region(*match.source, match.source);
  if (match.buffer->shape.size() > match.source->region.size() || match.buffer->dtype != match.source->buffer->dtype) {
    fail("verify/region",
         "buffer " + quoted(match.buffer->name) + " cannot be a view of that region of " +
             quoted(match.source->buffer->name) + ": dimensions or types differ",
         where);
  }
  define_sizes(*match.buffer, where);
  define_buffer(match.buffer, where);
}

void Verifier::block(const Ref<Block>& block) {
  if (!blocks_.insert(block->id.value).second) {
    fail("verify/block", "block " + quoted(block->name_hint) + " occurs in two places", block,
         "a copy of a block needs an identity of its own (renew_defs)");
  }
  size_t known_sizes = sizes_.size();
  for (const Ref<Buffer>& buffer : block->alloc_buffers) define_buffer(buffer, buffer);
  for (const Ref<MatchBufferRegion>& match : block->match_buffers) match_buffer(*match, match);
  for (const auto* regions : {&block->reads, &block->writes}) {
    for (const Ref<BufferRegion>& r : *regions) region(*r, r);
  }
  annotations(block->annotations, block);
  if (auto fault = find_fault(block)) fail("verify/domain", std::move(fault->message), fault->where, fault->hint);
  NodeRef outer = std::exchange(scope_, block->iter_vars.empty() ? scope_ : NodeRef(block));
  node(block->init);
  for (const Ref<IterVar>& axis : block->iter_vars) {
    bool may_differ = rules_ == Rules::kLanguage || axis->iter_type != IterType::kCommReduce || !block->init.defined();
    if (may_differ || !uses_var(block->init, axis->var)) continue;
    fail("verify/axis",
         "the init of block " + quoted(block->name_hint) + " depends on its reduction axis " +
             quoted(axis->var->name_hint),
         block, "an init runs once, before the reduction: it can depend on spatial axes only");
  }
  node(block->body);
  scope_ = outer;
  for (const Ref<IterVar>& axis : block->iter_vars) undefine(axis->var);
  for (const Ref<Buffer>& buffer : block->alloc_buffers) undefine_buffer(buffer);
  for (const Ref<MatchBufferRegion>& match : block->match_buffers) undefine_buffer(match->buffer);
  undefine_sizes(known_sizes);
}

void Verifier::block_realize(const BlockRealize& realize, const NodeRef& where) {
  each(realize.iter_values);
  node(realize.predicate);
  axes(&realize, *realize.block, where);
  block(realize.block);
}

// ---- calls -----------------------------------------------------------------------------------------------------

void Verifier::call_function(const Call& call, const std::string& name, const NodeRef& where) {
  if (!module_) return;  // the callee is unknown outside a module
  Func func = module_->get(name);
  const PrimFunc* callee = func.as<PrimFunc>();
  if (!func.defined()) return fail("verify/call", "the module has no function " + quoted(name), where);
  if (!callee) return;
  if (callee->params.size() != call.args.size()) {
    return fail("verify/call",
                quoted(name) + " takes " + std::to_string(callee->params.size()) + " arguments and is called with " +
                    std::to_string(call.args.size()),
                where);
  }
  for (size_t i : indices_of(call.args)) {
    DataType wanted = callee->params[i].dtype();
    if (call.args[i].sort() != Sort::kExpr) {
      return fail("verify/call", "argument " + std::to_string(i) + " of " + quoted(name) + " is not a value", where);
    }
    if (call.args[i].get()->dtype != wanted) {
      fail("verify/call",
           "argument " + std::to_string(i) + " of " + quoted(name) + " is " + call.args[i].get()->dtype.str() +
               ", and the parameter " + wanted.str(),
           where);
    }
    for (const auto& [param, buffer] : callee->buffer_map) {
      if (param == callee->params[i]) pass_memory(call.args[i], *buffer, name, where);
    }
  }
}

namespace {

/// Elements of a compact buffer of a known shape.
std::optional<int64_t> known_elements(const Buffer& buffer) {
  if (!buffer.strides.empty() || !is_const_int(buffer.elem_offset, 0)) return std::nullopt;
  return known_product(buffer.dtype.lanes, buffer.shape);
}

}  // namespace

void Verifier::pass_memory(const NodeRef& argument, const Buffer& wanted, const std::string& callee,
                           const NodeRef& where) {
  auto* found = find_value(memory_, argument.get());
  if (!found) return;
  const Buffer& given = **found;
  const std::string what =
      "the memory of " + quoted(given.name) + ", which " + quoted(callee) + " takes for " + quoted(wanted.name) + ", ";
  if (given.dtype.element() != wanted.dtype.element()) {
    return fail("verify/call", what + "holds " + given.dtype.str() + " and not " + wanted.dtype.str(), where);
  }
  auto has = known_elements(given), needs = known_elements(wanted);
  if (has && needs && *has < *needs) {
    fail("verify/call", what + "has " + std::to_string(*has) + " of the " + std::to_string(*needs) + " elements",
         where);
  }
}

/// A returned value has the result type of the function.
void Verifier::check_returned(const Call& call, const NodeRef& where) {
  if (call.args.size() != 1 || call.args[0].sort() != Sort::kExpr || !closed_) return;
  const std::string type = call.args[0].get()->dtype.str();
  const PrimType* result = result_.as<PrimType>();
  if (!result) {
    return fail("verify/return", "the function returns a value of type " + type + ", and says no type of its result",
                where, "write it behind the parameters, def f(...) -> T." + type + ":, or store the value to a buffer");
  }
  if (result->dtype != call.args[0].get()->dtype) {
    fail("verify/return",
         "the function returns a value of type " + type + ", and its result is said to be " + result->dtype.str(),
         where, "cast it: T.Cast(\"" + result->dtype.str() + "\", ...)");
  }
}

void Verifier::call_intrinsic(const Call& call, const NodeRef& where) {
  const Intrinsic intrinsic = intrinsic_of(call);
  if (auto wrong = wrong_operands(call)) return fail("verify/intrinsic", std::move(*wrong), where);
  if (intrinsic == Intrinsic::k_ret) check_returned(call, where);
  has_atomics |= is_atomic(intrinsic);
}

void Verifier::call(const Call& call, const NodeRef& where) {
  const GlobalVar* callee = call.op.as<GlobalVar>();
  callee ? call_function(call, callee->name_hint, where) : call_intrinsic(call, where);
  each(call.args);
}

// ---- dispatch --------------------------------------------------------------------------------------------------

/// Kinds that bind a variable over their last part: the rest is checked before.
template <class T>
void Verifier::binding(const T& n, const NodeRef& where, Repeat repeat) {
  node(n.value);
  define(n.var, where, repeat);
  node(n.body);
  undefine(n.var);
}

void Verifier::lambda(const std::vector<Def<Var>>& first, const std::vector<Def<Var>>& second,
                      const std::vector<Expr>& results, const NodeRef& where) {
  for (const auto* vars : {&first, &second}) {
    for (const Ref<Var>& var : *vars) define(var, where, Repeat::kAllowed);
  }
  each(results);
  for (const auto* vars : {&first, &second}) {
    for (const Ref<Var>& var : *vars) undefine(var);
  }
}

void Verifier::allocation(const Ref<Var>& pointer, const std::vector<Expr>& extents, const Annotations& attrs,
                          const Stmt& body, const NodeRef& where) {
  each(extents);
  annotations(attrs, where);
  define(pointer, where);
  node(body);
  undefine(pointer);
}

void Verifier::decl_buffer(const DeclBuffer& decl, const NodeRef& where) {
  const Ref<Buffer>& buffer = decl.buffer;
  node(buffer->data);
  each(buffer->shape);
  each(buffer->strides);
  node(buffer->elem_offset);
  check_pointer(*buffer, where);
  define(buffer, where);
  node(decl.body);
  undefine(buffer);
}

void Verifier::realize(const BufferRealize& realize, const NodeRef& where) {
  each(realize.bounds);
  node(realize.condition);
  bool fresh = !is_defined(realize.buffer);
  if (fresh) define_buffer(realize.buffer, where);
  node(realize.body);
  if (fresh) undefine_buffer(realize.buffer);
}

void Verifier::sparse_iteration(const SparseIteration& iteration, const NodeRef& where) {
  annotations(iteration.annotations, where);
  fail(fault_of(iteration, iterated_, where));
  size_t around = iterated_.size();
  for (const Ref<SpIterVar>& iter : iteration.iter_vars) {
    node(iter->axis);
    define(iter->var, where);
    iterated_.push_back(iter->axis);
  }
  node(iteration.init);
  node(iteration.body);
  for (const Ref<SpIterVar>& iter : iteration.iter_vars) undefine(iter->var);
  iterated_.resize(around);
}

bool Verifier::stmt(const NodeRef& n) {
  switch (n.kind()) {
    case Kind::kLetStmt:
      binding(*n.as<LetStmt>(), n, Repeat::kNever);
      return true;
    case Kind::kAttrStmt:
      attribute(*n.as<AttrStmt>(), n);
      return true;
    case Kind::kBufferStore: {
      const BufferStore& store = *n.as<BufferStore>();
      use_buffer(store.buffer, n);
      each(store.indices);
      node(store.value);
      node(store.predicate);
      return true;
    }
    case Kind::kAllocate: {
      const Allocate& allocate = *n.as<Allocate>();
      check_size(allocate.buffer_var->name_hint, allocate.dtype, allocate.extents, n);
      node(allocate.condition);
      allocation(allocate.buffer_var, allocate.extents, allocate.annotations, allocate.body, n);
      return true;
    }
    case Kind::kAllocateConst: {
      const AllocateConst& allocate = *n.as<AllocateConst>();
      allocation(allocate.buffer_var, allocate.extents, allocate.annotations, allocate.body, n);
      return true;
    }
    case Kind::kDeclBuffer:
      decl_buffer(*n.as<DeclBuffer>(), n);
      return true;
    case Kind::kBufferRealize:
      realize(*n.as<BufferRealize>(), n);
      return true;
    case Kind::kSeqStmt:
      if (n.as<SeqStmt>()->seq.size() < 2) {
        fail("verify/sequence", "a sequence of " + std::to_string(n.as<SeqStmt>()->seq.size()) + " statements", n,
             "build sequences with seq(), which leaves one statement as it is");
      }
      return false;
    case Kind::kFor:
      for_loop(*n.as<For>(), n);
      return true;
    case Kind::kBlock:
      fail("verify/block", "block " + quoted(n.as<Block>()->name_hint) + " stands outside of a BlockRealize", n);
      return true;
    case Kind::kBlockRealize:
      block_realize(*n.as<BlockRealize>(), n);
      return true;
    case Kind::kSparseIteration:
      sparse_iteration(*n.as<SparseIteration>(), n);
      return true;
    case Kind::kIfThenElse:
    case Kind::kWhile:
    case Kind::kAssertStmt:
    case Kind::kEvaluate:
    case Kind::kPrefetch:
#define X TW_CASE_UNLESS_STMT
#include "ir/kinds.def"
#undef X
      return false;
  }
  return false;
}

void Verifier::node(const NodeRef& n) {
  if (!n.defined() || failure) return;
  if (!kind_allowed(n.kind(), stage_)) return fail(misplaced(n, stage_));
  switch (n.kind()) {
    case Kind::kModule:
      return module(*n.as<Module>(), n);
    case Kind::kPrimFunc:
      return prim_func(*n.as<PrimFunc>(), n);
    case Kind::kVar:
      if (closed_ && !is_defined(n))
        report("verify/undefined", undefined_var(n.borrow<Var>(), ever_.contains(n.get())));
      return;
    case Kind::kBuffer:
      return use_buffer(n.borrow<Buffer>(), n);
    case Kind::kBufferLoad: {
      const BufferLoad& load = *n.as<BufferLoad>();
      use_buffer(load.buffer, n);
      each(load.indices);
      return node(load.predicate);
    }
    case Kind::kBufferRegion:
      return region(*n.as<BufferRegion>(), n);
    case Kind::kCall:
      return call(*n.as<Call>(), n);
    case Kind::kLet:
      return binding(*n.as<Let>(), n, Repeat::kAllowed);
    case Kind::kCommReducer: {
      const CommReducer& reducer = *n.as<CommReducer>();
      each(reducer.identity_element);
      return lambda(reducer.lhs, reducer.rhs, reducer.result, n);
    }
    case Kind::kIndexMap:
      lambda(n.as<IndexMap>()->initial_indices, {}, n.as<IndexMap>()->final_indices, n);
      return node(n.as<IndexMap>()->inverse_index_map);
#define X TW_CASE_OF_STMT
#include "ir/kinds.def"
#undef X
      if (!stmt(n)) children(n);
      return;
      // Kinds without rules of their own.
    case Kind::kIntImm:
    case Kind::kFloatImm:
    case Kind::kStringImm:
    case Kind::kCast:
    case Kind::kAdd:
    case Kind::kSub:
    case Kind::kMul:
    case Kind::kDiv:
    case Kind::kMod:
    case Kind::kFloorDiv:
    case Kind::kFloorMod:
    case Kind::kMin:
    case Kind::kMax:
    case Kind::kEQ:
    case Kind::kNE:
    case Kind::kLT:
    case Kind::kLE:
    case Kind::kGT:
    case Kind::kGE:
    case Kind::kAnd:
    case Kind::kOr:
    case Kind::kNot:
    case Kind::kSelect:
    case Kind::kRamp:
    case Kind::kBroadcast:
    case Kind::kShuffle:
    case Kind::kOp:
    case Kind::kGlobalVar:
    case Kind::kPrimType:
    case Kind::kPointerType:
    case Kind::kTupleType:
    case Kind::kRange:
    case Kind::kIterVar:
    case Kind::kMatchBufferRegion:
    case Kind::kList:
    case Kind::kDict:
    case Kind::kTensorData:
    case Kind::kSpIterVar:
      return children(n);
    case Kind::kAxis:
      fail(fault_of(n.cast<Axis>()));
      children(n);
  }
}

}  // namespace

Status verify(const NodeRef& node, Stage stage, Rules rules) {
  Verifier verifier(stage, rules);
  if (node.defined()) with_stack_for(node.depth(), [&] { verifier.node(node); });
  if (verifier.failure) return std::move(*verifier.failure);
  return verifier.has_atomics ? verify_atomics(node) : Status(Ok{});
}

}  // namespace tilewright
