// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/conversion/sdy/DeviceGroups.h"

#include "dialect/mgpu/Diagnostics.h"

namespace mgpu::conversion {

using namespace mlir;

GroupIds groupIdsOf(stablehlo::ChannelHandleAttr channel, bool useGlobalIds,
                    bool ofPartitions) {
  if (useGlobalIds)
    return GroupIds::Devices;
  if (!channel || channel.getHandle() <= 0)
    return GroupIds::Replicas;
  return ofPartitions ? GroupIds::Partitions
                      : GroupIds::ReplicasOfAllPartitions;
}

/// The mesh written in place, as one of Shardy's.
static sdy::MeshAttr meshOf(Operation *op, Attribute mesh) {
  auto inPlace = dyn_cast<stablehlo::MeshAttr>(mesh);
  if (!inPlace)
    return sdy::meshOf(op, mesh);
  SmallVector<sdy::MeshAxisAttr> axes;
  for (stablehlo::MeshAxisAttr axis : inPlace.getAxes())
    axes.push_back(sdy::MeshAxisAttr::get(op->getContext(), axis.getName(),
                                          axis.getSize()));
  SmallVector<int64_t> devices;
  if (DenseIntElementsAttr ids = inPlace.getDeviceIds())
    devices = llvm::to_vector(ids.getValues<int64_t>());
  return sdy::MeshAttr::get(op->getContext(), axes, devices);
}

static FailureOr<spmd::DeviceGroups>
groupsOfMesh(Operation *op, stablehlo::ReplicaGroupMeshAxesAttr groups,
             ProcessGrid grid) {
  sdy::MeshAttr mesh = meshOf(op, groups.getMesh());
  SmallVector<sdy::AxisRefAttr> axes;
  for (stablehlo::AxisRefAttr axis : groups.getAxes())
    axes.push_back(sdy::AxisRefAttr::get(op->getContext(), axis.getName(),
                                         axis.getPreSize(), axis.getSize()));
  std::optional<spmd::DeviceGroups> found =
      mesh ? groupsAlong(mesh, axes) : std::nullopt;
  if (!found)
    return op->emitOpError()
           << "names a mesh or an axis that is not there: " << groups;
  if (mesh.numDevices() != grid.devices())
    return op->emitOpError() << "has a mesh of " << mesh.numDevices()
                             << " devices in a program for " << grid.devices();
  return *found;
}

FailureOr<spmd::DeviceGroups> groupsOf(Operation *op, Attribute groups,
                                       GroupIds ids, ProcessGrid grid) {
  if (auto axes = dyn_cast<stablehlo::ReplicaGroupMeshAxesAttr>(groups))
    return groupsOfMesh(op, axes, grid);
  auto matrix = cast<DenseIntElementsAttr>(groups);
  int64_t width = matrix.getType().getDimSize(1), largest = -1;
  spmd::DeviceGroups named;
  for (auto [k, id] : llvm::enumerate(matrix.getValues<int64_t>())) {
    if (k % width == 0)
      named.emplace_back();
    if (id >= 0)
      named.back().push_back(id);
    largest = std::max(largest, id);
  }
  auto limitOf = [&] {
    return ids == GroupIds::Devices      ? grid.devices()
           : ids == GroupIds::Partitions ? grid.partitions
                                         : grid.replicas;
  };
  // With one replica or one partition, exporters number devices in any mode.
  if (largest >= limitOf() && (grid.replicas == 1 || grid.partitions == 1))
    ids = GroupIds::Devices;
  if (largest >= limitOf()) {
    auto group = llvm::find_if(named, [&](ArrayRef<int64_t> each) {
      return llvm::is_contained(each, largest);
    });
    return op->emitOpError()
           << "names device " << largest << " in [" << *group
           << "], in a program for " << limitOf() << " devices, which begin at "
           << "0";
  }
  if (named.empty()) // all of them
    named.push_back(llvm::to_vector(llvm::seq<int64_t>(0, limitOf())));
  if (ids == GroupIds::Devices)
    return named;
  spmd::DeviceGroups result;
  for (ArrayRef<int64_t> group : named) {
    int64_t others =
        ids == GroupIds::Partitions ? grid.replicas : grid.partitions;
    for (int64_t other = 0; other < others; ++other) {
      if (other == 0 || ids != GroupIds::ReplicasOfAllPartitions)
        result.emplace_back();
      for (int64_t id : group)
        result.back().push_back(ids == GroupIds::Partitions
                                    ? other * grid.partitions + id
                                    : id * grid.partitions + other);
    }
  }
  return result;
}

} // namespace mgpu::conversion
