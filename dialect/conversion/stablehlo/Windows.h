// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_DIALECT_CONVERSION_STABLEHLO_WINDOWS_H
#define MGPU_DIALECT_CONVERSION_STABLEHLO_WINDOWS_H

// The attributes of windows, each of which may be absent.

#include "mlir/IR/BuiltinAttributes.h"

#include <optional>

namespace mgpu::conversion {

/// One number a dimension; `otherwise` where the attribute is absent.
inline llvm::SmallVector<int64_t>
numbersOr(std::optional<llvm::ArrayRef<int64_t>> given, unsigned rank,
          int64_t otherwise) {
  return given ? llvm::to_vector(*given)
               : llvm::SmallVector<int64_t>(rank, otherwise);
}

struct Padding {
  llvm::SmallVector<int64_t> low, high;
};

/// Reads an N x 2 constant; the padding is 0 where it is absent.
inline Padding paddingOf(std::optional<mlir::DenseIntElementsAttr> given,
                         unsigned rank) {
  Padding padding{llvm::SmallVector<int64_t>(rank, 0),
                  llvm::SmallVector<int64_t>(rank, 0)};
  if (given)
    for (auto [k, number] : llvm::enumerate(given->getValues<llvm::APInt>()))
      (k % 2 ? padding.high : padding.low)[k / 2] = number.getSExtValue();
  return padding;
}

} // namespace mgpu::conversion

#endif // MGPU_DIALECT_CONVERSION_STABLEHLO_WINDOWS_H
