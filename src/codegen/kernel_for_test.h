// Programs built from nodes and their kernels, for the unit tests of lowering and code generation.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "codegen/codegen.h"
#include "codegen/loader.h"
#include "codegen/signature.h"
#include "ir/build.h"
#include "lower/pipeline.h"
#include "runtime/runtime.h"

namespace tilewright {

/// A compact tensor of a test, with its memory.
class TestTensor {
 public:
  TestTensor(DataType type, std::vector<int64_t> shape) : shape_(std::move(shape)) {
    count_ = 1;
    for (int64_t extent : shape_) count_ *= extent;
    bytes_.resize(static_cast<size_t>(count_ * type.bytes() * type.lanes) + 64);
    size_t skew = 64 - reinterpret_cast<uintptr_t>(bytes_.data()) % 64;
    tensor_ = {bytes_.data() + skew,
               {kDLCPU, 0},
               static_cast<int32_t>(shape_.size()),
               codegen::dlpack_type(type),
               shape_.data(),
               nullptr,
               0};
  }
  TestTensor(const TestTensor&) = delete;
  template <class T>
  T* data() {
    return static_cast<T*>(tensor_.data);
  }
  int64_t count() const { return count_; }
  DLTensor* dl() { return &tensor_; }

 private:
  std::vector<int64_t> shape_;
  std::vector<char> bytes_;
  int64_t count_;
  DLTensor tensor_;
};

inline Target test_target() { return Target::host(); }

/// parameters in order, each a buffer.
inline Ref<PrimFunc> test_function(const std::string& name, const std::vector<Ref<Buffer>>& buffers, Stmt body) {
  PrimFunc func;
  for (const Ref<Buffer>& buffer : buffers) {
    Ref<Var> handle = var(buffer->name + "_handle", DataType::handle());
    func.params.emplace_back(handle);
    func.buffer_map.emplace_back(handle, buffer);
  }
  func.ret_type = make<TupleType>({});
  func.attrs.set("global_symbol", string_imm(name));
  func.body = std::move(body);
  return make(std::move(func));
}

inline codegen::LoadedKernel build(const Ref<PrimFunc>& func, codegen::ObjectCode* keep = nullptr) {
  Target target = test_target();
  Ref<Module> lowered = lower::lower(as_module(func), target).value_or_throw();
  codegen::CompileOptions options{keep != nullptr, keep != nullptr};
  codegen::ObjectCode object = codegen::compile(lowered, target, options).value_or_throw();
  if (keep) *keep = object;
  return codegen::load_object(object.bytes).value_or_throw();
}

inline std::string call(const codegen::LoadedKernel& kernel, std::vector<TestTensor*> tensors,
                        std::vector<tw_scalar> scalars = {}) {
  std::vector<const DLTensor*> list;
  for (TestTensor* t : tensors) list.push_back(t->dl());
  int32_t code = kernel.table().exports[0].entry(nullptr, list.data(), scalars.data());
  return code ? tw_last_error() : "";
}

}  // namespace tilewright
