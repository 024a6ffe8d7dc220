// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/sdy/FineAxes.h"

namespace mgpu::sdy {

using namespace mlir;

void FineAxes::take(TensorShardingAttr sharding) {
  for (DimensionShardingAttr dim : sharding.getDims())
    for (AxisRefAttr axis : dim.getAxes())
      if (axis.isSubAxis()) {
        cuts[axis.getName().str()].insert(axis.getPreSize());
        cuts[axis.getName().str()].insert(axis.getPreSize() * axis.getSize());
      }
}

StringAttr FineAxes::finish() {
  for (MeshAxisAttr axis : mesh.getAxes()) {
    std::set<int64_t> at = cuts[axis.getName().str()];
    at.insert(axis.getSize());
    int64_t before = 1;
    for (int64_t next : at) {
      if (next == 1 && axis.getSize() != 1)
        continue;
      if (next % before != 0 || axis.getSize() % next != 0)
        return axis.getName();
      first[{axis.getName().str(), before}] = int64_t(fine.size());
      fine.push_back(next / before);
      before = next;
    }
  }
  return {};
}

SmallVector<SmallVector<int64_t, 2>>
FineAxes::cutsOf(TensorShardingAttr sharding) const {
  SmallVector<SmallVector<int64_t, 2>> split;
  for (DimensionShardingAttr dim : sharding.getDims()) {
    split.emplace_back();
    for (AxisRefAttr axis : dim.getAxes()) {
      int64_t at = first.at({axis.getName().str(), axis.getPreSize()});
      for (int64_t left = axis.sizeIn(mesh), size = 1; size < left; ++at) {
        split.back().push_back(at);
        size *= fine[at];
      }
    }
  }
  return split;
}

} // namespace mgpu::sdy
