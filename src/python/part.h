// Bindings of the parts of a search (rules, postprocessors, mutators, ...). The name, the constructor and the signature
// of a part's class are derived from its options (search/part.h). For the abstract class of a part, this file has what
// subclasses in Python need.
//
//   part<search::AddRFactor>(m, "docstring of the class", "docstring of the constructor");
#pragma once

#include "python/fields.h"
#include "python/process_exit.h"
#include "python/search_components.h"
#include "search/cost_model/cost_model.h"
#include "search/part.h"

namespace tilewright::python {

#pragma GCC visibility push(hidden)  // as the types of nanobind that these hold

// ---- constructors: the type of an option's argument; kNone: it may be None, for the default

template <class F, bool kRequired = false>
struct Option {
  using type = F;
  static constexpr bool kNone = false;
  static void from_python(F&& value, F& option) { option = std::move(value); }
};
template <class F>
struct Option<std::optional<F>> {
  using type = std::optional<F>;
  static constexpr bool kNone = true;
  static void from_python(type&& value, type& option) { option = std::move(value); }
};
template <class F>
struct Option<std::vector<F>> {
  using type = std::optional<std::vector<F>>;
  static constexpr bool kNone = true;
  static void from_python(type&& value, std::vector<F>& option) {
    if (value) option = std::move(*value);
  }
};
/// An option whose argument is a Python object, which `From` converts.
template <class F, auto From>
struct ObjectOption {
  using type = nb::object;
  static constexpr bool kNone = true;
  static void from_python(nb::object&& value, F& option) {
    if (!value.is_none()) option = From(value);
  }
};

inline std::shared_ptr<search::CostModel> cost_model_of(const nb::object& given) {
  return nb::cast<std::shared_ptr<search::CostModel>>(given);
}
template <>
struct Option<std::shared_ptr<search::CostModel>> : ObjectOption<std::shared_ptr<search::CostModel>, cost_model_of> {};

template <auto M, bool kRequired, class Options>
auto option_argument(const Options& defaults) {
  using Taken = Option<typename MemberType<M>::type, kRequired>;
  const nb::arg argument(field_name<M>());
  if constexpr (kRequired) {
    return argument;
  } else if constexpr (Taken::kNone) {
    return argument = nb::none();
  } else {
    return argument = defaults.*M;
  }
}

template <class C, class Options, auto... M, size_t... I, class Class, class... Extra>
void bind_constructor(Class& cls, Fields<M...>, std::index_sequence<I...>, const Extra&... extra) {
  constexpr size_t kRequired = [] {
    if constexpr (requires { Options::kRequired; }) return Options::kRequired;
    return size_t{0};
  }();
  cls.def(
      "__init__",
      [](C* self, typename Option<typename MemberType<M>::type, (I < kRequired)>::type... values) {
        Options options;
        (Option<typename MemberType<M>::type, (I < kRequired)>::from_python(std::move(values), options.*M), ...);
        if constexpr (requires { C::check(options); }) unwrap_status(C::check(options));
        new (self) C(std::move(options));
      },
      extra..., option_argument<M, (I < kRequired)>(Options())...);
}

/// Binds the class of part C. `extra`: the docstring of the constructor, and nb::kw_only() if it has only keyword
/// arguments.
template <class C, class... Extra>
nb::class_<C, typename C::Kind> part(nb::module_& m, const char* doc, const Extra&... extra) {
  static const std::string kName = search::type_name<C>();
  nb::class_<C, typename C::Kind> cls(m, kName.c_str(), doc);
  using Options = typename C::Options;
  using Members = typename Options::Members;
  if constexpr (Members::count == 0) {
    cls.def(nb::init<>());
  } else {
    bind_constructor<C, Options>(cls, Members{}, std::make_index_sequence<Members::count>{}, extra...);
  }
  return cls;
}

/// Options as objects, for what takes several kinds of them.
template <class Options>
void bind_options(nb::module_& m, const char* doc) {
  static const std::string kName = search::type_name<Options>();
  nb::class_<Options> cls(m, kName.c_str(), doc);
  using Members = typename Options::Members;
  bind_constructor<Options, Options>(cls, Members{}, std::make_index_sequence<Members::count>{}, nb::kw_only());
}

// ---- the abstract classes

struct OfPython {
  virtual ~OfPython() = default;
};

/// The C++ side of subclasses in Python. Their exceptions that are not Tilewright's get the code.
template <class Base, const char* kCode>
struct PythonClass : Base, OfPython {
  NB_TRAMPOLINE(Base);

  const Base* self() const { return this; }
  std::string class_of_self() const { return class_name(nb::find(self())); }
  /// Returns use(method) for the Python method of that name, holding the GIL.
  template <class Use>
  auto call(const char* method, const Use& use) const {
    if constexpr (std::is_void_v<decltype(use(nb::object()))>) {
      return in_python(kCode, [&]() -> Status {
        use(overridden(self(), method));
        return Ok{};
      });
    } else {
      return in_python(kCode, [&] { return use(overridden(self(), method)); });
    }
  }
};
template <class Base, const char* kCode>
struct PythonPart : PythonClass<Base, kCode> {
  Status initialize(const search::TuneContext& context) override {
    return in_python(kCode, [&]() -> Status {
      const Base* self = this;
      if (overrides(self, "initialize")) overridden(self, "initialize")(context_to_python(context));
      return Ok{};
    });
  }
  std::shared_ptr<Base> clone() const override { return cloned(this->self()); }
};

template <class Base>
bool is_of_python(const Base& part) {
  return dynamic_cast<const OfPython*>(&part) != nullptr;
}

/// For a method that Python calls and C++ implements: a subclass in Python that does not define it says so.
template <class Base>
void require_native(const Base& part, const char* method) {
  if (is_of_python(part)) not_defined(&part, method);
}

/// A subclass in Python calls this by super().
template <class Base>
void initialize_part(Base& part, const search::TuneContext& context) {
  if (!is_of_python(part)) unwrap_status(part.initialize(context));
}

template <class Base>
nb::object clone_part(const nb::object& self) {
  const auto& part = nb::cast<const Base&>(self);
  return is_of_python(part) ? self : nb::cast(part.clone());
}

#pragma GCC visibility pop

}  // namespace tilewright::python
