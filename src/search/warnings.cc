#include "search/warnings.h"

namespace tilewright::search {
namespace {

struct Listener {
  std::mutex mutex;
  std::function<void(const std::string&)> notify;
};

/// Never destroyed: what Python listens with must not outlive the interpreter.
Listener& listener() {
  static Listener* the_listener = new Listener;
  return *the_listener;
}

}  // namespace

void set_warning_listener(std::function<void(const std::string&)> notify) {
  std::lock_guard lock(listener().mutex);
  listener().notify = std::move(notify);
}

void Warnings::once(const std::string& subject, const std::string& text) const {
  {
    std::lock_guard lock(mutex_);
    if (!reported_.insert(subject).second) return;
  }
  std::function<void(const std::string&)> notify;
  {
    std::lock_guard lock(listener().mutex);
    notify = listener().notify;
  }
  if (notify) notify(text);
}

void Warnings::clear() {
  std::lock_guard lock(mutex_);
  reported_.clear();
}

}  // namespace tilewright::search
