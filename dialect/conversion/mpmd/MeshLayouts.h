// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_DIALECT_CONVERSION_MPMD_MESHLAYOUTS_H
#define MGPU_DIALECT_CONVERSION_MPMD_MESHLAYOUTS_H

// Which devices a mesh has, and which part of a tensor each of them.

#include "dialect/mpmd/MpmdDialect.h"
#include "dialect/sdy/FineAxes.h"
#include "dialect/spmd/SpmdDialect.h"

#include "llvm/ADT/StringMap.h"

namespace mgpu::conversion {

/// The devices of a program's meshes: numbered in the order of the topology,
/// and in a mesh row-major.
class MeshLayouts {
public:
  /// Takes the topology of `function`, and the shardings in it. Fails with an
  /// error there.
  mlir::LogicalResult take(mlir::func::FuncOp function);

  /// Which part of a tensor of `type` each device of its mesh has. Fails with
  /// an error at `op`, where the type is no tensor on a mesh.
  mlir::FailureOr<spmd::LayoutAttr> layoutOf(mlir::Operation *op,
                                             mlir::Type type) const;
  /// The sharding of `type`, or `otherwise` if it has none: closed, so that it
  /// stays. Its mesh has the devices in order.
  sdy::TensorShardingAttr shardingOf(mpmd::MeshTensorType type,
                                     sdy::TensorShardingAttr otherwise) const;
  int64_t numDevices(llvm::StringRef mesh) const {
    return meshOf(mesh).axes.getMesh().numDevices();
  }
  /// The number that the program gives to each device, where these are others:
  /// some mesh lists its devices. Else empty.
  llvm::SmallVector<int64_t> order() const;

private:
  struct Mesh {
    sdy::FineAxes axes;
    llvm::ArrayRef<int64_t> deviceIds;
    int64_t first = 0;
    llvm::SmallVector<int64_t> sizes; ///< by fine axis; at least one
  };
  const Mesh &meshOf(llvm::StringRef name) const {
    return meshes.find(name)->second;
  }

  llvm::StringMap<Mesh> meshes;
  int64_t count = 0;
};

} // namespace mgpu::conversion

#endif // MGPU_DIALECT_CONVERSION_MPMD_MESHLAYOUTS_H
