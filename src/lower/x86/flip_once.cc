// Flip the signs of bytes once, where every load of a buffer flips them.
//
//   Before                                            After
//   for j in range(32):                               for i in T.parallel(...):
//     for k in range(128):                              A_flipped[...] = A[...] ^ 0x80...
//       ... int32(A[i * 512 + k * 4:... + 4])         for j in range(32):
//             ^ 0x80808080                              for k in range(128):
//                                                         ... int32(A_flipped[i * 512 + k * 4:... + 4])
//
// Instructions that multiply bytes without signs by bytes with signs take one operand flipped; in a tile of a product
// that is a step for each of its rows, beside two or three products. What is allocated in the function is flipped where
// it is stored, and an argument in a copy, if it is loaded often enough.
//
// Needs      vector code, flat buffers
// Ensures    the same values
// Placement  after vectorize_loops and form_dot_products, which flip; before loops are unrolled
#include <algorithm>
#include <unordered_map>

#include "ir/build.h"
#include "ir/traverse.h"
#include "lower/passes.h"
#include "lower/vector/lane_independence.h"
#include "lower/vector/vector_math.h"

namespace tilewright::lower {
namespace {

/// Times that a byte of an argument is loaded which pay for the copy.
constexpr double kOften = 8;
/// Bytes that the copy takes at a time, and those that one iteration of its outer loop takes.
constexpr int64_t kVector = 64, kChunk = 4096;

struct Flips {
  Ref<Buffer> view;  ///< the one through which it is accessed
  bool all = true;   ///< each load is flipped, in the same way
  int64_t byte = 0;  ///< what with
  double bytes = 0;  ///< that are loaded
  bool stored = false, argument = false;
  Ref<Buffer> flipped;  ///< of an argument: the copy
};

/// What each byte of a word is combined with, where it is the same; 0 for anything else.
int64_t byte_of(const NodeRef& e) {
  const Broadcast* all = e.as<Broadcast>();
  auto word = const_int(all ? all->value : Expr(e));
  if (!word) return 0;
  const auto bits = static_cast<uint32_t>(*word);
  return bits == (bits & 0xff) * 0x01010101U ? static_cast<int64_t>(bits & 0xff) : 0;
}

/// The load in int32(A[...]) ^ constant, and that constant.
const BufferLoad* flipped_load(const Call& call, int64_t& byte) {
  if (intrinsic_of(call) != Intrinsic::k_bitwise_xor || call.dtype.element() != DataType::int_(32)) return nullptr;
  const Call* word = call.args[0].as<Call>();
  if (!word || intrinsic_of(*word) != Intrinsic::k_reinterpret) return nullptr;
  const BufferLoad* load = word->args[0].as<BufferLoad>();
  byte = byte_of(call.args[1]);
  return load && byte != 0 && load->buffer->dtype == DataType::int_(8) && !load->predicate.defined() ? load : nullptr;
}

Expr flip(const Expr& value, int64_t byte) {
  Expr with = constant(DataType::int_(8), byte < 128 ? byte : byte - 256);
  const int lanes = value.dtype().lanes;
  return call(value.dtype(), "tir.bitwise_xor", {value, lanes > 1 ? broadcast(with, lanes) : with});
}

class Flipper {
 public:
  Flipper(const PrimFunc& func, PassContext& context) : private_(private_memory(func, context)) {
    for (const auto& [parameter, buffer] : func.buffer_map) arguments_.insert(buffer->data);
  }

  Stmt run(const Stmt& body) {
    look(body);
    std::erase_if(flips_, [](const auto& entry) {
      const Flips& flips = entry.second;
      if (!flips.all || !flips.view.defined() || flips.bytes == 0) return true;
      if (!flips.argument) return false;
      auto size = const_int(flips.view->shape[0]);
      return flips.stored || (size && flips.bytes < kOften * static_cast<double>(*size));
    });
    return flips_.empty() ? body : changed(body);
  }

 private:
  Flips* find(const Ref<Var>& data) {
    auto it = flips_.find(data);
    return it == flips_.end() ? nullptr : &it->second;
  }

