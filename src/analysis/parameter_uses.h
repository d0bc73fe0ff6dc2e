// Determines which parameters a program reads and writes, and whether their contents before the call matter (inputs,
// outputs, in-outs). workload.cc walks the program in execution order and reports each scope and access to this class:
//
//   ParameterUses uses(params);
//   const ParameterUses::Scope scope(uses);  // its destructor leaves the loop entered below
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
  Ref<Buffer> buffer;     ///< null for scalar and pointer parameters
  Ref<Buffer> pointee{};  ///< for a pointer parameter: the buffer that the program declares over it
  bool read = false, written = false;
  /// Whether the contents before the call may matter: some element is read that no earlier block, and no init of the
  /// reading block, has provably written.
  bool read_before_written = false;
  std::string reader{};  ///< the first such read, for messages: "block 'B' reads it"
  /// Whether each call stores to all elements, for any input data.
  bool written_in_full = false;
};

class ParameterUses {
  struct Surroundings {
    bool always_runs = true;   ///< no condition, no possibly empty loop, no block that runs for only part of its domain
    bool in_contract = false;  ///< inside the description of a tensor intrinsic
    const Block* block = nullptr;
  };

 public:
  explicit ParameterUses(std::vector<ParameterUse>& params) : params_(params) {}

  /// Saves the enclosing loops, blocks and conditions, and restores them in its destructor.
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
  /// `covers_domain`: the block runs for all values of its axes.
  void enter_block(const BlockRealize& realize, bool covers_domain, bool is_conditional);
  void enter_condition();
  /// Enters the description of a tensor intrinsic. Its accesses are not counted, since its block declares them: find()
  /// returns null.
  void enter_contract() { around_.in_contract = true; }

  /// Returns the parameter whose memory the buffer, or the buffer that it views, is; null if there is none.
  ParameterUse* find(const Ref<Buffer>& buffer) const;
  void load(ParameterUse& param, const BufferLoad& load);
  void store(ParameterUse& param, const BufferStore& store);
  void read_region(ParameterUse& param, const BufferRegion& region);
  void write_region(ParameterUse& param, const BufferRegion& region);

  /// Records a write to a buffer, a parameter or not; null: to an unknown buffer.
  void change(const Ref<Buffer>& buffer) { written_before_.change(buffer); }

  /// Records that the program declares the buffer over a pointer, which may be a parameter.
  void declare(const Ref<Buffer>& buffer);
  /// Records that a call may read and write the memory behind its pointer arguments, unless it declares less.
  void pass_pointers(const Call& call);
  /// Records a call of a function of the module. `inside`: how the callee uses its parameters.
  void pass_pointers(const Call& call, const PrimFunc& callee, const std::vector<ParameterUse>& inside);

  /// Whether the variable is a scalar parameter that occurs in no buffer shape, and therefore may be 0.
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
