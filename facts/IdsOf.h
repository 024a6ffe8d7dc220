// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_FACTS_IDSOF_H
#define MGPU_FACTS_IDSOF_H

// Which ids of threads and blocks a kernel's values follow from, and what its
// threads say to each other.

#include "mlir/IR/Region.h"
#include "mlir/IR/Value.h"
#include "llvm/ADT/DenseMap.h"

#include <bitset>

namespace mgpu::facts {

/// Thread ids x, y, z, then block ids; an AffineForm's counters of these.
using Ids = std::bitset<6>;
inline Ids threadIds() { return Ids(0b000111); }
inline Ids blockIds() { return Ids(0b111000); }

/// The ids that the value follows from: by operands, and by where it was loaded
/// from. A value that a subgroup's or a block's threads agree on follows from
/// none of the thread's own. Values of atomics, and memory that threads wrote,
/// are not followed.
Ids idsOf(mlir::Value value);

/// Says it of many values of a kernel that stays as it is: what was asked is
/// not followed again, so that a walk of the kernel takes linear time.
class IdsOfMany {
public:
  Ids of(mlir::Value value);

private:
  llvm::DenseMap<mlir::Value, Ids> known;
};

/// Whether the value differs between threads that are neighbours along x.
inline bool variesAlongX(mlir::Value value) { return idsOf(value).test(0); }

bool areEqualConstants(mlir::Value a, mlir::Value b);

/// Whether threads of a block wait for each other here, or exchange values.
bool isExchangeWithinBlocks(mlir::Operation *op);
/// Whether blocks may anywhere in the kernel: in code that is not seen, or in a
/// loop that ends when another block's atomic operation has been seen.
bool mayOrderBlocks(mlir::Region &body);

} // namespace mgpu::facts

#endif // MGPU_FACTS_IDSOF_H
