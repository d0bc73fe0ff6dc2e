#include "codegen/c_writer/instructions.h"

#include <fmt/format.h>

#include "arith/analyzer.h"
#include "ir/async_copy.h"
#include "ir/build.h"
#include "ir/refuse_at.h"
#include "ir/traverse.h"
#include "support/ranges.h"

namespace tilewright::codegen {
namespace {

/// What says which registers an instruction uses: numbers of fragments, or places of elements.
std::vector<Expr> places_of_registers(const Ref<Call>& call) {
  std::vector<size_t> positions;
  for (size_t at : register_arguments(*call)) positions.push_back(at + 1);
  for (const auto& [fragment, number] : fragment_arguments(*call)) positions.push_back(number);
  std::vector<Expr> places;
  for (size_t at : positions) {
    if (at < call->args.size()) places.emplace_back(call->args[at]);
  }
  return places;
}

}  // namespace

std::string without_parentheses(const std::string& text) {
  if (text.empty() || text[0] != '(') return text;
  int open = 0;
  for (size_t i : indices_of(text)) {
    open += text[i] == '(' ? 1 : text[i] == ')' ? -1 : 0;
    if (open == 0) return i + 1 == text.size() ? text.substr(1, text.size() - 2) : text;
  }
  return text;
}

Instructions::Instructions(const Dialect& dialect, Functions& functions, const Stmt& kernel, Spellings spellings)
    : dialect_(dialect), functions_(functions), fragments_(kernel), text_(std::move(spellings)) {
  visit(kernel, [&](const Ref<Call>& call) {
    for (const Expr& place : places_of_registers(call)) {
      visit(place, [&](const Ref<Var>& v) { selectors_.insert(v); });
    }
  });
}

bool Instructions::holds(const Expr& value) {
  return is_fragment_step(value) || is_async_step(value) || is_warp_step(value);
}

Result<std::string> Instructions::statement(const Ref<Call>& call) {
  if (is_fragment_step(call)) return fragment_step(call);
  return is_async_step(call) ? async_step(call) : warp_step(call);
}

Diagnostic Instructions::not_there(const Ref<Call>& call, const std::string& why, const std::string& hint) const {
  return refuse_at(call, "codegen/not-on-device",
                   fmt::format("there is no code for {} in {}{}", call->op.as<Op>()->name, dialect_.name(), why), hint);
}

Diagnostic Instructions::wrong_rows(const Ref<Call>& call, const std::string& which) {
  return refuse_at(call, "codegen/fragment-stride",
                   fmt::format("{} begin at addresses that are not multiples of 16 bytes, and {} loads and "
                               "stores such rows only",
                               which, call->op.as<Op>()->name),
                   "pad the rows in shared memory with storage_align");
}

Result<std::string> Instructions::fragment_step(const Ref<Call>& call) {
  auto refuse = [&](const std::string& why) {
    return not_there(call, why, "compile for \"cuda\", with fragments of 16 x 16 x 16 elements of float16 or int8");
  };
  FragmentStep step;
  step.intrinsic = intrinsic_of(*call);
  const bool is_product = step.intrinsic == Intrinsic::k_tvm_mma_sync;
  if (call->args.size() < (is_product ? 8 : 6)) return refuse("");
  for (size_t i = 0; i < (is_product ? 8 : 2); i += 2) {
    auto shape = fragments_.shape_of(call->args[i]);
    if (!shape) return refuse(" of fragments whose shapes the program does not say");
    const int64_t registers = dialect_.fragment_registers(*shape);
    if (registers == 0) return refuse(fmt::format(" on fragments of {}", shape->dtype.str()));
    const std::string number = text_.index(call->arg(is_product ? i + 1 : 4));
    step.shapes.push_back(*shape);
    step.registers.push_back(fmt::format("{} + {} * {}", text_.name(call->args[i].borrow<Var>()), number, registers));
  }
  if (step.intrinsic == Intrinsic::k_tvm_fill_fragment) {
    step.value = text_.value(tilewright::cast(step.shapes[0].dtype, call->arg(5)));
  } else if (!is_product) {
    auto memory = call->args.size() == 8 ? Fragments::memory_of(call->args[5]) : std::nullopt;
    const StringImm* layout = call->args.back().as<StringImm>();
    if (!memory || !layout) return refuse("");
    const Expr stride(call->args[6]);
    if (auto known = const_int(stride); known && *known * memory->dtype.bits % 128 != 0) {
      return wrong_rows(call, fmt::format("rows of {} elements of {}", *known, memory->dtype.str()));
    }
    step.is_col_major = layout->value == "col_major";
    step.pointer = fmt::format("({}*){} + {}", text_.storage(memory->dtype), text_.name(memory->data),
                               text_.index(memory->offset));
    step.stride = text_.index(stride);
  }
  const auto [name, text] = dialect_.fragment_function(step);
  if (name.empty()) return refuse(" of these shapes and types");
  functions_.add(name, text);
  std::vector<std::string> arguments = step.registers;
  for (const std::string* more : {&step.pointer, &step.stride, &step.value}) {
    if (!more->empty()) arguments.push_back(without_parentheses(*more));
  }
  return fmt::format("{}({});", name, fmt::join(arguments, ", "));
}

Result<std::string> Instructions::async_step(const Ref<Call>& call) {
  auto copy = AsyncCopy::of(call);
  const int64_t groups = call->args.size() == 1 ? const_int(call->arg(0)).value_or(0) : 0;
  const auto [name, text] = dialect_.async_function(intrinsic_of(*call), copy ? copy->bytes : groups);
  if (name.empty()) {
    return not_there(call, "", "compile for \"cuda\"; a software pipeline copies in the background where it can");
  }
  functions_.add(name, text);
  if (!copy) return name + "();";
  const std::string t = text_.storage(copy->dtype);
  return fmt::format("{0}(({1}*){2} + {3}, (const {1}*){4} + {5}, {6});", name, t, text_.name(copy->to),
                     text_.index(copy->to_place), text_.name(copy->from), text_.index(copy->from_place),
                     copy->condition.defined() ? text_.value(copy->condition) : "true");
}

Result<std::string> Instructions::warp_step(const Ref<Call>& call) {
  auto first = [&](const Registers& registers) {
    return fmt::format("{} + {}", text_.name(registers.data), text_.index(registers.place));
  };
  const auto [name, text] = dialect_.warp_function(call);
  if (name.empty()) {
    return not_there(
        call, " of these shapes and types",
        "use m16n8k8 or m16n8k16 of float16 or bfloat16, m16n8k16 or m16n8k32 of int8, or m16n8k8 of tf32");
  }
  if (auto product = WarpProduct::of(call)) {
    functions_.add(name, text);
    return fmt::format("{}({}, {}, {});", name, first(product->sums), first(product->a), first(product->b));
  }
  auto load = WarpLoad::of(call);
  TW_CHECK(load.has_value());
  arith::Analyzer analyzer;
  const Expr place =
      analyzer.simplify(cast(DataType::int_(32), load->from.offset) + cast(DataType::int_(32), load->place));
  const arith::ModularSet at = analyzer.modular_set(place);
  if (at.coeff % load->row_elements() != 0 || at.base % load->row_elements() != 0) {
    return wrong_rows(call, fmt::format("rows of {}", load->to.dtype.str()));
  }
  functions_.add(name, text);
  return fmt::format("{}({}, ({}*){} + {});", name, first(load->to), text_.storage(load->from.dtype),
                     text_.name(load->from.data), text_.index(place));
}

}  // namespace tilewright::codegen
