// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PLANNER_IMPORT_AFFINEFORM_H
#define MGPU_PLANNER_IMPORT_AFFINEFORM_H

// constant + sum(coefficient * counter), the counters being thread ids, block
// ids, loop counters, and quotients and remainders of such sums, each running
// over 0..size-1.

#include "planner/import/HostValue.h"

#include "mlir/IR/Region.h"
#include "mlir/IR/Value.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLFunctionalExtras.h"

#include <map>
#include <optional>
#include <vector>

namespace mgpu::planner {

struct AffineForm {
  int64_t constant = 0;
  llvm::SmallVector<std::pair<uint32_t, int64_t>, 4> terms; ///< by counter

  bool isConstant() const { return terms.empty(); }
  void add(const AffineForm &other, int64_t factor = 1);
};

/// Evaluates index values of one kernel body; memoised.
class AffineEvaluator {
public:
  AffineEvaluator(mlir::Region &body, Dim3 grid, Dim3 block,
                  llvm::function_ref<HostValue(mlir::Value)> valueOf);

  /// None when the value is not affine in the counters.
  std::optional<AffineForm> evaluate(mlir::Value value);
  /// Smallest and largest value over all counters.
  std::pair<int64_t, int64_t> range(const AffineForm &form) const;
  int64_t sizeOf(uint32_t counter) const { return sizes[counter]; }
  /// The axis of thread ids, or of block ids, that a counter is, if it is one.
  static std::optional<unsigned> threadAxisOf(uint32_t counter);
  static std::optional<unsigned> blockAxisOf(uint32_t counter);
  uint32_t addCounter(int64_t size);
  /// A form of the counter and others that is always 0, where the counter is a
  /// quotient or a remainder; else null.
  const AffineForm *tieOf(uint32_t counter) const;
  /// Whether all counters of the form may have any value together.
  bool isFree(const AffineForm &form) const;
  /// Whether it has no loop counters, but ids and what is divided of them.
  bool isOfIds(const AffineForm &form) const;
  /// The value in the thread whose ids these are, where loop counters are 0.
  int64_t valueAt(const AffineForm &form, llvm::ArrayRef<int64_t> ids) const;
  /// The same in a thread of the first block.
  int64_t valueAt(const AffineForm &form, Dim3 thread) const {
    return valueAt(form, {thread.x, thread.y, thread.z, 0, 0, 0});
  }
  /// Adds factor * form to `sum`. False, and `sum` is then of no use, where a
  /// value could pass 2^58: the byte addresses made of it must fit int64_t.
  bool addScaled(AffineForm &sum, const AffineForm &form, int64_t factor) const;

private:
  std::optional<AffineForm> compute(mlir::Value value);
  bool fits(const AffineForm &form, mlir::Type type) const;
  std::optional<AffineForm> ofLoopCounter(mlir::BlockArgument argument);
  std::optional<AffineForm> ofOperation(mlir::Operation *op);
  std::optional<AffineForm> ofDivision(mlir::Operation *op);
  /// divisor * quotient + remainder
  struct Division {
    AffineForm quotient, remainder;
  };
  /// `form` is not negative.
  Division divide(AffineForm form, int64_t divisor);

  mlir::Region &body;
  Dim3 grid, block;
  llvm::function_ref<HostValue(mlir::Value)> valueOf;
  std::vector<int64_t> sizes;
  llvm::DenseMap<mlir::Value, std::optional<AffineForm>> known;
  std::map<uint32_t, AffineForm> ties; ///< by counter
  /// Each division once. The key is the dividend, less multiples of the
  /// divisor, and the divisor.
  std::map<std::pair<std::vector<std::pair<uint32_t, int64_t>>,
                     std::pair<int64_t, int64_t>>,
           Division>
      divisions;
};

} // namespace mgpu::planner

#endif // MGPU_PLANNER_IMPORT_AFFINEFORM_H
