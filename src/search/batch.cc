#include "search/batch.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace tilewright::search {

void on_threads(int threads, size_t count, const std::function<void(size_t)>& work) {
  constexpr size_t kWorthAThread = 8;  // items: starting a thread takes as long as a few of them
  size_t workers = std::min<size_t>(std::max(threads, 1), (count + kWorthAThread - 1) / kWorthAThread);
  std::atomic<size_t> next = 0;
  std::exception_ptr thrown;
  std::mutex lock;
  auto run = [&] {
    try {
      for (size_t i = next++; i < count; i = next++) work(i);
    } catch (...) {
      std::lock_guard guard(lock);
      if (!thrown) thrown = std::current_exception();
      next = count;
    }
  };
  std::vector<std::thread> others;
  for (size_t i = 1; i < workers; ++i) others.emplace_back(run);
  run();
  for (std::thread& other : others) other.join();
  if (thrown) std::rethrow_exception(thrown);
}

}  // namespace tilewright::search