  void look(const Stmt& body) {
    double trips = 1;
    visit(
        body,
        [&](const Ref<For>& loop, Visitor& v) {
          const double outer = trips;
          trips *= static_cast<double>(std::max<int64_t>(const_int(loop->extent).value_or(16), 0));
          v.descend(loop);
          trips = outer;
        },
        [&](const Ref<DeclBuffer>& decl, Visitor& v) {
          const Ref<Buffer>& buffer = decl->buffer;
          if (buffer->dtype == DataType::int_(8) && private_.count(buffer->data)) {
            Flips& flips = flips_[buffer->data];
            flips.all = flips.all && !flips.view.defined() && buffer->shape.size() == 1;
            flips.view = buffer;
            flips.argument = arguments_.contains(buffer->data);
          }
          v.descend(decl);
        },
        [&](const Ref<BufferStore>& store, Visitor& v) {
          if (Flips* flips = find(store->buffer->data)) flips->stored = true;
          v.descend(store);
        },
        [&](const Ref<BufferLoad>& load, Visitor& v) {
          if (Flips* flips = find(load->buffer->data)) flips->all = false;  // flipped ones are met from outside
          v.descend(load);
        },
        [&](const Ref<Call>& call, Visitor& v) {
          int64_t byte = 0;
          const BufferLoad* load = flipped_load(*call, byte);
          Flips* flips = load ? find(load->buffer->data) : nullptr;
          if (flips) {
            flips->all = flips->all && (flips->byte == 0 || flips->byte == byte);
            flips->byte = byte;
            flips->bytes += trips * load->indices[0].dtype().lanes;
            return v(load->indices[0]);
          }
          // Whoever has the address may do anything.
          for (const NodeRef& argument : call->args) {
            const Ref<Var> pointer = argument.cast<Var>();
            if (Flips* reached = pointer.defined() ? find(pointer) : nullptr) reached->all = false;
          }
          v.descend(call);
        });
  }

  Stmt changed(const Stmt& body) {
    return rewrite(
        body,
        [&](const Ref<DeclBuffer>& decl, Rewriter& r) -> Stmt {
          Flips* flips = find(decl->buffer->data);
          if (!flips || !flips->argument) return r.descend(decl);
          const Buffer& before = *decl->buffer;
          flips->flipped = decl_buffer(before.shape, before.dtype, before.name + "_flipped");
          Stmt inside = make<DeclBuffer>({flips->flipped, seq({copy(*flips), r(decl->body)})});
          inside = make<Allocate>({flips->flipped->data, before.dtype, before.shape, bool_imm(true), inside, {}});
          return make<DeclBuffer>({decl->buffer, inside}, decl.span());
        },
        [&](const Ref<BufferStore>& store, Rewriter& r) -> Stmt {
          const Flips* flips = find(store->buffer->data);
          Stmt after = r.descend(store);
          if (!flips) return after;
          BufferStore flipped = *after.as<BufferStore>();
          flipped.value = flip(flipped.value, flips->byte);
          return make<BufferStore>(std::move(flipped), store.span());
        },
        [&](const Ref<Call>& call, Rewriter& r) -> Expr {
          int64_t byte = 0;
          const BufferLoad* load = flipped_load(*call, byte);
          const Flips* flips = load ? find(load->buffer->data) : nullptr;
          if (!flips) return r.descend(call);
          Expr bytes = make<BufferLoad>({flips->argument ? flips->flipped : load->buffer, {r(load->indices[0])}, {}});
          return bits_as(call->dtype, std::move(bytes));
        });
  }

  /// Of all bytes: vectors, chunk by chunk, and what is left.
  static Stmt copy(const Flips& flips) {
    const Expr size = flips.view->shape[0];
    const DataType type = size.dtype();
    auto piece = [&](const Expr& at) { return store(flips.flipped, flip(load(flips.view, {at}), flips.byte), {at}); };
    Ref<Var> chunk = var("chunk", type), vector = var("vector", type), rest = var("rest", type);
    Expr at = chunk * kChunk + vector * kVector;
    Stmt chunks = loop(vector, constant(type, kChunk / kVector), piece(ramp(at, one(type), kVector)));
    Expr whole = floordiv(size, constant(type, kChunk));
    chunks = loop(chunk, whole, chunks, ForKind::kParallel);
    Ref<Var> last = var("vector", type);
    Expr vectors = floordiv(size, constant(type, kVector)) - whole * (kChunk / kVector);
    Stmt behind = loop(last, vectors, piece(ramp(whole * kChunk + last * kVector, one(type), kVector)));
    Expr left = floormod(size, constant(type, kVector));
    return seq({chunks, behind, loop(rest, left, piece(size - left + rest))});
  }

  std::unordered_set<NodeRef> private_, arguments_;
  std::unordered_map<NodeRef, Flips> flips_;
};

}  // namespace

PassResult flip_once(const Ref<PrimFunc>& func, PassContext& context) {
  return with_body(func, Flipper(*func, context).run(func->body));
}

}  // namespace tilewright::lower
