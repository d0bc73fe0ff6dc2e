// A helper whose "compiler" and "loader" do what the test's text says, mostly something bad. The modules and objects
// of the pipeline's tests are such texts: the name of a behavior, then its argument after a colon.
#include <signal.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <stdexcept>
#include <vector>

#include "search/measure/control_block.h"
#include "search/measure/frame.h"
#include "search/measure/serve.h"

namespace tilewright::search {
namespace {

struct Command {
  std::string name, argument;
  explicit Command(std::string_view text) {
    const size_t colon = std::min(text.find(':'), text.size());
    name = text.substr(0, colon);
    if (colon < text.size()) argument = text.substr(colon + 1);
  }
};

[[noreturn]] void sleep_forever() {
  while (true) ::pause();
}

void spin(double microseconds) {
  const uint64_t end = monotonic_ns() + static_cast<uint64_t>(microseconds * 1e3);
  while (monotonic_ns() < end) {
  }
}

/// Uses this much processor time.
void work(double microseconds) {
  timespec spent;
  const auto now = [&] {
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &spent);
    return 1e6 * static_cast<double>(spent.tv_sec) + 1e-3 * static_cast<double>(spent.tv_nsec);
  };
  const double end = now() + microseconds;
  while (now() < end) {
  }
}

void say(std::string_view bytes) {
  ssize_t ignored = ::write(kConnectionFd, bytes.data(), bytes.size());
  (void)ignored;
}

void allocate_without_end() {
  std::vector<std::vector<char>> memory;
  // Reserved, not written: how fast pages are handed out is not what is tested.
  while (true) memory.emplace_back().reserve(16 << 20);
}

Result<std::string> compile(std::string_view module, std::string_view options) {
  const Command command(module);
  if (command.name == "build") return command.argument;  // the object is what follows
  if (command.name == "options") return std::string(options);
  if (command.name == "build_slowly") {
    ::usleep(20'000);
    return command.argument;
  }
  if (command.name == "build_for") {  // milliseconds
    ::usleep(1000 * static_cast<useconds_t>(std::strtol(command.argument.c_str(), nullptr, 10)));
    return std::string("add");
  }
  if (command.name == "build_and_touch") {
    std::fclose(std::fopen(command.argument.c_str(), "w"));
    return std::string("add");
  }
  if (command.name == "build_when") {  // another build has made this file
    while (::access(command.argument.c_str(), F_OK) != 0) ::usleep(1000);
    return std::string("add");
  }
  if (command.name == "build_padded") return command.argument + std::string(8 << 20, ' ');
  if (command.name == "build_noisily") {
    for (int i = 0; i < 20'000; ++i) std::fprintf(stderr, "warning %d: much ado about nothing, at length\n", i);
    return command.argument;
  }
  if (command.name == "refuse") return schedule_error("split/P1", "the loop is not serial", "use a serial one");
  if (command.name == "throw") throw std::runtime_error("thrown by a library");
  if (command.name == "hang") sleep_forever();
  if (command.name == "segfault") ::raise(SIGSEGV);
  if (command.name == "die") ::raise(SIGKILL);
  if (command.name == "exit") ::_exit(3);
  if (command.name == "allocate") allocate_without_end();
  if (command.name == "abort") {
    std::fprintf(stderr, "%s\nstack dump: ...\n", command.argument.c_str());
    std::abort();
  }
  if (command.name == "garbage") {
    say("this is not a frame");
    sleep_forever();
  }
  if (command.name == "unasked") say(encode_frame(99, "nobody asked"));
  if (command.name == "half") {
    say(encode_frame(4, "some payload").substr(0, 30));
    ::_exit(0);
  }
  return internal_error("test/unknown", "no such behavior: " + command.name);
}

// ---- Kernels: C[m, n] = A[m, n] + B[m, n] in float32, if nothing goes wrong ----------------------------------------

struct Call {
  tw_ctx* context;
  const DLTensor* const* tensors;
  int64_t rows() const { return tensors[0]->shape[0]; }
  int64_t columns() const { return tensors[0]->shape[1]; }
  float* data(int i) const { return static_cast<float*>(tensors[i]->data); }
  int64_t size() const { return rows() * columns(); }
};

void add(const Call& call, int64_t begin, int64_t end) {
  for (int64_t i = begin; i < end; ++i) call.data(2)[i] = call.data(0)[i] + call.data(1)[i];
}

int g_calls = 0;  // calls of the loaded kernel

/// Ends only when the stack does; the compiler cannot know.
volatile int g_depth = 1 << 30;
[[gnu::noinline]] int overflow_stack(int depth) {
  volatile char frame[4096];
  frame[0] = static_cast<char>(depth);
  return depth < g_depth ? overflow_stack(depth + 1) + frame[0] : 0;
}

int32_t write_to_null() {
  volatile int* volatile nowhere = nullptr;
  *nowhere = 1;
  return 0;
}

using Body = std::function<int32_t(const Call&)>;

std::map<std::string, Body> correct_kernels(const std::string& text) {
  const double argument = std::atof(text.c_str());
  return {
      {"add", [](const Call& c) { return add(c, 0, c.size()), 0; }},
      {"add_in", [=](const Call& c) { return spin(argument), add(c, 0, c.size()), 0; }},
      {"add_after_work", [=](const Call& c) { return work(argument), add(c, 0, c.size()), 0; }},
      {"add_and_count",  // calls of 40 ms; the size of the file is their number
       [=](const Call& c) {
         std::FILE* const file = std::fopen(text.c_str(), "a");
         std::fputc('.', file);
         std::fclose(file);
         return spin(40'000), add(c, 0, c.size()), 0;
       }},
      {"add_when",
       [=](const Call& c) {
         while (::access(text.c_str(), F_OK) != 0) ::usleep(1000);
         return add(c, 0, c.size()), 0;
       }},
      {"add_after_pause",
       [](const Call& c) {
         static uint64_t last = 0;
         if (monotonic_ns() - last < 100'000) return tw_report(c.context, TW_ERROR_ASSERTION, "called too soon");
         add(c, 0, c.size());
         last = monotonic_ns();
         return 0;
       }},
      // In-out: C += A + B.
      {"accumulate",
       [](const Call& c) {
         for (int64_t i = 0; i < c.size(); ++i) c.data(2)[i] += c.data(0)[i] + c.data(1)[i];
         return 0;
       }},
      {"workspace",
       [=](const Call& c) {
         void* memory = c.context->workspace_acquire(c.context, static_cast<int64_t>(argument));
         if (!memory) return static_cast<int32_t>(TW_ERROR_MEMORY);
         std::memset(memory, 0, static_cast<size_t>(argument));
         c.context->workspace_release(c.context, memory);
         return add(c, 0, c.size()), 0;
       }},
  };
}

std::map<std::string, Body> wrong_kernels() {
  return {
      {"last_row_missing", [](const Call& c) { return add(c, 0, c.size() - c.columns()), 0; }},
      {"last_row_twice",
       [](const Call& c) {
         add(c, 0, c.size() - c.columns());
         std::memcpy(c.data(2) + c.size() - c.columns(), c.data(2) + c.size() - 2 * c.columns(), 4 * c.columns());
         return 0;
       }},
      {"last_element_off", [](const Call& c) { return add(c, 0, c.size()), c.data(2)[c.size() - 1] += 1e-4f, 0; }},
      // Adds into its workspace, and counts on its being zero.
      {"uninitialized",
       [](const Call& c) {
         auto* sum = static_cast<float*>(c.context->workspace_acquire(c.context, 1 << 20));
         for (int64_t i = 0; i < c.size(); ++i) {
           sum[i] += c.data(0)[i];
           c.data(2)[i] = sum[i] + c.data(1)[i];
         }
         c.context->workspace_release(c.context, sum);
         return 0;
       }},
      {"returns_error",
       [](const Call& c) { return tw_report(c.context, TW_ERROR_ASSERTION, "the assertion n > 0 failed"); }},
      {"one_beyond", [](const Call& c) { return add(c, 0, c.size()), c.data(2)[c.size()] = 1, 0; }},
      {"one_before", [](const Call& c) { return add(c, 0, c.size()), c.data(2)[-1] = 1, 0; }},
      {"row_beyond", [](const Call& c) { return add(c, 0, c.size() + c.columns()), 0; }},
      {"far_beyond", [](const Call& c) { return c.data(2)[c.size() + 2000] = 1, 0; }},
      {"write_input", [](const Call& c) { return c.data(0)[5] = 1, 0; }},
  };
}

std::map<std::string, Body> fatal_kernels() {
  return {
      {"null", [](const Call&) { return write_to_null(); }},
      {"overflow_stack", [](const Call&) { return overflow_stack(0); }},
      {"divide",
       [](const Call&) {
         ::raise(SIGFPE);
         return 0;
       }},
      {"illegal",
       [](const Call&) {
         ::raise(SIGILL);
         return 0;
       }},
      {"die",
       [](const Call&) {
         ::raise(SIGKILL);
         return 0;
       }},
      {"exit",
       [](const Call&) {
         ::_exit(0);
         return 0;
       }},
      {"loop",
       [](const Call&) {
         while (g_depth > 0) {
         }
         return 0;
       }},
      {"block",
       [](const Call&) {
         sleep_forever();
         return 0;
       }},
      {"allocate",
       [](const Call&) {
         allocate_without_end();
         return 0;
       }},
      {"garbage",
       [](const Call&) {
         say("garbage from a kernel");
         return 0;
       }},
  };
}

/// Behaves in the first call, which is checked, and not in one of those that are timed.
std::map<std::string, Body> treacherous_kernels() {
  const auto later = [](auto bad) {
    return [=](const Call& c) { return ++g_calls > 5 ? bad(c) : (add(c, 0, c.size()), 0); };
  };
  return {
      {"later_null", later([](const Call&) { return write_to_null(); })},
      {"later_die", later([](const Call&) { return ::raise(SIGKILL); })},
      {"later_block", later([](const Call&) -> int { sleep_forever(); })},
      {"later_error", later([](const Call& c) { return tw_report(c.context, TW_ERROR_INTERNAL, "changed its mind"); })},
      {"later_wrong", later([](const Call& c) { return c.data(2)[c.size() - 1] = 0, 0; })},
      {"later_beyond", later([](const Call& c) { return c.data(2)[c.size() + 2000] = 1, 0; })},
  };
}

/// Kernels are plain functions; several may be loaded at once.
constexpr int kSlots = 4;
Body g_bodies[kSlots];

template <int slot>
int32_t entry(tw_ctx* context, const DLTensor* const* tensors, const tw_scalar*) {
  return g_bodies[slot]({context, tensors});
}
constexpr tw_kernel kEntries[kSlots] = {entry<0>, entry<1>, entry<2>, entry<3>};

Result<CallableKernel> load(std::string_view object, const std::string& name) {
  if (name != "main") return resource_error("test/entry", "the object has no kernel " + name);
  const Command command(object.substr(0, object.find(' ')));
  if (command.name == "load_error") return resource_error("test/load", "relocation out of range");
  if (command.name == "load_hang") sleep_forever();
  if (command.name == "load_die") ::raise(SIGKILL);
  for (const auto& kernels :
       {correct_kernels(command.argument), wrong_kernels(), fatal_kernels(), treacherous_kernels()}) {
    const auto found = kernels.find(command.name);
    if (found == kernels.end()) continue;
    static int next = 0;
    const int slot = next++ % kSlots;
    g_bodies[slot] = found->second;
    g_calls = 0;
    return CallableKernel{nullptr, kEntries[slot]};
  }
  return internal_error("test/unknown", "no such kernel: " + command.name);
}

}  // namespace
}  // namespace tilewright::search

int main(int argc, char** argv) {
  return tilewright::search::helper_main(argc, argv, tilewright::search::compile, tilewright::search::load);
}
