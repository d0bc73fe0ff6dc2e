#include "search/measure/crash_handler.h"

#include <signal.h>
#include <ucontext.h>

#include <cstdlib>

#include "search/measure/control_block.h"

namespace tilewright::search {
namespace {

constexpr int kSignals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP};
/// A fault this close to the stack pointer is one of the stack: calls touch the next frame, large frames page by page.
constexpr uint64_t kStackReach = uint64_t{1} << 16;
constexpr size_t kStackSize = size_t{1} << 16;

// Data for the signal handler: set once, before any kernel runs.
MappedArguments* g_arguments = nullptr;

uint64_t stack_pointer(const ucontext_t& context) {
#if defined(__x86_64__)
  return static_cast<uint64_t>(context.uc_mcontext.gregs[REG_RSP]);
#elif defined(__aarch64__)
  return context.uc_mcontext.sp;
#else
  (void)context;
  return 0;
#endif
}

int32_t is_write(const ucontext_t& context) {
#if defined(__x86_64__)
  // Bit 1 of a page fault's error code (Intel SDM volume 3, section 4.7).
  return context.uc_mcontext.gregs[REG_TRAPNO] == 14 ? (context.uc_mcontext.gregs[REG_ERR] >> 1) & 1 : -1;
#else
  (void)context;
  return -1;
#endif
}

void on_fatal_signal(int number, siginfo_t* info, void* raw_context) {
  // Several threads may fault at once: only the first one is reported.
  uint32_t expected = 0;
  ControlBlock* const control = &g_arguments->control();
  if (control->crashed.compare_exchange_strong(expected, 2)) {
    const auto& context = *static_cast<const ucontext_t*>(raw_context);
    const bool has_address = number == SIGSEGV || number == SIGBUS;
    const uint64_t address = has_address ? reinterpret_cast<uint64_t>(info->si_addr) : 0;
    control->signal = number;
    control->address = address;
    control->is_write = has_address ? is_write(context) : -1;
    control->argument = -1;
    control->distance = 0;
    for (const MappedArguments::Region& region : g_arguments->regions()) {
      const bool inside =
          address >= reinterpret_cast<uint64_t>(region.begin) && address < reinterpret_cast<uint64_t>(region.end);
      if (!has_address || !inside) continue;
      control->argument = region.argument;
      control->distance = static_cast<int64_t>(address - reinterpret_cast<uint64_t>(region.data));
    }
    const uint64_t stack = stack_pointer(context);
    const uint64_t reach = address > stack ? address - stack : stack - address;
    control->is_stack_overflow = has_address && control->argument < 0 && address != 0 && reach < kStackReach;
    control->crashed.store(1, std::memory_order_release);
  }
  // Restore the default action. A fault happens again when this returns; a sent signal is sent again.
  ::signal(number, SIG_DFL);
  if (number == SIGABRT || info->si_code <= 0) ::raise(number);
}

}  // namespace

void install_crash_handler(MappedArguments& arguments) {
  g_arguments = &arguments;
  static char* const memory = static_cast<char*>(std::malloc(kStackSize));
  if (!memory) return;
  stack_t stack{};
  stack.ss_sp = memory;
  stack.ss_size = kStackSize;
  ::sigaltstack(&stack, nullptr);
  struct sigaction action{};
  action.sa_sigaction = on_fatal_signal;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  ::sigemptyset(&action.sa_mask);
  for (int number : kSignals) ::sigaction(number, &action, nullptr);
}

}  // namespace tilewright::search
