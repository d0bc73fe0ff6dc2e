#include "search/module_equality.h"

#include "analysis/workload.h"
#include "ir/build.h"
#include "ir/structural.h"
#include "ir/traverse.h"

namespace tilewright::search {
namespace {

constexpr std::pair<ModuleEquality, std::string_view> kEqualityNames[] = {
    {ModuleEquality::kStructural, "structural"},
    {ModuleEquality::kIgnoreConstants, "ignore-ndarray"},
    {ModuleEquality::kAnchorBlock, "anchor-block"},
};

/// Constant tensors by type and shape alone.
Ref<Module> without_values(const Ref<Module>& module) {
  if (!has_node<AllocateConst>(module)) return module;
  return rewrite(module, [](const Ref<TensorData>& data, Rewriter&) -> NodeRef {
    return make<TensorData>({data->dtype, data->shape, std::string(data->bytes.size(), '\0')});
  });
}

/// The operations on floats and on integers that are data of a statement, as in a function of its own.
double work_of(const Stmt& stmt) {
  PrimFunc func;
  func.ret_type = make<TupleType>({});
  func.body = stmt;
  analysis::Workload work = analysis::analyze_workload(make(std::move(func)));
  return work.flops + work.int_ops;
}

struct InitCandidate {
  Ref<Block> block;
  Stmt nest;  ///< nest from the outermost loop around it in its scope
};

std::vector<InitCandidate> blocks_with_init(const Ref<Module>& module) {
  std::vector<InitCandidate> blocks;
  Stmt nest;
  visit(
      module,
      [&](const Ref<For>& loop, Visitor& v) {
        Stmt before = nest;
        if (!nest.defined()) nest = loop;
        v.descend(loop);
        nest = before;
      },
      [&](const Ref<BlockRealize>& realize, Visitor& v) {
        Stmt before = nest;
        if (realize->block->init.defined()) blocks.push_back({realize->block, nest.defined() ? nest : Stmt(realize)});
        v.descend(realize);
        nest = before;
      },
      [&](const Ref<Block>& block, Visitor& v) {
        Stmt before = nest;
        nest = {};
        v.descend(block);
        nest = before;
      });
  return blocks;
}

}  // namespace

Result<ModuleEquality> parse_module_equality(std::string_view name) {
  for (const auto& [equality, known] : kEqualityNames) {
    if (name == known) return equality;
  }
  return argument_error("search/equality", "there is no equality of modules '" + std::string(name) + "'",
                        "known: structural, ignore-ndarray, anchor-block");
}

Ref<Block> find_anchor_block(const Ref<Module>& module) {
  std::vector<InitCandidate> found = blocks_with_init(module);
  if (found.size() == 1) return found[0].block;
  Ref<Block> best;
  double most = -1;
  for (const InitCandidate& candidate : found) {
    double work = work_of(candidate.nest);
    if (work <= most) continue;
    most = work;
    best = candidate.block;
  }
  return best;
}

Hash128 module_hash(const Ref<Module>& module, ModuleEquality equality) {
  if (equality == ModuleEquality::kStructural) return structural_hash(module);
  Ref<Module> plain = without_values(module);
  Ref<Block> anchor = equality == ModuleEquality::kAnchorBlock ? find_anchor_block(plain) : Ref<Block>();
  return anchor.defined() ? structural_hash(anchor) : structural_hash(plain);
}

Hash128 operator_hash(const Ref<Module>& module) {
  return structural_hash(rewrite(
      module,
      [](const Ref<IntImm>& size, Rewriter&) -> NodeRef {
        return size->dtype.is_bool() ? size : int_imm(size->dtype, 1);
      },
      [](const Ref<PrimFunc>& function, Rewriter& r) -> NodeRef {
        PrimFunc bare = *r.descend(function);
        bare.attrs = {};
        return make(std::move(bare));
      }));
}

bool modules_equal(const Ref<Module>& a, const Ref<Module>& b, ModuleEquality equality) {
  if (equality == ModuleEquality::kStructural) return structural_equal(a, b);
  Ref<Module> x = without_values(a), y = without_values(b);
  if (equality == ModuleEquality::kAnchorBlock) {
    Ref<Block> p = find_anchor_block(x), q = find_anchor_block(y);
    if (p.defined() || q.defined()) return p.defined() && q.defined() && structural_equal(p, q, true);
  }
  return structural_equal(x, y);
}

}  // namespace tilewright::search
