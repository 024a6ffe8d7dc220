// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_DIALECT_SDY_FINEAXES_H
#define MGPU_DIALECT_SDY_FINEAXES_H

// The axes of a mesh, cut where shardings take parts of them.

#include "dialect/sdy/SdyDialect.h"

#include <map>
#include <set>

namespace mgpu::sdy {

/// A mesh with more axes: an axis of which a sharding takes a part becomes
/// several. Device numbers stay, as they are row-major in both.
class FineAxes {
public:
  explicit FineAxes(MeshAttr mesh) : mesh(mesh) {}
  MeshAttr getMesh() const { return mesh; }

  void take(TensorShardingAttr sharding);
  /// Null, or an axis that is cut in ways that do not fit each other.
  mlir::StringAttr finish();
  /// By fine axis.
  llvm::ArrayRef<int64_t> sizes() const { return fine; }
  /// The fine axes that cut each dimension. The sharding was taken before.
  llvm::SmallVector<llvm::SmallVector<int64_t, 2>>
  cutsOf(TensorShardingAttr sharding) const;

private:
  MeshAttr mesh;
  std::map<std::string, std::set<int64_t>> cuts; ///< products of sizes before
  llvm::SmallVector<int64_t> fine;
  std::map<std::pair<std::string, int64_t>, int64_t> first; ///< fine axis
};

} // namespace mgpu::sdy

#endif // MGPU_DIALECT_SDY_FINEAXES_H
