// Make each kernel a function of its own, which the host calls.
//
//   Before                                            After
//   def main(A, n):                                   def main(A, n):
//     for bx in T.thread_binding(n, "blockIdx.x"):      main_kernel(A.data, n)
//       for tx in T.thread_binding(32, ...):          def main_kernel(A: T.handle("float32", "global"), n: T.int32):
//         A[bx * 32 + tx] = 0.0                         T.func_attr({"tir.kernel_launch_params": ["blockIdx.x", ...]})
//                                                       for bx in T.thread_binding(n, "blockIdx.x"): ...
//
// Parameters are what the kernel uses of its surroundings: pointers first, then numbers, each by name. What is left is
// the host's: it computes sizes, allocates main memory of the device, and launches.
//
// Needs      unified threads
// Ensures    bound loops stand in kernels only, and the host reads and writes no memory
// Placement  before passes that plan the memory of a kernel
#include <algorithm>

#include "analysis/threads.h"
#include "ir/annotations.h"
#include "ir/build.h"
#include "ir/refuse_at.h"
#include "ir/substitute.h"
#include "ir/traverse.h"
#include "lower/gpu/kernel.h"
#include "lower/passes.h"
#include "support/ranges.h"

namespace tilewright::lower {
namespace {

class KernelSplitter {
 public:
  KernelSplitter(const Ref<Module>& module, std::string name, PassContext& context)
      : module_(module), name_(std::move(name)), context_(context) {}

  Result<Ref<Module>> run(const Ref<PrimFunc>& func) {
    Stmt body = split(func->body);
    body = without_unused(body);
    if (error_) return *error_;
    check_host(body);
    if (error_) return *error_;
    Ref<Module> result = with_function(module_, name_, with_body(func, std::move(body)));
    for (auto& [name, kernel] : kernels_) result = with_function(result, name, kernel);
    return result;
  }

 private:
  Stmt split(const Stmt& body) {
    return rewrite(
        body,
        [&](const Ref<For>& loop, Rewriter& r) -> Stmt {
          return is_bound(*loop) ? launch(loop) : Stmt(r.descend(loop));
        },
        [&](const Ref<DeclBuffer>& decl, Rewriter& r) -> Stmt {
          declared_.push_back(decl->buffer);
          return r.descend(decl);
        },
        [&](const Ref<AllocateConst>& constant, Rewriter& r) -> Stmt {
          constants_.push_back(constant);
          return r.descend(constant);
        });
  }

  Stmt launch(const Ref<For>& loop) {
    std::unordered_set<NodeRef> used, inside;
    visit(loop, on<BufferLoad, BufferStore>([&](const auto& access) { used.insert(access->buffer); }),
          [&](const Ref<DeclBuffer>& decl) { inside.insert(decl->buffer); });
    const KernelLoops nest = KernelLoops::of(loop);
    List axes;
    for (const Ref<For>& bound : nest.loops) axes.items.push_back(string_imm(bound->thread_binding->thread_tag));
    // Views that are declared outside, and constants.
    Stmt inner = nest.body;
    for (const Ref<Buffer>& view : reversed(declared_)) {
      if (used.contains(view) && !inside.contains(view)) inner = make<DeclBuffer>({view, inner});
    }
    for (const Ref<AllocateConst>& constant : reversed(constants_)) {
      if (uses_var(inner, constant->buffer_var)) inner = with_body(constant, inner);
    }
    Stmt body = nest.around(inner);
    std::vector<Ref<Var>> free;
    for_each_free_var(body, [&](const Ref<Var>& v) {
      if (!is_contained(free, v)) free.push_back(v);
    });
    std::ranges::stable_sort(free, [](const Ref<Var>& a, const Ref<Var>& b) {
      if (a.dtype().is_handle() != b.dtype().is_handle()) return a.dtype().is_handle();
      return a->name_hint < b->name_hint;
    });
    PrimFunc kernel;
    std::vector<NodeRef> args;
    for (const Ref<Var>& v : free) {
      kernel.params.emplace_back(v);
      args.emplace_back(v);
    }
    kernel.ret_type = make<TupleType>({});
    kernel.attrs.set(kKernelLaunch, make(std::move(axes)));
    kernel.attrs.set("tir.is_global_func", bool_imm(true));
    kernel.body = std::move(body);
    note_one_thread(nest, inner);
    std::string name = free_name();
    kernels_.emplace_back(name, renew_defs(make(std::move(kernel), loop.span())));
    return make<Evaluate>({make<Call>({DataType::void_(), make<GlobalVar>({name}), std::move(args)})}, loop.span());
  }

