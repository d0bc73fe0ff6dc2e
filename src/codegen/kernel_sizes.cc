#include "codegen/kernel_sizes.h"

#include "ir/annotations.h"
#include "ir/build.h"
#include "ir/op.h"
#include "ir/strides.h"
#include "ir/traverse.h"

namespace tilewright::codegen {
namespace {

KernelSizes sizes_of(const std::string& name, const PrimFunc& kernel) {
  KernelSizes sizes{name};
  visit(
      kernel.body,
      [&](const Ref<For>& loop) {
        const bool is_thread =
            loop->thread_binding.defined() && loop->thread_binding->thread_tag.starts_with("threadIdx");
        if (is_thread) sizes.threads *= const_int(loop->extent).value_or(1);
      },
      [&](const Ref<Allocate>& allocate) {
        if (scope_of(allocate->buffer_var).starts_with("shared")) {
          sizes.shared_bytes = known_product(allocate->dtype.bytes() * allocate->dtype.lanes, allocate->extents);
        }
      },
      [&](const Ref<Call>& call) { sizes.barriers += intrinsic_of(*call) == Intrinsic::k_tvm_storage_sync; });
  return sizes;
}

}  // namespace

std::vector<KernelSizes> kernel_sizes(const Ref<Module>& lowered) {
  std::vector<KernelSizes> sizes;
  for (const auto& [name, function] : lowered->functions) {
    const PrimFunc* kernel = function.as<PrimFunc>();
    if (kernel && is_kernel(*kernel)) sizes.push_back(sizes_of(name, *kernel));
  }
  return sizes;
}

}  // namespace tilewright::codegen
