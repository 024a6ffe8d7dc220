// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_DIALECT_CONVERSION_SPMD_ELEMENTS_H
#define MGPU_DIALECT_CONVERSION_SPMD_ELEMENTS_H

// How an element of a tensor is computed, looked at through transposes,
// broadcasts, reshapes and the bodies of linalg operations: a pass that looks
// for a computation asks for elements, and not for operations in some order.

#include "mlir/Dialect/Linalg/IR/Linalg.h"

#include <array>
#include <map>
#include <optional>

namespace mgpu::conversion {

/// An index that is linear in loops: a factor for each of them, and a constant
/// at last.
inline constexpr size_t mostLoops = 15;
using Index = std::array<int64_t, mostLoops + 1>;

/// An element of a tensor, at an index for each dimension; or a number in the
/// body of a linalg operation, at an index for each of its loops; or a number
/// outside of such, at no index.
struct Element {
  mlir::Value value;
  llvm::SmallVector<Index> at;

  bool operator==(const Element &other) const = default;
  bool isOfTensor() const {
    return mlir::isa<mlir::RankedTensorType>(value.getType());
  }
};

class Elements {
public:
  /// The sizes of the loops, none of which is 1.
  llvm::SmallVector<int64_t> loops;

  /// Begins anew, with loops split where reshapes need it.
  void restart();
  /// Whether a reshape needs a loop in two: the caller begins anew.
  bool needsSplit() const { return isSplit; }

  /// A new loop of that size, or a few by which it is counted.
  Index loop(int64_t size);
  /// Whether the index changes with loop `k`.
  static bool follows(const Index &index, size_t k) { return index[k] != 0; }
  static bool follows(const Element &element, size_t k);

  /// The element of another tensor that is moved here, as far as that is seen.
  Element moved(Element element);
  /// Follows an element to where it is computed: a number in a body, an element
  /// that a reduction, an argument or some other operation gives, or a number
  /// outside.
  Element computed(Element element);
  /// The element or number that is operand `k` of what computes `of`.
  Element operand(const Element &of, unsigned k);
  /// Where the operation reads its operand, at these indices of its loops.
  static std::optional<Element> read(mlir::linalg::LinalgOp op,
                                     mlir::OpOperand &operand,
                                     llvm::ArrayRef<Index> at);
  /// The indices of the loops where `op` gives an element; those of reductions
  /// are left 0. None where the element does not say them.
  static std::optional<llvm::SmallVector<Index>>
  loopsAt(mlir::linalg::LinalgOp op, const Element &result);
  /// Whether both are computed alike.
  bool areSame(Element one, Element other, unsigned depth = 0);

private:
  std::optional<Element> below(const Element &element, bool movesOnly);
  std::optional<Index> digit(Index index, int64_t below, int64_t size);

  std::map<size_t, llvm::SmallVector<int64_t>> pieces;  ///< by number of loop()
  llvm::SmallVector<std::pair<size_t, size_t>> origins; ///< piece of a loop
  size_t made = 0;
  bool isSplit = false;
};

/// The number that every element is, or that the value is.
std::optional<llvm::APFloat> constantOf(mlir::Value value);

} // namespace mgpu::conversion

#endif // MGPU_DIALECT_CONVERSION_SPMD_ELEMENTS_H
