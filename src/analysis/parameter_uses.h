// How a program uses its parameters: which it reads and writes, and whether their contents before the call matter.
//
// Whoever visits the program in the order of its execution reports here what surrounds each access, and the accesses:
//
//   ParameterUses uses(params);
//   const ParameterUses::Scope scope(uses);  // ends what is entered below
//   uses.enter_loop(loop, surely_iterates);
//   if (ParameterUse* param = uses.find(load.buffer)) uses.load(*param, load);
#pragma once

#include <string>
#include <vector>

#include "analysis/written_before.h"
#include "ir/stmt.h"

namespace tilewright::analysis {

struct ParameterUse {
  Ref<Var> param;
  Ref<Buffer> buffer;     ///< null for a scalar parameter, and for a pointer
  Ref<Buffer> pointee{};  ///< for a pointer: the buffer that is declared over it
  bool read = false, written = false;
  /// Whether the contents before the call may matter: the buffer is read, and not written in full by an earlier block
  /// or by the init of the reading block.
  bool read_before_written = false;
  std::string reader{};  ///< first reader: a block, or a call to which it is passed
  /// Whatever the data are, a call stores to each element; where this is false it may leave some alone.
  bool written_in_full = false;
};

class ParameterUses {
  struct Surroundings {
    bool always_runs = true;   ///< no condition, no loop without iterations, no block that reaches a part of its domain
    bool in_contract = false;  ///< inside the description of an instruction on tensors
    const Block* block = nullptr;
  };

 public:
  explicit ParameterUses(std::vector<ParameterUse>& params) : params_(params) {}

  /// Restores what surrounds the next accesses when it is destroyed.
  class Scope {
   public:
    explicit Scope(ParameterUses& uses) : uses_(uses), outer_(uses.around_), depth_(uses.written_before_.depth()) {}
    ~Scope() {
      uses_.around_ = outer_;
      uses_.written_before_.leave(depth_);
    }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    ParameterUses& uses_;
    Surroundings outer_;
    size_t depth_;
  };

  void enter_loop(const For& loop, bool surely_iterates);
  void enter_block(const BlockRealize& realize, bool reaches_all, bool is_conditional);
  void enter_condition();
  /// The accesses in the description of an instruction on tensors are those that its block declares: find() gives none.
  void enter_contract() { around_.in_contract = true; }

  /// The parameter that is behind a buffer, or behind the buffer that it views; null if there is none.
  ParameterUse* find(const Ref<Buffer>& buffer) const;
  void load(ParameterUse& param, const BufferLoad& load);
  void store(ParameterUse& param, const BufferStore& store);
  void read_region(ParameterUse& param, const BufferRegion& region);
  void write_region(ParameterUse& param, const BufferRegion& region);

  /// The program changes a buffer, be it a parameter or not; null: perhaps any.
  void change(const Ref<Buffer>& buffer) { written_before_.change(buffer); }

  /// Learns which buffer is declared over a pointer.
  void declare(const Ref<Buffer>& buffer);
  /// A call may read and write what is behind the pointers that it gets, unless it declares less.
  void pass_pointers(const Call& call);
  /// A call of a function of the module whose parameters are used as `inside` says.
  void pass_pointers(const Call& call, const PrimFunc& callee, const std::vector<ParameterUse>& inside);

  /// Whether the variable is a scalar parameter that is not a size of an array, so may be 0.
  bool is_number(const Ref<Var>& var) const;

 private:
  ParameterUse* pass_to_call(const NodeRef& pointer, bool reads, bool writes, const std::string& callee);
  void note_read(ParameterUse& param, const WrittenBefore::Part& part);
  void note_write(ParameterUse& param, const WrittenBefore::Part& part);
  std::string reader() const;

  std::vector<ParameterUse>& params_;
  Surroundings around_;
  WrittenBefore written_before_;
};

}  // namespace tilewright::analysis
