// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_DIALECT_CONVERSION_SPMD_RESHARD_H
#define MGPU_DIALECT_CONVERSION_SPMD_RESHARD_H

// From one layout of a tensor to another, by slices, collectives and copies.

#include "dialect/conversion/ExchangeCost.h"
#include "dialect/conversion/spmd/Parts.h"
#include "dialect/spmd/SpmdDialect.h"

#include <map>

namespace mgpu::conversion {

/// Sums, or other reductions, of which each device along `axes` has a part.
struct Partial {
  Axes axes;
  ir::ReductionKind kind = ir::ReductionKind::Sum;
};

/// One step from a layout to another. Move goes to the last layout at once.
struct ReshardStep {
  enum Kind { Slice, AllToAll, AllGather, ReduceScatter, AllReduce, Move } kind;
  unsigned dim = 0;   ///< that is sliced, gathered, or cut further
  unsigned other = 0; ///< AllToAll: the dimension that is no longer cut
  Axes axes;
  /// Slice: what each part has, where they are not as equal as they can be.
  llvm::SmallVector<std::pair<int64_t, int64_t>> ranges = {};
  /// Collectives: the larger of what a device gives and what it gets.
  int64_t bytes = 0;
  spmd::LayoutAttr from = {}; ///< Move: what the tensor has before
};
using ReshardSteps = llvm::SmallVector<ReshardStep>;

/// A tensor to be resharded: it lies in `from`, which has no halos, with
/// partial results along `partial`.
struct ReshardRequest {
  mlir::RankedTensorType full; ///< the whole tensor
  spmd::LayoutAttr from, to;
  Axes partial = {};
};

/// Finds the steps that cost least. Dimensions that can be sliced are sliced,
/// at no cost. Otherwise parts are gathered, change the dimension by an
/// all_to_all, or are copied from device to device, in any order; and partial
/// results are reduced everywhere, or by a reduce_scatter where they are cut
/// afterwards. Which axes are reduced together does not depend on costs, so
/// that bits do not either. Parts of different sizes can only be cut and
/// copied. Where several cost the same the fewest are taken.
class Reshards {
public:
  explicit Reshards(ExchangeCost cost = nullptr) : cost(std::move(cost)) {}

  const ReshardSteps &find(const ReshardRequest &request);
  /// In microseconds; bytes that a device receives without a cost of exchanges.
  double costOf(const ReshardRequest &request, const ReshardStep &step) const;
  double costOf(const ReshardRequest &request, const ReshardSteps &steps) const;
  bool countsBytes() const { return !cost; }

private:
  ExchangeCost cost;
  using Key = std::tuple<const void *, const void *, const void *,
                         std::vector<int64_t>>;
  std::map<Key, ReshardSteps> known; ///< a program repeats its layers
};

/// Bytes that a device receives.
int64_t bytesReceived(const ReshardRequest &request, const ReshardStep &step);
int64_t bytesReceived(const ReshardRequest &request, const ReshardSteps &steps);

/// Makes the operations of `steps` for a device's part.
mlir::Value reshard(mlir::OpBuilder &b, mlir::Location loc,
                    const ReshardRequest &request, mlir::Value local,
                    const ReshardSteps &steps, ir::ReductionKind kind);

// Finds what devices copy from each other where a tensor goes to another
// layout.

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

#endif // MGPU_DIALECT_CONVERSION_SPMD_RESHARD_H
