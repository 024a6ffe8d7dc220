// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_FACTS_INDEXRANGES_H
#define MGPU_FACTS_INDEXRANGES_H

#include "support/Types.h"

#include "mlir/Analysis/DataFlowFramework.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Value.h"

#include <cstdint>
#include <optional>

namespace mgpu::facts {

/// The ranges of a kernel's integer values, from MLIR's range analysis and the
/// sizes of the launch, which it writes into the module as bounds of ids.
class IndexRanges {
public:
  /// No launch has a larger grid than `maxGrid`.
  IndexRanges(mlir::ModuleOp module, Dim3 block, Dim3 maxGrid);

  struct Bounds {
    llvm::APInt low, high; ///< signed, both included
  };
  std::optional<Bounds> of(mlir::Value value) const;
  /// An index that is an int in C++. Values that cross functions are not.
  bool fitsInt(mlir::Value value) const;
  bool isNonNegative(mlir::Value value) const;
  /// Whether a sign b ('+', '-', '*') surely fits the operands' own width.
  bool cannotOverflow(mlir::Value a, mlir::Value b, char sign) const;

private:
  mutable mlir::DataFlowSolver solver;
};

// How far the place of an access is aligned, in elements, as far as the text of
// a kernel shows it. A divisor D of a value says that the value is a multiple
// of the smaller of D and the power of two in MGPU_VECTOR. Where a thread is
// MGPU_VECTOR threads of the source, the value is that of the first of them.

/// No thread accesses more elements at once than this.
inline constexpr uint32_t mostDivisor = 16;

/// The largest power of two up to mostDivisor that divides the number.
uint32_t divisorOf(int64_t number);
/// Finds a divisor of an integer value. Ids along x are multiples of
/// MGPU_VECTOR, and values made of them and of constants follow. 1 where
/// nothing is known.
uint32_t divisorOf(mlir::Value value);

} // namespace mgpu::facts

#endif // MGPU_FACTS_INDEXRANGES_H
