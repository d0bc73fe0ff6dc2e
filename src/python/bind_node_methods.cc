// Methods of functions and modules beside their fields: copies with one change, and lookup by name.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "arith/index_map.h"
#include "ir/build.h"
#include "ir/structural.h"
#include "python/fields.h"
#include "python/module.h"
#include "python/node_caster.h"

namespace tilewright::python {
namespace {

/// One attribute, or all those of a dict.
template <class T>
Ref<T> with_attr(const Ref<T>& self, nb::object key, nb::object value) {
  T copy = *self;
  if (nb::isinstance<nb::dict>(key)) {
    for (auto [name, item] : nb::borrow<nb::dict>(key)) {
      copy.attrs.set(nb::cast<std::string>(name), value_from_python(item));
    }
  } else {
    copy.attrs.set(nb::cast<std::string>(key), value_from_python(value));
  }
  return make(std::move(copy), self.span());
}

template <class T>
Ref<T> without_attr(const Ref<T>& self, const std::string& key) {
  T copy = *self;
  copy.attrs.erase(key);
  return make(std::move(copy), self.span());
}

template <class T>
void add_attr_methods() {
  add_method<T>("with_attr", &with_attr<T>, "attr_key_or_dict"_a, "attr_value"_a = nb::none(),
                "A copy with one more attribute, or with those of a dict.");
  add_method<T>("without_attr", &without_attr<T>, "attr_key"_a, "A copy without the attribute.");
}

std::string function_name(nb::handle key) {
  NodeRef node;
  if (nb::try_cast(key, node) && node.is<GlobalVar>()) return node.as<GlobalVar>()->name_hint;
  return nb::cast<std::string>(key);
}

Ref<GlobalVar> global_var(const Ref<Module>& self, const std::string& name) {
  if (!self->get(name).defined()) {
    std::string known;
    for (const auto& [key, func] : self->functions) known += (known.empty() ? "'" : ", '") + key + "'";
    throw Exception(argument_error("ir/no-function", "the module has no function '" + name + "'",
                                   known.empty() ? "it is empty" : "it has " + known));
  }
  return make<GlobalVar>({name});
}

/// Types are values: two of the same structure are the same type.
template <class T>
void add_type_equality() {
  add_method<T>(
      "__eq__",
      [](const Ref<T>& self, nb::handle type) {
        NodeRef node(nb::detail::get_node(type, 0, nullptr));
        return node.defined() && structural_equal(self, node);
      },
      "type"_a.none());
  add_method<T>("__ne__", [](nb::handle self, nb::handle type) { return !self.equal(type); }, "type"_a.none());
  add_method<T>("__hash__", [](const Ref<T>& self) { return static_cast<Py_hash_t>(structural_hash(self).lo >> 1); });
}

/// A string of a program compares with one of Python's, and with another node by its value.
bool equals_string(const Ref<StringImm>& self, nb::handle other) {
  if (nb::isinstance<nb::str>(other)) return nb::cast<std::string>(other) == self->value;
  NodeRef node(nb::detail::get_node(other, 0, nullptr));
  return node.is<StringImm>() && node.as<StringImm>()->value == self->value;
}

void check_count(const IndexMap& map, size_t count) {
  if (map.initial_indices.size() == count) return;
  throw Exception(argument_error(
      "index-map/count",
      "the map takes " + std::to_string(map.initial_indices.size()) + " indices, not " + std::to_string(count),
      "give one index for each of its parameters"));
}

arith::InvertedMap inverted(const Ref<IndexMap>& self, const std::vector<Expr>& shape) {
  arith::Analyzer analyzer;
  auto found = arith::invert(*self, shape, analyzer);
  if (!found.ok()) throw Exception(std::move(found.error()));
  return std::move(*found);
}

void add_index_map_methods() {
  add_method<IndexMap>(
      "map_indices",
      [](const Ref<IndexMap>& self, const std::vector<Expr>& indices) {
        check_count(*self, indices.size());
        arith::Analyzer analyzer;
        return arith::map_indices(*self, indices, analyzer);
      },
      "indices"_a, "What the map makes of indices.");
  add_method<IndexMap>(
      "map_shape",
      [](const Ref<IndexMap>& self, const std::vector<Expr>& shape) {
        check_count(*self, shape.size());
        arith::Analyzer analyzer;
        auto result = arith::map_shape(*self, shape, analyzer);
        if (result.empty() && !self->final_indices.empty()) {
          throw Exception(argument_error("index-map/shape", "the images of that shape have no known ends",
                                         "give numbers as the shape, and a map whose results have ends"));
        }
        return result;
      },
      "shape"_a, "The extents of the images of an array of that shape.");
  add_method<IndexMap>(
      "inverse",
      [](const Ref<IndexMap>& self, const std::vector<Expr>& shape) -> NodeRef {
        if (self->inverse_index_map.defined()) return self->inverse_index_map;
        auto found = inverted(self, shape);
        if (found.holes || !is_false(found.padding)) {
          throw Exception(argument_error("index-map/bijective",
                                         "some new indices are the image of no index of that shape",
                                         "non_surjective_inverse() says which"));
        }
        return found.inverse;
      },
      "shape"_a, "The way back, of a map that takes an array of that shape one to one onto another one.");
  add_method<IndexMap>(
      "non_surjective_inverse",
      [](const Ref<IndexMap>& self, const std::vector<Expr>& shape) {
        auto found = inverted(self, shape);
        if (found.holes) {
          throw Exception(argument_error("index-map/holes", "which new indices are the image of no index is not known",
                                         "multiply indices only where the products stay adjacent"));
        }
        return nb::make_tuple(node_to_python(found.inverse), node_to_python(found.padding));
      },
      "shape"_a,
      "The way back, and the condition on its indices under which they are the image of no index of that shape.");
  add_method<IndexMap>(
      "is_equivalent_to",
      [](const Ref<IndexMap>& self, const Ref<IndexMap>& other) { return arith::equivalent(*self, *other); },
      "other_map"_a, "Whether both maps are proved to do the same to all indices.");
}

}  // namespace

void bind_node_methods(nb::module_&) {
  add_index_map_methods();
  add_type_equality<PrimType>();
  add_type_equality<PointerType>();
  add_type_equality<TupleType>();
  add_method<StringImm>("__eq__", &equals_string, "other"_a.none());
  add_method<StringImm>(
      "__ne__", [](nb::handle self, nb::handle other) { return !self.equal(other); }, "other"_a.none());
  add_method<StringImm>("__hash__", [](const Ref<StringImm>& self) {
    return PyObject_Hash(nb::str(self->value.c_str(), self->value.size()).ptr());
  });
  add_attr_methods<PrimFunc>();
  add_attr_methods<Module>();
  add_method<PrimFunc>(
      "with_body", [](const Ref<PrimFunc>& self, const Stmt& body) { return with_body(self, body); }, "new_body"_a,
      "A copy with another body.");
  add_method<Module>(
      "__getitem__",
      [](const Ref<Module>& self, nb::handle key) {
        std::string name = function_name(key);
        global_var(self, name);
        return self->get(name);
      },
      "name"_a, "The function of that name.");
  nb::object property = nb::module_::import_("builtins").attr("property");
  auto var = nb::borrow<nb::object>(nb::type<NodeOf<Var>>());
  nb::object name = nb::cpp_function([](const Ref<Var>& self) { return self->name_hint; }, nb::name("name"),
                                     nb::is_method(), nb::scope(var), "The same as name_hint.");
  nb::setattr(var, "name", property(name));
  auto module = nb::borrow<nb::object>(nb::type<NodeOf<Module>>());
  nb::delattr(module, "functions");  // remove the attribute of the field list
  nb::object functions = nb::cpp_function(
      [](const Ref<Module>& self) {
        nb::dict result;
        for (const auto& [name, func] : self->functions)
          result[nb::str(name.c_str(), name.size())] = node_to_python(func);
        return nb::module_::import_("tilewright.support.function_names").attr("Functions")(result);
      },
      nb::name("functions"), nb::is_method(), nb::scope(module), "The functions by their names, or by GlobalVars.",
      nb::sig("def functions(self) -> dict[str, Func]"));
  nb::setattr(module, "functions", property(functions));
  // Functions of a module are identified by their names.
  add_method<GlobalVar>(
      "__eq__",
      [](const Ref<GlobalVar>& self, nb::handle other) {
        NodeRef node(nb::detail::get_node(other, 0, nullptr));
        return node.is<GlobalVar>() && node.as<GlobalVar>()->name_hint == self->name_hint;
      },
      "other"_a.none());
  add_method<GlobalVar>(
      "__ne__", [](nb::handle self, nb::handle other) { return !self.equal(other); }, "other"_a.none());
  add_method<GlobalVar>("__hash__",
                        [](const Ref<GlobalVar>& self) { return std::hash<std::string>()(self->name_hint); });
  add_method<SeqStmt>("__len__", [](const Ref<SeqStmt>& self) { return self->seq.size(); });
  add_method<SeqStmt>(
      "__getitem__", [](nb::handle self, nb::handle index) -> nb::object { return self.attr("seq")[index]; }, "index"_a,
      "A statement of the sequence.");
  add_method<Module>("__contains__",
                     [](const Ref<Module>& self, nb::handle key) { return self->get(function_name(key)).defined(); });
  add_method<Module>("__len__", [](const Ref<Module>& self) { return self->functions.size(); });
  add_method<Module>("get_global_var", &global_var, "name"_a, "What calls the function of that name.");
  add_method<Module>(
      "get_global_vars",
      [](const Ref<Module>& self) {
        nb::list result;
        for (const auto& [name, func] : self->functions) result.append(node_to_python(make<GlobalVar>({name})));
        return result;
      },
      "What calls the functions, in the order of their names.");
}

}  // namespace tilewright::python
