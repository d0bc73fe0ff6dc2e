// Prints IR as TVMScript, the Python dialect that the parser reads. Parsing the text gives the same program.
//
//   std::string text = script::print(func);
//   std::string text = script::print(module, {.syntax_sugar = false});
//   Diagnostic shown = script::located(diagnostic, module);     // its message shows the program, underlined
//
// Every node can be printed alone, and so can ill-formed programs: an undefined variable is declared, and a missing
// operand prints as None. The time is linear in the size of the program, and deep programs
// do not overflow the stack. Operators print infix only where the parser would build the same node again; where it
// would fold or promote, the constructor prints (`T.Add(1, 2)`).
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ir/fields.h"
#include "support/diagnostic.h"

namespace tilewright::script {

/// Path to a location in a program: ".body.seq[1].extent", as ir/structural.h reports it (a leading "<root>" is
/// optional).
using NodePath = std::string;

struct PrintOptions {
  std::string name = "";     ///< name of the printed function; "": its global symbol, or "main"
  bool show_meta = false;    ///< print large constants, as JSON in front of the program
  std::string package = "";  ///< package that the first lines import; "": tilewright
  std::string ir_prefix = "I";
  std::string tir_prefix = "T";
  std::string module_alias = "cls";      ///< name of the module in calls of its functions; "": the name of the class
  std::string buffer_dtype = "float32";  ///< a buffer of this type prints without dtype
  std::string int_dtype = "int32";       ///< integers of this type print as plain numbers
  std::string float_dtype = "void";      ///< default type of float literals
  bool verbose_expr = false;             ///< print the declarations of free variables before a lone expression
  int indent_spaces = 4;
  bool print_line_numbers = false;
  int num_context_lines = -1;  ///< lines to show around what is underlined; negative: all
  bool syntax_sugar = true;
  bool show_object_address = false;
  std::vector<NodePath> path_to_underline = {};
  std::vector<std::pair<NodePath, std::string>> path_to_annotate = {};
  std::vector<NodeRef> obj_to_underline = {};
  std::vector<std::pair<NodeRef, std::string>> obj_to_annotate = {};

  using Members =
      Fields<&PrintOptions::name, &PrintOptions::show_meta, &PrintOptions::package, &PrintOptions::ir_prefix,
             &PrintOptions::tir_prefix, &PrintOptions::module_alias, &PrintOptions::buffer_dtype,
             &PrintOptions::int_dtype, &PrintOptions::float_dtype, &PrintOptions::verbose_expr,
             &PrintOptions::indent_spaces, &PrintOptions::print_line_numbers, &PrintOptions::num_context_lines,
             &PrintOptions::syntax_sugar, &PrintOptions::show_object_address, &PrintOptions::path_to_underline,
             &PrintOptions::path_to_annotate, &PrintOptions::obj_to_underline, &PrintOptions::obj_to_annotate>;
};

/// Returns the error for the first invalid option (print/prefix, print/dtype, print/indent), if any.
std::optional<Diagnostic> find_invalid(const PrintOptions& options);

/// Prints the node. Invalid options fall back to their defaults; the binding refuses them beforehand.
std::string print(const NodeRef& node, const PrintOptions& options = {});

/// Adds to the diagnostic's message an excerpt of `program` with the offending nodes underlined, and the source
/// location of these nodes. Called at boundaries, where the diagnostic becomes an Exception.
Diagnostic located(Diagnostic diagnostic, const NodeRef& program);
/// Like located(), but does nothing if the user's own source line can be shown. Scripts parsed from strings have none.
Diagnostic with_excerpt(Diagnostic diagnostic, const NodeRef& program);

/// The lines in which two programs differ, with some context: "- " only on the left, "+ " only on the right. Empty
/// when the texts are equal.
std::string diff(const NodeRef& lhs, const NodeRef& rhs);

}  // namespace tilewright::script
