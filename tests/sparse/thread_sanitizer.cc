// Calls a kernel once, each parallel loop on two threads. It is linked with an instrumented object of the kernel, whose
// entry is `called_kernel` here (test_thread_sanitizer.py).
//
//   program FILE     lines "tensor CODE BITS PATH EXTENT..." and "scalar NUMBER"; tensors are written back
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <list>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "runtime/abi.h"

// What LLVM's pass calls, and the runtime of GCC lacks: it has interceptors of the functions themselves.
extern "C" void* __tsan_memset(void* to, int byte, size_t count) { return std::memset(to, byte, count); }
extern "C" void* __tsan_memcpy(void* to, const void* from, size_t count) { return std::memcpy(to, from, count); }
extern "C" void* __tsan_memmove(void* to, const void* from, size_t count) { return std::memmove(to, from, count); }

extern "C" int32_t called_kernel(tw_ctx* ctx, const DLTensor* const* tensors, const tw_scalar* scalars);

namespace {

/// Halves of the loop, however short it is: the runtime gives small loops to one thread.
int32_t on_two_threads(tw_ctx* ctx, tw_parallel_body body, void* closure, int64_t extent, int64_t) {
  int32_t codes[2] = {TW_OK, TW_OK};
  std::thread other([&] { codes[1] = body(ctx, extent / 2, extent, closure); });
  if (extent / 2 > 0) codes[0] = body(ctx, 0, extent / 2, closure);
  other.join();
  return codes[0] != TW_OK ? codes[0] : codes[1];
}

struct Tensor {
  std::string path;
  std::vector<int64_t> shape;
  int64_t bytes = 0;
  void* data = nullptr;
  DLTensor view{};
};

}  // namespace

int main(int, char** arguments) {
  std::ifstream file(arguments[1]);
  std::list<Tensor> tensors;
  std::vector<const DLTensor*> views;
  std::vector<tw_scalar> scalars;
  for (std::string line, kind; std::getline(file, line);) {
    std::istringstream words(line);
    words >> kind;
    if (kind == "scalar") {
      tw_scalar scalar{};
      words >> scalar.i;
      scalars.push_back(scalar);
      continue;
    }
    Tensor& made = tensors.emplace_back();
    int code = 0, bits = 0;
    words >> code >> bits >> made.path;
    made.bytes = bits / 8;
    for (int64_t extent = 0; words >> extent; made.bytes *= extent) made.shape.push_back(extent);
    made.data = std::aligned_alloc(64, static_cast<size_t>(made.bytes + 127) / 64 * 64);
    std::ifstream(made.path, std::ios::binary).read(static_cast<char*>(made.data), made.bytes);
    made.view = {made.data, {kDLCPU, 0}, static_cast<int32_t>(made.shape.size()), {}, made.shape.data(), nullptr, 0};
    made.view.dtype = {static_cast<uint8_t>(code), static_cast<uint8_t>(bits), 1};
    views.push_back(&made.view);
  }
  tw_ctx ctx;
  tw_ctx_init(&ctx);
  ctx.parallel_for = on_two_threads;
  const int32_t code = called_kernel(&ctx, views.data(), scalars.data());
  if (code != TW_OK) std::fprintf(stderr, "%s\n", tw_last_error());
  for (Tensor& each : tensors) {
    std::ofstream(each.path, std::ios::binary).write(static_cast<char*>(each.data), each.bytes);
    std::free(each.data);
  }
  return code;
}
