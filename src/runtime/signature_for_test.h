// Signatures and tensors for tests, in the notation of scripts: Sig("f").symbol("n").in("A", kF32, {"n", "64"}).
#pragma once

#include <cstdint>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "runtime/runtime.h"
#include "support/host_cpu.h"

namespace tilewright::runtime {

constexpr DLDataType kF32{kDLFloat, 32, 1}, kF64{kDLFloat, 64, 1}, kI32{kDLInt, 32, 1}, kI64{kDLInt, 64, 1},
    kU8{kDLUInt, 8, 1}, kBool{kDLBool, 8, 1}, kBF16{kDLBfloat, 16, 1};

/// Builds a tw_signature as the code generator emits it; owns the tables.
class Sig {
 public:
  explicit Sig(std::string name) : name_(std::move(name)) {}

  Sig& symbol(std::string name, int32_t bits = 64) {
    slots_[name] = static_cast<int64_t>(symbols_.size());
    symbols_.push_back({keep(name), bits, 0});
    return *this;
  }
  Sig& scalar(const std::string& name, DLDataType dtype) {
    tw_param param{};
    param.name = keep(name);
    param.kind = TW_PARAM_SCALAR;
    param.dtype = dtype;
    param.symbol = -1;
    if (slots_.count(name)) {
      param.symbol = static_cast<int32_t>(slots_[name]);
      bound_.insert({name, true});
    }
    params_.push_back(param);
    return *this;
  }
  /// Dimensions: a number, the name of a symbol, or "?" for anything. Strides like them; {} stands for compact.
  Sig& tensor(const std::string& name, DLDataType dtype, std::vector<std::string> shape,
              std::vector<std::string> strides = {}, int32_t flags = 0) {
    tw_param param{};
    param.name = keep(name);
    param.kind = TW_PARAM_TENSOR;
    param.dtype = dtype;
    param.ndim = static_cast<int32_t>(shape.size());
    param.flags = flags;
    param.symbol = -1;
    std::vector<tw_dim> dims;
    for (auto& text : shape) dims.push_back(dim(text));
    param.shape = keep(std::move(dims));
    if (!strides.empty()) {
      std::vector<tw_dim> steps(strides.size());
      for (size_t i = strides.size(); i-- > 0;) steps[i] = dim(strides[i]);
      param.strides = keep(std::move(steps));
    }
    params_.push_back(param);
    return *this;
  }
  Sig& out(const std::string& name, DLDataType dtype, std::vector<std::string> shape,
           std::vector<std::string> strides = {}) {
    return tensor(name, dtype, std::move(shape), std::move(strides), TW_PARAM_WRITTEN);
  }
  /// Sets the alignment of the last parameter.
  Sig& aligned(int32_t bytes) { return params_.back().alignment = bytes, *this; }
  Sig& at_most(int64_t elements) { return params_.back().max_elements = elements, *this; }
  Sig& offset(const std::string& text) { return params_.back().elem_offset = dim(text), *this; }
  Sig& device(int32_t type) { return device_ = type, *this; }
  Sig& features(std::string list) { return features_ = std::move(list), *this; }

  const tw_signature* get() {
    signature_ = {};
    signature_.abi_version = TW_ABI_VERSION;
    signature_.device_type = device_;
    signature_.name = name_.c_str();
    signature_.params = params_.data();
    signature_.symbols = symbols_.data();
    signature_.features = features_.c_str();
    tw_cpu_features set;
    const char* unknown = nullptr;
    if (tw_parse_features(features_.c_str(), &set, &unknown)) std::abort();
    for (int i = 0; i < TW_FEATURE_WORDS; ++i) signature_.feature_words[i] = set.words[i];
    signature_.num_params = static_cast<int32_t>(params_.size());
    for (auto& param : params_) ++(param.kind == TW_PARAM_TENSOR ? signature_.num_tensors : signature_.num_scalars);
    signature_.num_symbols = static_cast<int32_t>(symbols_.size());
    return &signature_;
  }
  std::vector<tw_param>& params() { return params_; }

 private:
  const char* keep(const std::string& text) {
    texts_.push_back(std::make_unique<std::string>(text));
    return texts_.back()->c_str();
  }
  const tw_dim* keep(std::vector<tw_dim> dims) {
    dims_.push_back(std::make_unique<std::vector<tw_dim>>(std::move(dims)));
    return dims_.back()->data();
  }
  tw_dim dim(const std::string& text) {
    if (text == "?") return {0, TW_DIM_ANY, 0};
    if (!slots_.count(text)) return {std::stoll(text), TW_DIM_CONSTANT, 0};
    bool first = bound_.insert({text, true}).second;
    return {slots_[text], first ? TW_DIM_BIND : TW_DIM_SYMBOL, 0};
  }

  std::string name_, features_;
  int32_t device_ = kDLCPU;
  std::map<std::string, int64_t> slots_;
  std::map<std::string, bool> bound_;
  std::vector<tw_symbol> symbols_;
  std::vector<tw_param> params_;
  std::vector<std::unique_ptr<std::string>> texts_;
  std::vector<std::unique_ptr<std::vector<tw_dim>>> dims_;
  tw_signature signature_;
};

/// A DLTensor with its shape and strides; the address is what the test says, nothing is read there.
struct Tensor {
  Tensor(uintptr_t address, DLDataType dtype, std::vector<int64_t> dims, std::vector<int64_t> steps = {})
      : shape(std::move(dims)), strides(std::move(steps)) {
    view.data = reinterpret_cast<void*>(address);
    view.device = {kDLCPU, 0};
    view.ndim = static_cast<int32_t>(shape.size());
    view.dtype = dtype;
    view.shape = shape.data();
    view.strides = strides.empty() ? nullptr : strides.data();
    view.byte_offset = 0;
  }
  Tensor(const Tensor&) = delete;

  std::vector<int64_t> shape, strides;
  DLTensor view{};
};

}  // namespace tilewright::runtime
