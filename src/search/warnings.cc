#include "search/warnings.h"

namespace tilewright::search {
namespace {

struct Listener {
  std::mutex mutex;
  std::function<void(const std::string&)> tell;
};

/// Never destroyed: what Python listens with must not outlive the interpreter.
Listener& listener() {
  static Listener* the_listener = new Listener;
  return *the_listener;
}

}  // namespace

void set_warning_listener(std::function<void(const std::string&)> tell) {
  std::lock_guard lock(listener().mutex);
  listener().tell = std::move(tell);
}

void Warnings::once(const std::string& subject, const std::string& text) const {
  {
    std::lock_guard lock(mutex_);
    if (!told_.insert(subject).second) return;
  }
  std::function<void(const std::string&)> tell;
  {
    std::lock_guard lock(listener().mutex);
    tell = listener().tell;
  }
  if (tell) tell(text);
}

void Warnings::clear() {
  std::lock_guard lock(mutex_);
  told_.clear();
}

}  // namespace tilewright::search
