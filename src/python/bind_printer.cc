// script(), show(), repr: the printer's options as keyword arguments, derived from their field list.

#include <algorithm>

#include "python/fields.h"
#include "python/module.h"
#include "python/wording.h"
#include "script/printer.h"

namespace tilewright::python {
namespace {

// ---- options as arguments. Annotations by location are dicts. A location with a method to_text(program) is converted
// by it.

template <class F>
struct OptionArgument {
  using type = F;
  static F from_python(F&& value, const NodeRef&) { return std::move(value); }
  static nb::object to_python(const F& value) { return nb::cast(value); }
};

template <class A>
A place_in(nb::handle place, const NodeRef& root) {
  if constexpr (std::is_same_v<A, script::NodePath>) {
    if (nb::hasattr(place, "to_text")) return nb::cast<A>(place.attr("to_text")(root));
  }
  return nb::cast<A>(place);
}

template <>
struct OptionArgument<std::vector<script::NodePath>> {
  using type = nb::typed<nb::sequence, nb::str>;
  static std::vector<script::NodePath> from_python(type&& value, const NodeRef& root) {
    std::vector<script::NodePath> result;
    for (nb::handle place : value) result.push_back(place_in<script::NodePath>(place, root));
    return result;
  }
  static nb::object to_python(const std::vector<script::NodePath>&) { return nb::list(); }
};
template <class A, class B>
struct OptionArgument<std::vector<std::pair<A, B>>> {
  using type = nb::dict;
  static std::vector<std::pair<A, B>> from_python(nb::dict&& value, const NodeRef& root) {
    std::vector<std::pair<A, B>> result;
    for (auto [key, item] : value) result.emplace_back(place_in<A>(key, root), nb::cast<B>(item));
    return result;
  }
  static nb::object to_python(const std::vector<std::pair<A, B>>&) { return nb::dict(); }
};

template <auto M>
using OptionOf = OptionArgument<typename MemberType<M>::type>;

template <auto... M>
void bind_script(nb::class_<NodeBase>& cls, Fields<M...>) {
  script::PrintOptions defaults;
  cls.def(
      "script",
      [](const NodeRef& self, typename OptionOf<M>::type... values) {
        script::PrintOptions options;
        ((options.*M = OptionOf<M>::from_python(std::move(values), self)), ...);
        return print_in_words(self, std::move(options));
      },
      nb::kw_only(), (nb::arg(field_name<M>()) = OptionOf<M>::to_python(defaults.*M))...,
      "The node as TVMScript text, which the parser reads back as the same program.\n\n"
      "Paths name places as structural_mismatch does: '<root>.body.block.body.extent'. Objects are nodes of the\n"
      "program; what is annotated gets the given text as a comment. The first lines import from `package`; by default\n"
      "from tilewright, or as the wording says that a runner of other scripts has entered.\n\n"
      "Raises:\n    tilewright.ArgumentError: an option makes no sense (a prefix that is not an identifier, ...).");
}

/// Maximum number of names in a repr.
constexpr size_t kNamesShown = 6;

std::string listed(const std::vector<std::string>& names) {
  std::string text;
  for (size_t i = 0; i < std::min(names.size(), kNamesShown); ++i) text += (i ? ", " : "") + names[i];
  return text + (names.size() > kNamesShown ? ", ..." : "");
}

/// Returns the repr of a node: one line for functions and modules, the script for smaller nodes.
std::string brief(const NodeRef& node) {
  std::vector<std::string> names;
  if (const Module* module = node.as<Module>()) {
    for (const auto& [name, func] : module->functions) names.push_back(name);
    return "<Module of " + (names.empty() ? "no functions" : listed(names)) + ">";
  }
  const PrimFunc* func = node.as<PrimFunc>();
  if (!func) return print_in_words(node, {});
  for (const Ref<Var>& param : func->params) {
    const Ref<Buffer> buffer = func->buffer_of(param);
    names.push_back(buffer.defined() ? buffer->name : param->name_hint);
  }
  const NodeRef symbol = func->attrs.get("global_symbol");
  const StringImm* name = symbol.as<StringImm>();
  return "<PrimFunc" + (name ? " " + name->value : "") + "(" + listed(names) + ")>";
}

}  // namespace

void bind_printer(nb::module_& m) {
  auto cls = nb::borrow<nb::class_<NodeBase>>(nb::type<NodeBase>());
  bind_script(cls, script::PrintOptions::Members{});
  auto plain = [](const NodeRef& self) { return print_in_words(self, {}); };
  cls.def("__str__", plain);
  cls.def("__repr__", [](const NodeRef& self) {
    nb::object wording = present_wording();
    bool whole = !wording.is_none() && nb::cast<bool>(wording.attr("whole"));
    return whole ? print_in_words(self, {}) : brief(self);
  });
  cls.def(
      "show",
      [](const NodeRef& self, const nb::args& style, const nb::kwargs& options) {
        nb::module_::import_("tilewright.script.display").attr("show")(self, *style, **options);
      },
      "style"_a, "options"_a,
      "Prints the node's script, colored in a terminal and in a notebook. Options are those of script(), and style:\n"
      "'light', 'dark', 'ansi' or the name of a Pygments style.");
  cls.def(
      "_repr_html_",
      [](const NodeRef& self) {
        return nb::module_::import_("tilewright.script.display").attr("html")(print_in_words(self, {}));
      },
      "The script as colored HTML, for notebooks.");
  m.def("script_diff", &script::diff, "lhs"_a.none(), "rhs"_a.none(),
        "The lines in which the scripts of two programs differ, with context; empty when the texts are equal.");
}

}  // namespace tilewright::python
