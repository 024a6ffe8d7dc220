// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/conversion/mpmd/MeshLayouts.h"

#include "dialect/conversion/spmd/Reshard.h"
#include "dialect/mgpu/Diagnostics.h"

namespace mgpu::conversion {

using namespace mlir;

LogicalResult MeshLayouts::take(func::FuncOp function) {
  for (mpmd::NamedMeshAttr each : mpmd::topologyOf(function).getMeshes()) {
    sdy::MeshAttr inOrder = sdy::MeshAttr::get(
        function.getContext(), each.getMesh().getAxes(), ArrayRef<int64_t>());
    meshes.try_emplace(
        each.getName(),
        Mesh{sdy::FineAxes(inOrder), each.getMesh().getDeviceIds(), count, {}});
    count += inOrder.numDevices();
    if (count > spmd::mostDevices)
      return ir::emitUnsupported(function)
             << "has more than " << spmd::mostDevices << " devices";
  }
  auto takeTypes = [&](TypeRange types) {
    for (Type type : types)
      if (auto tensor = dyn_cast<mpmd::MeshTensorType>(type);
          tensor && tensor.getSharding())
        meshes.find(tensor.getMeshName())
            ->second.axes.take(tensor.getSharding());
  };
  takeTypes(function.getArgumentTypes());
  takeTypes(function.getResultTypes());
  function.walk([&](Operation *op) { takeTypes(op->getResultTypes()); });
  for (auto &[name, mesh] : meshes) {
    if (StringAttr axis = mesh.axes.finish())
      return ir::emitUnsupported(function)
             << "has shardings that cut axis " << axis << " of mesh '" << name
             << "' in ways that do not fit each other";
    mesh.sizes.assign(mesh.axes.sizes().begin(), mesh.axes.sizes().end());
    if (mesh.sizes.empty())
      mesh.sizes.push_back(1);
  }
  return success();
}

FailureOr<spmd::LayoutAttr> MeshLayouts::layoutOf(Operation *op,
                                                  Type type) const {
  auto tensor = dyn_cast<mpmd::MeshTensorType>(type);
  if (!tensor)
    return ir::emitUnsupported(op)
           << "has a value of type " << type << "; only tensors on meshes run";
  const Mesh &mesh = meshOf(tensor.getMeshName());
  SmallVector<Axes> cuts(tensor.getGlobalTensorType().getRank());
  if (tensor.getSharding() && !tensor.getSharding().getDims().empty())
    cuts = mesh.axes.cutsOf(tensor.getSharding());
  spmd::LayoutAttr local = layoutOfCuts(op->getContext(), mesh.sizes, cuts);
  return spmd::LayoutAttr::get(op->getContext(), local.getMesh(),
                               local.getSplit(), mesh.first);
}

sdy::TensorShardingAttr
MeshLayouts::shardingOf(mpmd::MeshTensorType type,
                        sdy::TensorShardingAttr otherwise) const {
  MLIRContext *context = type.getContext();
  sdy::TensorShardingAttr own =
      type.getSharding() ? type.getSharding() : otherwise;
  SmallVector<sdy::DimensionShardingAttr> dims(
      type.getGlobalTensorType().getRank(),
      sdy::DimensionShardingAttr::get(context, {}, /*isClosed=*/true, -1));
  if (own)
    for (auto [dim, given] : llvm::zip(dims, own.getDims()))
      dim = sdy::DimensionShardingAttr::get(context, given.getAxes(),
                                            /*isClosed=*/true, -1);
  return sdy::TensorShardingAttr::get(context,
                                      meshOf(type.getMeshName()).axes.getMesh(),
                                      dims, {}, {}, nullptr);
}

SmallVector<int64_t> MeshLayouts::order() const {
  SmallVector<int64_t> numbers = llvm::to_vector(llvm::seq<int64_t>(0, count));
  bool isListed = false;
  for (const auto &[name, mesh] : meshes)
    if (int64_t(mesh.deviceIds.size()) == mesh.axes.getMesh().numDevices() &&
        mesh.deviceIds.size() > 1)
      for (auto [k, id] : llvm::enumerate(mesh.deviceIds)) {
        numbers[mesh.first + int64_t(k)] = mesh.first + id;
        isListed = true;
      }
  return isListed ? numbers : SmallVector<int64_t>();
}

} // namespace mgpu::conversion
