// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_DIALECT_CONVERSION_SDY_TENSORPARTS_H
#define MGPU_DIALECT_CONVERSION_SDY_TENSORPARTS_H

// How tensors are cut over devices, whoever says it: Shardy's attributes, XLA's
// texts, or layouts of the spmd dialect.

#include "dialect/sdy/SdyDialect.h"
#include "dialect/spmd/SpmdDialect.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mgpu::conversion {

/// Which part of each dimension each device holds.
struct Parts {
  llvm::SmallVector<int64_t> counts; ///< into how many a dimension is cut
  llvm::SmallVector<llvm::SmallVector<int64_t>> of; ///< by device, dimension

  /// Each device holds all.
  static Parts whole(int64_t devices, int64_t rank);
  int64_t numDevices() const { return of.size(); }
  bool isWhole() const {
    return llvm::all_of(counts, [](int64_t count) { return count == 1; });
  }
  bool operator==(const Parts &other) const {
    return counts == other.counts && of == other.of;
  }
  /// The shape of a part of `shape`; nothing where it is not divisible.
  std::optional<llvm::SmallVector<int64_t>>
  shapeOf(llvm::ArrayRef<int64_t> shape) const;
  /// Devices that differ in which part of `dim` they hold alone, in the order
  /// of the parts; nothing where they are not of one size.
  std::optional<spmd::DeviceGroups> groupsAlong(unsigned dim) const;
};

/// The parts that a sharding gives a tensor of rank `rank`, with those axes
/// alone that `axes` names. Fails with an error at `op`.
mlir::FailureOr<Parts> partsOf(mlir::Operation *op,
                               sdy::TensorShardingAttr sharding,
                               llvm::ArrayRef<mlir::StringAttr> axes,
                               int64_t devices);

/// The parts by the text of `mhlo.sharding`. Fails with an error at `op`.
mlir::FailureOr<Parts> partsOfText(mlir::Operation *op, llvm::StringRef text,
                                   int64_t rank, int64_t devices);

/// How many devices the text names; 1 where it names none, 0 where it does not
/// read.
int64_t devicesOfText(llvm::StringRef text);

/// The layout with these parts; null where no mesh has it.
spmd::LayoutAttr layoutOf(mlir::MLIRContext *context, const Parts &parts);

/// Devices that differ along `axes` alone, in the order of these, the first
/// outermost. Nothing where the mesh does not have them.
std::optional<spmd::DeviceGroups>
groupsAlong(sdy::MeshAttr mesh, llvm::ArrayRef<sdy::AxisRefAttr> axes);

// How the arguments and results of a function are cut over devices, by Shardy's
// attributes or XLA's texts.

/// Whether a sharding in `function` cuts something, so that it computes on
/// whole tensors.
bool isOverWholeTensors(mlir::func::FuncOp function);

/// A sharding, null for none, and the parts that it makes. Parts that a text
/// says have none.
struct Cutting {
  sdy::TensorShardingAttr sharding;
  Parts parts;
};

/// By the attributes of an argument or result, which may be null. Fails with an
/// error at `op`.
mlir::FailureOr<Cutting> cuttingOf(mlir::Operation *op,
                                   mlir::DictionaryAttr attributes,
                                   mlir::RankedTensorType type,
                                   int64_t devices);

} // namespace mgpu::conversion

#endif // MGPU_DIALECT_CONVERSION_SDY_TENSORPARTS_H
