// Base of the parts of a search that are made from options: rules, postprocessors, mutators.
//
//   struct AddRFactorOptions { int64_t max_jobs_per_core = 16; ...; using Members = Fields<...>; };
//   class AddRFactor final : public PartOf<AddRFactor, ScheduleRule, AddRFactorOptions> { ... };
//
// Python's class, its constructor and its signature follow from the name and from the options (python/part.h). Options
// without a default in Python come first, `kRequired` of them; `check`, where a part has it, refuses others.
#pragma once

#include <memory>
#include <string>

#include "ir/fields.h"

namespace tilewright::search {

/// Returns the name of the type without namespaces.
template <class T>
std::string type_name() {
  std::string_view text = __PRETTY_FUNCTION__;  // "... [with T = tilewright::search::AddRFactor; ...]"
  text.remove_prefix(text.find("T = "));
  text = text.substr(0, text.find_first_of(";]"));
  return std::string(text.substr(text.find_last_of(": ") + 1));
}

struct NoOptions {
  using Members = Fields<>;
};

/// `Base` is the kind of part, or a part whose options are among these.
template <class Self, class Base, class OptionsOf = NoOptions>
class PartOf : public Base {
 public:
  using Options = OptionsOf;
  explicit PartOf(Options options = {})
    requires std::is_abstract_v<Base>
      : options_(std::move(options)) {}
  explicit PartOf(Options options) : Base(options), options_(std::move(options)) {}

  std::string name() const override { return type_name<Self>(); }
  std::shared_ptr<typename Base::Kind> clone() const override {
    return std::make_shared<Self>(static_cast<const Self&>(*this));
  }

 protected:
  Options options_;
};

}  // namespace tilewright::search
