#include "search/measure/candidate.h"

#include <fmt/format.h>

#include "codegen/loader.h"
#include "ir/compact.h"
#include "ir/json.h"
#include "lower/pipeline.h"
#include "runtime/abi.h"
#include "runtime/device.h"
#include "search/measure/device_limits.h"
#include "search/measure/frame.h"

namespace tilewright::search {

Candidate make_candidate(uint64_t id, const Ref<Module>& lowered, const Target& target, std::string entry) {
  Encoder options;
  options(target.str());
  return {id, to_compact(lowered), options.take(), std::move(entry)};
}

Result<Ref<Module>> lower_candidate(const Ref<Module>& scheduled, const Target& target) {
  lower::LowerOptions lowering;
  // A GPU has more registers than the target says, and what does not fit is in the cache.
  lowering.require_registers = !target.is_in(TargetSet::kGpu);
  lowering.check_races = lowering.check_accesses = false;
  return lower::lower(scheduled, target, lowering);
}

Status check_runs_here(const Target& target) {
  if (target.is_in(TargetSet::kGpu)) {
    char reason[512] = "";
    const bool is_cuda = target.kind == TargetKind::kCuda;
    const int32_t count = is_cuda ? tw_cuda_count(reason, sizeof reason) : tw_opencl_count(reason, sizeof reason);
    if (count > 0) return Ok{};
    return resource_error(
        "measure/no-device",
        fmt::format("there is no {} device to measure on{}{}", is_cuda ? "CUDA" : "OpenCL", *reason ? ": " : "",
                    reason),
        "tune on a machine with one; for OpenCL, pocl-opencl-icd and ocl-icd-libopencl1 of Debian run "
        "kernels on the processor");
  }
  if (target.runs_here()) return Ok{};
  return resource_error("measure/platform",
                        fmt::format("kernels for {} cannot be run on this machine", target.triple()),
                        "tune on a machine of that kind, also as worker of a cluster (docs/cluster.md), or for this "
                        "one (target=\"native\")");
}

Result<Candidate> reference_candidate(uint64_t id, const Ref<Module>& written, const Target& target,
                                      const std::string& entry) {
  const Target host = target.is_in(TargetSet::kGpu) ? target.host_target() : target;
  TW_TRY(lowered, lower::lower(written, host));
  Candidate candidate = make_candidate(id, lowered, host, entry);
  candidate.reference = true;
  return candidate;
}

Diagnostic reference_failure(const std::string& name, const Measured& measured) {
  // The message of a kernel may contain its own hint, which is more specific than the hints here.
  const std::string& text = measured.error.message;
  const std::string message = fmt::format("'{}' as it was written, which results are compared with, failed: {}", name,
                                          text.substr(0, text.find('\n')));
  const size_t hint = text.find(TW_HINT_PREFIX);
  switch (measured.outcome) {
    case Outcome::kRunTimeout:
      return resource_error("tune/reference", message, "does it end? If so, tune it for smaller shapes");
    case Outcome::kOutOfMemory:
      return resource_error("tune/reference", message, "tune it for smaller shapes, or free some memory");
    case Outcome::kBuildError:
    case Outcome::kBuildTimeout:
    case Outcome::kBuildCrash:
      return measured.error;
    default:
      if (hint != std::string::npos) {
        return resource_error("tune/reference", message, text.substr(hint + std::string_view(TW_HINT_PREFIX).size()));
      }
      return script_error("tune/reference", message,
                          "arrays that hold indices, or divisors, are given with inputs={name: array}; calling "
                          "tw.compile(program, target='interpreter') names the block and the index");
  }
}

Result<std::string> compile_candidate(std::string_view module, std::string_view options) {
  std::string target_text;
  Decoder decoder(options);
  decoder(target_text);
  if (!decoder.ok()) return internal_error("measure/options", "the options of a build are not those of a candidate");
  TW_TRY(target, Target::parse(target_text));
  TW_TRY(node, is_compact(module) ? from_compact(module) : from_json(module));
  const Ref<Module> lowered = node.cast<Module>();
  if (!lowered) return internal_error("measure/options", "a candidate is not a module");
  TW_TRY(object, codegen::compile(lowered, target, {}));
  TW_RETURN_IF_ERROR(check_device_limits(lowered, object.device_program));
  return std::move(object.bytes);
}

Result<CallableKernel> load_candidate(std::string_view object, const std::string& entry) {
  TW_TRY(kernel, codegen::load_object(object));
  const tw_export* found = kernel.find(entry);
  if (!found) return resource_error("measure/entry", fmt::format("the object has no kernel '{}'", entry));
  return CallableKernel{std::make_shared<const codegen::LoadedKernel>(kernel), found->entry,
                        found->signature->device_type};
}

}  // namespace tilewright::search