  /// A device of thousands of threads runs one of them: nobody bound loops, or nothing proves that these may be.
  void note_one_thread(const KernelLoops& nest, const Stmt& inner) {
    bool one = all_of(nest.loops, [](const Ref<For>& bound) { return is_const_int(bound->extent, 1); });
    Ref<For> repeated;
    visit(inner, [&](const Ref<For>& loop) {
      if (!repeated.defined() && !is_const_int(loop->extent, 1)) repeated = loop;
    });
    if (!one || !repeated.defined()) return;
    context_.notes.push_back({"lower/one-thread", name_,
                              "one thread of the device runs loop '" + std::string(repeated->loop_var->name_hint) +
                                  "': no loop around it, nor itself, is bound to blocks or threads",
                              repeated.span()});
  }

  std::string free_name() {
    std::string base = name_ + "_kernel", name = base;
    auto taken = [&] {
      return module_->get(name).defined() || any_of(kernels_, [&](const auto& k) { return k.first == name; });
    };
    for (int number = 1; taken(); ++number) name = base + "_" + std::to_string(number);
    return name;
  }

  /// The host needs no views of memory that it does not touch.
  static Stmt without_unused(const Stmt& body) {
    return rewrite(
        body,
        [&](const Ref<DeclBuffer>& decl, Rewriter& r) -> Stmt {
          Stmt inner = r(decl->body);
          return uses_buffer(inner, decl->buffer) ? Stmt(make<DeclBuffer>({decl->buffer, inner}, decl.span())) : inner;
        },
        [&](const Ref<AllocateConst>& constant, Rewriter& r) -> Stmt {
          Ref<AllocateConst> inner = r.descend(constant);
          return uses_var(inner->body, constant->buffer_var) ? Stmt(inner) : inner->body;
        });
  }

  static const BufferLoad* first_load(const Expr& e) {
    const BufferLoad* found = nullptr;
    any_node(e, [&](const Ref<BufferLoad>& load) {
      found = &*load;
      return true;
    });
    return found;
  }

  void check_host(const Stmt& body) {
    auto refuse = [&](const NodeRef& node, const Ref<Buffer>& buffer, const char* what) {
      if (error_) return;
      error_ =
          refuse_at(node, "lower/not-on-device",
                    std::string("no loop around this ") + what + " '" + buffer->name +
                        "' is bound to blocks or threads, and the memory of the device cannot be reached from "
                        "outside of kernels",
                    "bind a loop around it with sch.bind, to blockIdx.x or threadIdx.x; sch.add_unit_loop makes one");
    };
    visit(
        body,
        [&](const Ref<AssertStmt>& check, Visitor& v) {
          if (const BufferLoad* load = first_load(check->condition); load && !error_) {
            error_ = refuse_at(check, "lower/not-on-device",
                               "this assertion reads '" + load->buffer->name +
                                   "': the host checks assertions, and cannot reach the memory of the device",
                               "check the data before the call; or let a kernel store whether the condition holds to a "
                               "buffer, and check that after the call");
          }
          v(check->body);
        },
        [&](const Ref<LetStmt>& let, Visitor& v) {
          if (const BufferLoad* load = first_load(let->value); load && !error_) {
            error_ = refuse_at(let, "lower/not-on-device",
                               "the value of '" + let->var->name_hint + "' is read from '" + load->buffer->name +
                                   "' outside of kernels, where the memory of the device cannot be reached",
                               "load it in the blocks that use it");
          }
          v(let->body);
        },
        [&](const Ref<BufferStore>& store, Visitor&) { refuse(store, store->buffer, "store to"); },
        [&](const Ref<BufferLoad>& load, Visitor&) { refuse(load, load->buffer, "load of"); });
  }

  const Ref<Module>& module_;
  std::string name_;
  PassContext& context_;
  std::vector<Ref<Buffer>> declared_;
  std::vector<Ref<AllocateConst>> constants_;
  std::vector<std::pair<std::string, Ref<PrimFunc>>> kernels_;
  std::optional<Diagnostic> error_;
};

}  // namespace

Result<Ref<Module>> split_host_device(const Ref<Module>& module, PassContext& context) {
  Ref<Module> result = module;
  for (const auto& [name, func] : module->functions) {
    if (!func.is<PrimFunc>()) continue;
    TW_TRY(after, KernelSplitter(result, name, context).run(func.cast<PrimFunc>()));
    result = after;
  }
  return result;
}

}  // namespace tilewright::lower
