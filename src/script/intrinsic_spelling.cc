#include "script/intrinsic_spelling.h"

#include <algorithm>

namespace tilewright::script {

Spelling dtype_place(Intrinsic intrinsic) {
  switch (intrinsic) {
    case Intrinsic::k_reinterpret:
    case Intrinsic::k_call_extern:
    case Intrinsic::k_call_pure_extern:
    case Intrinsic::k_call_llvm_intrin:
    case Intrinsic::k_call_llvm_pure_intrin:
    case Intrinsic::k_type_annotation:
    case Intrinsic::k_get_active_lane_mask:
    case Intrinsic::k_vectorlow:
    case Intrinsic::k_vectorhigh:
    case Intrinsic::k_vectorcombine:
    case Intrinsic::k_undef:
    case Intrinsic::k_large_uint_imm:
    case Intrinsic::k_ptx_mma:
    case Intrinsic::k_ptx_mma_sp:
    case Intrinsic::k_ptx_ldmatrix:
    case Intrinsic::k_ptx_cp_async:
    case Intrinsic::k_ptx_cp_async_bulk:
    case Intrinsic::k_mma_store:
    case Intrinsic::k_mma_fill:
      return Spelling::kDtypeFirst;
    case Intrinsic::k_tvm_struct_get:
      return Spelling::kDtypeLast;
    case Intrinsic::k_prefetch:  // T.prefetch is a statement of another kind
    case Intrinsic::kUnknown:
      return Spelling::kGeneric;
    default:
      return Spelling::kPlain;
  }
}

namespace {

DataType type_of(const std::vector<NodeRef>& args, size_t i) {
  return i < args.size() && args[i].sort() == Sort::kExpr ? args[i].get()->dtype : DataType::void_();
}

/// Of the intrinsics whose type the table leaves to the call, but scripts do not spell.
DataType fixed_type(Intrinsic intrinsic, const std::vector<NodeRef>& args) {
  switch (intrinsic) {
    case Intrinsic::k_clz:
    case Intrinsic::k_call_packed:
    case Intrinsic::k_call_cpacked:
    case Intrinsic::k_tvm_storage_sync:
    case Intrinsic::k_tvm_struct_set:
    case Intrinsic::k_vscale:
    case Intrinsic::k_dp4a:
    case Intrinsic::k_print:
    case Intrinsic::k_q_multiply_shift:
    case Intrinsic::k_q_multiply_shift_per_axis:
    case Intrinsic::k_tvm_call_packed_lowered:
    case Intrinsic::k_tvm_call_cpacked_lowered:
    case Intrinsic::k_tvm_check_return:
    case Intrinsic::k_tvm_context_id:
    case Intrinsic::k_anylist_resetitem:
    case Intrinsic::k_anylist_setitem_call_packed:
    case Intrinsic::k_anylist_setitem_call_cpacked:
    case Intrinsic::k_TVMBackendFreeWorkspace:
      return DataType::int_(32);
    case Intrinsic::k_ptx_wait_group:
    case Intrinsic::k_ptx_commit_group:
    case Intrinsic::k_ptx_cp_async_barrier:
    case Intrinsic::k_ptx_init_barrier_thread_count:
    case Intrinsic::k_ptx_arrive_barrier:
    case Intrinsic::k_ptx_arrive_barrier_expect_tx:
    case Intrinsic::k_ptx_wait_barrier:
    case Intrinsic::k_create_barriers:
      return DataType::void_();
    case Intrinsic::k_tvm_warp_activemask:
      return DataType::uint(32);
    case Intrinsic::k_assume:
      return DataType::bool_();
    case Intrinsic::k_ret:
      return type_of(args, 0);
    case Intrinsic::k_tvm_warp_shuffle:
    case Intrinsic::k_tvm_warp_shuffle_up:
    case Intrinsic::k_tvm_warp_shuffle_down:
      return type_of(args, 1);
    default:
      return DataType::handle();
  }
}

}  // namespace

DataType plain_call_type(Intrinsic intrinsic, const std::vector<NodeRef>& args) {
  const IntrinsicRow& row = intrinsic_row(intrinsic);
  if (row.arity >= 0 && static_cast<int>(args.size()) != row.arity) return DataType::void_();
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
      return type_of(args, 1) == type_of(args, 2) ? type_of(args, 1) : DataType::void_();
    case Typing::kExplicit:
      return fixed_type(intrinsic, args);
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
