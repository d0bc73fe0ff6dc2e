// Lowering, code generation and loading. The GIL is released while they work.
#include <nanobind/ndarray.h>
#include <nanobind/stl/tuple.h>

#include "analysis/allocation_locations.h"
#include "analysis/skipped_init.h"
#include "codegen/c_writer/c_writer.h"
#include "codegen/codegen.h"
#include "codegen/export.h"
#include "codegen/interpreted.h"
#include "codegen/kernel_sizes.h"
#include "codegen/loader.h"
#include "ir/sparse.h"
#include "lower/pipeline.h"
#include "python/call.h"
#include "python/interrupts.h"
#include "python/module.h"
#include "python/node_caster.h"
#include "python/process_exit.h"
#include "runtime/runtime.h"
#include "script/printer.h"
#include "sparse/lower_iterations.h"
#include "support/interruption.h"
#include "support/raised_codes.h"
#include "target/multiprocessor.h"

namespace tilewright::python {
namespace {

/// "file.py:12", or "" of what no script says.
std::string line_of(SpanId span) {
  const Span place = span_of(span);
  return place.line > 0 ? place.file + ":" + std::to_string(place.line) : "";
}

template <class Note>
nb::dict note_dict(const Note& note) {
  nb::dict entry;
  entry["code"] = note.code;
  entry["function"] = note.function;
  entry["message"] = note.message;
  if constexpr (requires { note.span; }) entry["where"] = line_of(note.span);
  return entry;
}

/// A note that Python adds to a report.
nb::dict make_note(std::string code, std::string function, std::string message) {
  note_raised(code);
  return note_dict(lower::Note{std::move(code), std::move(function), std::move(message)});
}

nb::dict report_dict(const lower::LowerReport& report) {
  nb::dict times;
  for (const lower::PassTime& t : report.times) times[nb::str(t.pass.data(), t.pass.size())] = t.seconds;
  nb::list promotions;
  for (const lower::Promotion& p : report.promotions) {
    nb::dict entry;
    entry["function"] = p.function;
    entry["buffer"] = p.buffer;
    entry["promoted"] = p.promoted;
    entry["registers"] = p.registers;
    entry["reason"] = p.reason;
    entry["where"] = line_of(p.span);
    promotions.append(entry);
  }
  nb::list notes;
  for (const lower::Note& n : report.notes) notes.append(note_dict(n));
  nb::dict result;
  result["notes"] = notes;
  result["times"] = times;
  result["promotions"] = promotions;
  return result;
}

/// Returns the result of the compiler; runs it without the GIL, so that Ctrl-C can interrupt it.
template <class F>
auto interruptible(F&& work) {
  Interrupts interrupts;
  auto result = gil_released([&] {
    InterruptionScope scope(interrupt_requested);
    return work();
  });
  if (!result.ok() && result.error().code == "compile/interrupted") {
    interrupts.raise();
    throw nb::python_error();
  }
  return unwrap(std::move(result));
}

Ref<Module> lower_sparse_module(const Ref<Module>& module, bool published) {
  Result<Ref<Module>> result =
      sparse::lower_iterations(module, published ? sparse::Form::kPublished : sparse::Form::kOwn);
  if (!result.ok()) result.error() = script::with_excerpt(std::move(result.error()), module);
  return unwrap(std::move(result));
}

nb::tuple lower_module(const Ref<Module>& module, const std::string& target_text, const std::string& after,
                       bool check_bounds) {
  Target target = unwrap(Target::parse(target_text));
  lower::LowerReport report;
  lower::LowerOptions options;
  options.stop_after = after;
  options.check_bounds = check_bounds;
  Ref<Module> lowered = interruptible([&] {
    Result<Ref<Module>> result = lower::lower(module, target, options, &report);
    if (!result.ok()) result.error() = script::with_excerpt(std::move(result.error()), module);
    return result;
  });
  return nb::make_tuple(lowered, report_dict(report));
}

/// The module before lowering and after each pass, with names.
nb::list lower_stages(const Ref<Module>& module, const std::string& target_text) {
  Target target = unwrap(Target::parse(target_text));
  std::vector<std::pair<std::string, Ref<Module>>> stages;
  {
    GilReleased release;
    lower::LowerOptions options;
    options.observe = [&](std::string_view pass, const Ref<Module>& m) { stages.emplace_back(pass, m); };
    unwrap(lower::lower(module, target, options));
  }
  nb::list list;
  for (const auto& [pass, stage] : stages) list.append(nb::make_tuple(pass, stage));
  return list;
}

codegen::ObjectCode compile_object(const Ref<Module>& lowered, const std::string& target_text, bool keep_llvm,
                                   bool keep_assembly, bool compile_kernels, bool quick) {
  Target target = unwrap(Target::parse(target_text));
  return interruptible(
      [&] { return codegen::compile(lowered, target, {keep_llvm, keep_assembly, compile_kernels, quick}); });
}

const tw_export& find_export(const codegen::LoadedKernel& kernel, const std::string& name) {
  const tw_export* found = kernel.find(name);
  if (!found) throw nb::key_error(name.c_str());
  return *found;
}

void bind_object_code(nb::module_& m) {
  nb::class_<codegen::ObjectCode>(m, "ObjectCode")
      .def_prop_ro("bytes", [](const codegen::ObjectCode& c) { return nb::bytes(c.bytes.data(), c.bytes.size()); })
      .def_ro("functions", &codegen::ObjectCode::functions)
      .def_ro("platform", &codegen::ObjectCode::platform)
      .def_prop_ro("notes",
                   [](const codegen::ObjectCode& c) {
                     nb::list notes;
                     for (const codegen::CodeNote& n : c.notes) notes.append(note_dict(n));
                     return notes;
                   })
      .def_ro("llvm_ir", &codegen::ObjectCode::llvm_ir)
      .def_ro("assembly", &codegen::ObjectCode::assembly)
      .def_ro("device_source", &codegen::ObjectCode::device_source)
      .def_prop_ro(
          "binaries",
          [](const codegen::ObjectCode& c) {
            nb::list binaries;
            for (const codegen::DeviceBinary& binary : c.device_program.binaries) {
              binaries.append(nb::make_tuple(binary.arch, nb::bytes(binary.bytes.data(), binary.bytes.size())));
            }
            return binaries;
          })
      .def_prop_ro("device_warnings", [](const codegen::ObjectCode& c) { return c.device_program.warnings; })
      .def_prop_ro("kernels", [](const codegen::ObjectCode& c) {
        nb::list kernels;
        for (const codegen::KernelUse& use : c.device_program.uses) {
          nb::dict one;
          one["kernel"] = use.kernel;
          one["arch"] = use.arch;
          one["registers"] = use.registers;
          one["spill_stores"] = use.spill_stores;
          one["spill_loads"] = use.spill_loads;
          one["stack"] = use.stack;
          one["shared_bytes"] = use.shared_bytes;
          kernels.append(one);
        }
        return kernels;
      });
  m.def(
      "kernel_sizes",
      [](const Ref<Module>& lowered) {
        nb::list kernels;
        for (const codegen::KernelSizes& sizes : codegen::kernel_sizes(lowered)) {
          nb::dict one;
          one["kernel"] = sizes.kernel;
          one["threads"] = sizes.threads;
          one["shared_bytes"] = sizes.shared_bytes ? nb::object(nb::int_(*sizes.shared_bytes)) : nb::none();
          one["barriers"] = sizes.barriers;
          kernels.append(one);
        }
        return kernels;
      },
      "lowered"_a, nb::sig("def kernel_sizes(lowered: Module) -> list[dict[str, Any]]"),
      "What a block of each kernel has: threads, bytes of shared memory (None: symbolic sizes decide), and barriers.");
  m.def(
      "occupancy",
      [](const std::string& arch, int64_t threads, int64_t registers, int64_t shared_bytes) -> nb::object {
        const auto holder = Multiprocessor::of(arch);
        if (!holder) return nb::none();
        const BlockUse use{threads, registers, shared_bytes};
        return nb::make_tuple(holder->resident_blocks(use), holder->occupancy(use));
      },
      "arch"_a, "threads"_a, "registers"_a, "shared_bytes"_a,
      nb::sig("def occupancy(arch: str, threads: int, registers: int, shared_bytes: int) -> tuple[int, float] | None"),
      "The blocks that are resident on a multiprocessor at once, and their fraction of its warps; None for an unknown "
      "architecture.");
  m.def("kernel_symbol", &codegen::kernel_symbol, "name"_a,
        "The name that a kernel of a lowered module has in the text for a device.");
}

void bind_sparse_lowering(nb::module_& m) {
  m.def("lower_sparse_iterations", &lower_sparse_module, "module"_a, "published"_a = false,
        "The module with blocks over arrays in place of iterations over sparse axes.\n\n"
        "Args:\n    published: as schedules for SparseTIR's implementation expect it: inits are those of blocks, and "
        "stores to\n        coordinates that may be absent are skipped where these are, not refused.\n\n"
        "Raises:\n    ScriptError: it stores to coordinates that may be absent, or coordinates cannot be searched for "
        "ahead of\n        the iteration.");
  m.def(
      "stored_axes",
      [](const Ref<Buffer>& buffer) {
        std::vector<size_t> axes;
        for (const StoredDimension& dimension : stored_dimensions(buffer->axes)) axes.push_back(dimension.axis);
        return axes;
      },
      "buffer"_a, "The numbers of the axes that count along the dimensions of a sparse buffer's array.");
}

}  // namespace

void bind_compile(nb::module_& m) {
  m.def("lower", &lower_module, "module"_a, "target"_a = "native", "after"_a = "", "check_bounds"_a = false);
  bind_sparse_lowering(m);
  m.def(
      "run_pass",
      [](const std::string& name, const Ref<Module>& module, const std::string& target) {
        Target parsed = unwrap(Target::parse(target));
        GilReleased release;
        return lower::run_pass(name, module, parsed);
      },
      "name"_a, "module"_a, "target"_a = "native",
      "One pass of the pipeline alone, on a module that has all that it needs.\n\n"
      "Raises:\n    ScriptError: the module is not at the stage where the pass begins: it has blocks, or no longer "
      "has.");
  m.def("lower_stages", &lower_stages, "module"_a, "target"_a = "native",
        nb::sig("def lower_stages(module: Module, target: str = 'native') -> list[tuple[str, Module]]"));
  m.def("make_note", &make_note, "code"_a, "function"_a, "message"_a);
  m.def("list_passes", [] {
    nb::list list;
    for (const lower::Row& pass : lower::rows()) {
      list.append(
          nb::make_tuple(nb::str(pass.name.data(), pass.name.size()), nb::str(pass.reason.data(), pass.reason.size())));
    }
    return list;
  });
  bind_object_code(m);
  m.def("compile_object", &compile_object, "lowered"_a, "target"_a = "native", "keep_llvm"_a = false,
        "keep_assembly"_a = false, "compile_kernels"_a = true, "quick"_a = false);
  nb::class_<codegen::LoadedKernel>(m, "LoadedKernel")
      .def_prop_ro("names",
                   [](const codegen::LoadedKernel& k) {
                     std::vector<std::string> names;
                     for (int32_t i = 0; i < k.table().num_exports; ++i) names.push_back(k.table().exports[i].name);
                     return names;
                   })
      .def(
          "callable",
          [](nb::object self, const std::string& name) {
            const tw_export& found = find_export(nb::cast<const codegen::LoadedKernel&>(self), name);
            PyObject* callable = make_callable(found.entry, found.signature, self.ptr());
            if (!callable) nb::raise_python_error();
            return nb::steal(callable);
          },
          nb::sig("def callable(self, name: str) -> KernelBase"));
  m.def(
      "export_files",
      [](const Ref<Module>& lowered, const codegen::ObjectCode& code, const std::string& folder,
         const std::string& name, const std::string& calls) {
        const codegen::ExportedFiles files =
            unwrap(gil_released([&] { return codegen::export_files(lowered, code, folder, name, calls); }));
        return std::tuple(files.library, files.object, files.header);
      },
      "lowered"_a, "code"_a, "folder"_a, "name"_a, "calls"_a = "");
  m.def(
      "interpreted_callable",
      [](const Ref<Module>& module, const std::string& name, const std::string& platform) {
        if (Status status = analysis::verify_inits(module); !status.ok()) {
          throw Exception(script::located(std::move(status.error()), module));
        }
        const auto lowered = [&] {
          Target target = unwrap(Target::parse("native"));
          const auto result = gil_released([&] { return lower::lower(module, target, {}); });
          return result.ok() ? (*result)->get(name).cast<PrimFunc>() : Ref<PrimFunc>();
        };
        auto kernel =
            unwrap(codegen::InterpretedKernel::make(analysis::with_private_buffers(module), name, lowered, platform));
        const tw_signature* signature = &kernel->signature();
        auto* raw = const_cast<codegen::InterpretedKernel*>(kernel.get());
        auto* keep = new std::shared_ptr<const codegen::InterpretedKernel>(std::move(kernel));
        nb::capsule owner(keep, [](void* pointer) noexcept {
          delete static_cast<std::shared_ptr<const codegen::InterpretedKernel>*>(pointer);
        });
        PyObject* callable = make_callable(&codegen::InterpretedKernel::entry, signature, owner.ptr(), raw);
        if (!callable) nb::raise_python_error();
        return nb::steal(callable);
      },
      "module"_a, "name"_a, "platform"_a = "",
      nb::sig("def interpreted_callable(module: Module, name: str, platform: str = '') -> KernelBase"));
  m.def("llvm_version", &codegen::llvm_version);
  m.def("load_object", [](nb::bytes bytes) {
    GilReleased release;
    return codegen::load_object(std::string_view(bytes.c_str(), bytes.size()));
  });
}

}  // namespace tilewright::python
