// Program analyses for the Python side of the tuner.

#include "analysis/block_access_region.h"
#include "analysis/reducer.h"
#include "analysis/shrink.h"
#include "analysis/workload.h"
#include "arith/analyzer.h"
#include "ir/build.h"
#include "ir/op.h"
#include "ir/substitute.h"
#include "python/module.h"
#include "python/node_caster.h"
#include "sparse/lower_iterations.h"
#include "support/ranges.h"

namespace tilewright::python {
namespace {

/// Analyses of work and accesses need blocks, so sparse iterations are lowered first.
Ref<PrimFunc> over_arrays(const Ref<PrimFunc>& func) {
  return sparse::is_sparse(func) ? unwrap(sparse::lower_iterations(func)) : func;
}

const char* role_name(const analysis::ParameterUse& use) {
  if (!use.written) return "input";
  return use.read_before_written ? "inout" : "output";
}

nb::tuple parameter_facts(const analysis::ParameterUse& use) {
  const std::string& name = use.buffer.defined() ? use.buffer->name : use.param->name_hint;
  if (!use.buffer.defined()) {
    throw Exception(
        argument_error("tune/scalar-parameter",
                       "parameter '" + name + "' is not an array; a search has nothing to call the program with",
                       "give memory its size: A = T.match_buffer(" + name + ", (n,), \"float32\")"));
  }
  nb::list shape;
  for (const Expr& extent : use.buffer->shape) {
    auto value = const_int(arith::Analyzer().simplify(extent));
    if (!value) {
      throw Exception(
          argument_error("tune/symbolic-shape", "the shape of '" + name + "' is not constant",
                         "say what the sizes are in typical calls: tw.tune(program, sizes={\"n\": 1000}), or inputs="));
    }
    shape.append(*value);
  }
  if (!use.buffer->strides.empty()) {
    throw Exception(argument_error("tune/strides", "parameter '" + name + "' has strides of its own",
                                   "tune a program whose buffers are compact"));
  }
  return nb::make_tuple(name, use.buffer->dtype.str(), nb::tuple(shape), role_name(use));
}

void put_work(const analysis::Workload& workload, nb::dict& facts) {
  facts["flops"] = workload.flops;
  facts["int_ops"] = workload.int_ops;
  facts["bytes"] = workload.bytes_read + workload.bytes_written;
  facts["exact"] = workload.exact;
}

nb::dict workload_facts(const Ref<PrimFunc>& func) {
  analysis::Workload workload = analysis::analyze_workload(over_arrays(func));
  nb::list params, partly_written;
  for (size_t position : indices_of(workload.params)) {
    const analysis::ParameterUse& use = workload.params[position];
    params.append(parameter_facts(use));
    if (use.written && !use.written_in_full) partly_written.append(position);
  }
  nb::dict facts;
  facts["params"] = params;
  facts["partly_written"] = partly_written;
  put_work(workload, facts);
  facts["reduction_length"] = workload.reduction_length;
  return facts;
}

/// Role and reason of each parameter, in order.
nb::list parameter_roles(const Ref<PrimFunc>& func, const Module* module) {
  nb::list roles;
  for (const analysis::ParameterUse& use : analysis::analyze_workload(over_arrays(func), module).params) {
    roles.append(nb::make_tuple(use.buffer.defined() ? role_name(use) : "scalar", use.reader));
  }
  return roles;
}

nb::dict work_facts(const Ref<PrimFunc>& func, const std::vector<std::pair<Expr, double>>& means) {
  nb::dict facts;
  put_work(analysis::analyze_workload(over_arrays(func), nullptr, means), facts);
  return facts;
}

}  // namespace

void bind_analysis(nb::module_& m) {
  m.def("analyze_workload", &workload_facts, "func"_a);
  m.def(
      "parameter_roles",
      [](const Ref<PrimFunc>& func, const Ref<Module>& module) { return parameter_roles(func, &*module); }, "func"_a,
      "module"_a,
      "Of each parameter \"input\", \"output\" (its contents before the call do not matter), \"inout\" or "
      "\"scalar\", and what reads it before all of it is written; functions that it calls are those of the module.",
      nb::sig("def parameter_roles(func: PrimFunc, module: Module) -> list[tuple[str, str]]"));
  m.def("analyze_work", &work_facts, "func"_a, "means"_a = std::vector<std::pair<Expr, double>>(),
        "Operations and bytes of a call; scalar parameters are allowed, and what is not constant counts as 1, but for "
        "the extents whose means are given.");
  m.def(
      "has_effect", [](const Expr& expr) { return effect_of(expr) == Effect::kUpdateState; }, "expr"_a,
      "Whether evaluating the expression changes anything; so says whatever calls what is not known.");
  m.def(
      "undefined_vars",
      [](const NodeRef& node, const std::vector<Ref<Var>>& defs) {
        std::vector<Ref<Var>> found;
        for_each_free_var(node, [&](const Ref<Var>& v) {
          auto is_v = [&](const Ref<Var>& known) { return known == v; };
          if (none_of(found, is_v) && none_of(defs, is_v)) {
            found.push_back(v);
          }
        });
        return found;
      },
      "node"_a, "defs"_a = std::vector<Ref<Var>>(),
      "Variables that a program uses and does not bind, each once, in the order of their first use, but for `defs`.");
  m.def(
      "block_access_region",
      [](const Ref<Block>& block) {
        analysis::BlockAccess access = analysis::block_access_region(block);
        return nb::make_tuple(access.reads, access.writes, access.opaque);
      },
      "block"_a,
      "The regions that a block reads and those that it writes, by its body, and the pointers that it uses otherwise.",
      nb::sig("def block_access_region(block: Block) -> tuple[list[BufferRegion], list[BufferRegion], list[Var]]"));
  m.def(
      "threads_may_reduce",
      [](const Ref<Block>& block) {
        auto found = block->init.defined() ? analysis::find_reducer(*block) : analysis::find_accumulation(*block);
        return found.reducer && !found.reducer->depends_on_order();
      },
      "block"_a, "Whether lowering can combine what threads compute that share the steps of the block's reduction.");
  m.def("selects_pairs", &analysis::selects_pairs, "program"_a,
        "Whether a reduction finds an element and what belongs to it, as argmax does: equal elements show its order.");
  m.def("shrink", &analysis::shrink, "func"_a, "limit"_a = 16);
}

}  // namespace tilewright::python
