#include "search/warnings.h"

#include <fmt/format.h>

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

std::string in_one_line(const std::string& text) {
  std::string line = text.substr(0, text.find_last_not_of('\n') + 1);
  if (!text.starts_with("Traceback")) return line;
  line.erase(0, line.rfind('\n') + 1);
  const size_t place = text.rfind("File \"");
  return place == std::string::npos ? line
                                    : fmt::format("{} ({})", line, text.substr(place, text.find('\n', place) - place));
}

void Warnings::clear() {
  std::lock_guard lock(mutex_);
  told_.clear();
}

}  // namespace tilewright::search
