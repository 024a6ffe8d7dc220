// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/conversion/sdy/FunctionParts.h"

namespace mgpu::conversion {

using namespace mlir;

bool isOverWholeTensors(func::FuncOp function) {
  AttrTypeWalker walker;
  bool isCut = false;
  walker.addWalk([&](sdy::TensorShardingAttr sharding) {
    isCut |= llvm::any_of(sharding.getDims(), [](const auto &dim) {
      return !dim.getAxes().empty();
    });
  });
  walker.addWalk([&](DictionaryAttr attributes) {
    if (auto text = attributes.getAs<StringAttr>("mhlo.sharding"))
      isCut |= devicesOfText(text) > 1;
  });
  function.walk([&](Operation *op) { walker.walk(op->getAttrDictionary()); });
  return isCut;
}

FailureOr<Cutting> cuttingOf(Operation *op, DictionaryAttr attributes,
                             RankedTensorType type, int64_t devices) {
  Cutting whole{{}, Parts::whole(devices, type.getRank())};
  if (!attributes)
    return whole;
  auto sharding = attributes.getAs<sdy::TensorShardingAttr>(sdy::shardingName);
  if (auto text = attributes.getAs<StringAttr>("mhlo.sharding");
      text && !sharding) {
    FailureOr<Parts> parts = partsOfText(op, text, type.getRank(), devices);
    if (failed(parts))
      return failure();
    return Cutting{{}, std::move(*parts)};
  }
  sdy::MeshAttr mesh =
      sharding ? sdy::meshOf(op, sharding.getMesh()) : sdy::MeshAttr();
  if (!mesh || mesh.numDevices() == 1)
    return Cutting{sharding, std::move(whole.parts)};
  SmallVector<StringAttr> axes;
  for (sdy::MeshAxisAttr axis : mesh.getAxes())
    axes.push_back(axis.getName());
  FailureOr<Parts> parts = partsOf(op, sharding, axes, devices);
  if (failed(parts))
    return failure();
  return Cutting{sharding, std::move(*parts)};
}

} // namespace mgpu::conversion
