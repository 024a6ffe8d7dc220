// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_DIALECT_CONVERSION_SPMD_TRANSFERS_H
#define MGPU_DIALECT_CONVERSION_SPMD_TRANSFERS_H

// Finds what devices copy from each other where a tensor goes to another
// layout.

#include "dialect/spmd/SpmdDialect.h"

namespace mgpu::conversion {

/// Part of a tensor: where it begins, and its sizes.
struct TensorBox {
  llvm::SmallVector<int64_t> offsets, sizes;
  bool operator==(const TensorBox &) const = default;
};

/// `piece` of the whole tensor goes to device `target`, which is to have `to`,
/// from `source`, which has `from`.
struct Transfer {
  int64_t source = 0, target = 0;
  TensorBox from, to, piece;
};

/// The transfers of a tensor of shape `full`, target by target. Each distinct
/// part is copied from one of the devices that hold it: the device itself where
/// it does, else one after the other, so that all give.
llvm::SmallVector<Transfer, 0> transfersOf(llvm::ArrayRef<int64_t> full,
                                           spmd::LayoutAttr from,
                                           spmd::LayoutAttr to);

} // namespace mgpu::conversion

#endif // MGPU_DIALECT_CONVERSION_SPMD_TRANSFERS_H
