#include "script/intrinsic_spelling.h"

namespace tilewright::script {

Spelling dtype_place(Intrinsic intrinsic) {
  switch (intrinsic_row(intrinsic).script) {
    case ScriptType::kDtypeFirst:
      return Spelling::kDtypeFirst;
    case ScriptType::kDtypeLast:
      return Spelling::kDtypeLast;
    case ScriptType::kNoFunction:
      return Spelling::kGeneric;
    default:
      return Spelling::kPlain;
  }
}

namespace {

DataType type_of(const std::vector<NodeRef>& args, size_t i) {
  return i < args.size() && args[i].sort() == Sort::kExpr ? args[i].get()->dtype : DataType::void_();
}

/// The type of an intrinsic whose type the table leaves to the call.
DataType fixed_type(ScriptType script, const std::vector<NodeRef>& args) {
  switch (script) {
    case ScriptType::kInt32:
      return DataType::int_(32);
    case ScriptType::kUint32:
      return DataType::uint(32);
    case ScriptType::kBoolean:
      return DataType::bool_();
    case ScriptType::kVoid:
      return DataType::void_();
    case ScriptType::kFirst:
      return type_of(args, 0);
    case ScriptType::kSecond:
      return type_of(args, 1);
    default:
      return DataType::handle();
  }
}

}  // namespace

DataType plain_call_type(Intrinsic intrinsic, const std::vector<NodeRef>& args) {
  const IntrinsicRow& row = intrinsic_row(intrinsic);
  if (!row.takes(args.size())) return DataType::void_();
  DataType first = type_of(args, 0);
  // Functions of T bring their arguments to one type.
  bool unequal = row.arity == 2 && type_of(args, 1) != first;
  switch (row.typing) {
    case Typing::kSameFloat:
      return first.is_float() && !unequal ? first : DataType::void_();
    case Typing::kInteger:
      return first.is_integral() && !unequal ? first : DataType::void_();
    case Typing::kSameAny:
      return first;
    case Typing::kBool:
      return DataType::bool_(first.lanes);
    case Typing::kSecond:
      // Type of both alternatives of a select, or of the value of an atomic operation.
      return row.arity < 3 || type_of(args, 1) == type_of(args, 2) ? type_of(args, 1) : DataType::void_();
    case Typing::kExplicit:
      return fixed_type(row.script, args);
  }
  return DataType::void_();
}

Spelling spelling_of(Intrinsic intrinsic, const Call& call) {
  Spelling place = dtype_place(intrinsic);
  if (place == Spelling::kGeneric) return place;
  int arity = intrinsic_row(intrinsic).arity;
  if (arity >= 0 && static_cast<int>(call.args.size()) != arity) return Spelling::kGeneric;
  if (place == Spelling::kPlain && plain_call_type(intrinsic, call.args) != call.dtype) return Spelling::kGeneric;
  return place;
}

}  // namespace tilewright::script
