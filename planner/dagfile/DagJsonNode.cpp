// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/dagfile/DagJsonNode.h"

namespace mgpu::planner {

std::vector<NodeId> dependenciesOf(const Json &object) {
  std::vector<NodeId> after;
  after.reserve(object["deps"].size());
  for (const Json &dep : object["deps"])
    after.push_back(NodeId{uint32_t(dep.get<uint64_t>())});
  return after;
}

Result<DeviceId> readPlace(const Dag &dag, const Fields &fields,
                           const char *field) {
  const Json *value = fields.find(field);
  if (value && *value == "host")
    return DeviceId::host();
  if (value && value->is_string())
    return fields.bad(field, "must be a device's number or \"host\"");
  MGPU_TRY_ASSIGN(uint64_t device, fields.integer(field, dag.numDevices - 1));
  return DeviceId{int32_t(device)};
}

Result<std::vector<int64_t>> readNumbers(const Fields &fields,
                                         const char *field) {
  const Json *list = fields.find(field);
  if (!list || !list->is_array())
    return fields.bad(field, "must be an array of numbers");
  std::vector<int64_t> values;
  for (const Json &value : *list) {
    if (!value.is_number_integer())
      return fields.bad(field, "must be an array of whole numbers");
    values.push_back(value.get<int64_t>());
  }
  return values;
}

Result<void> readPhase(const Dag &dag, const Fields &fields, DagNode &node) {
  if (fields.find("location")) {
    MGPU_TRY_ASSIGN(node.location, fields.text("location"));
  }
  if (!fields.find("phase"))
    return {};
  if (dag.spmd)
    return fields.bad("phase", "is not allowed in a file that is spmd");
  MGPU_TRY_ASSIGN(const std::string name, fields.text("phase"));
  for (Phase phase : allPhases)
    if (toString(phase) == name) {
      node.phase = phase;
      return {};
    }
  return fields.bad("phase", "must be load, prologue, replay, epilogue or "
                             "fetch");
}

Result<void> readDevices(const Dag &dag, const Fields &fields, DagNode &node,
                         OpaqueCall &call) {
  MGPU_TRY_ASSIGN(uint64_t group,
                  fields.integer("group", dag.numDevices, dag.numDevices));
  if (group == 0)
    return fields.bad("group", "must be at least 1");
  call.group = uint32_t(group);
  if (dag.spmd) {
    if (fields.find("device"))
      return fields.bad("device", "is not allowed in a file that is spmd");
    node.devices = {DeviceId{0}};
    return {};
  }
  if (fields.find("devices")) {
    MGPU_TRY_ASSIGN(const std::vector<int64_t> list,
                    readNumbers(fields, "devices"));
    for (int64_t device : list) {
      if (device < 0 || device >= int64_t(dag.numDevices) ||
          (!node.devices.empty() && device <= node.devices.back().value))
        return fields.bad("devices", "must be devices that ascend");
      node.devices.push_back(DeviceId{int32_t(device)});
    }
    if (list.empty())
      return fields.bad("devices", "must not be empty");
    return {};
  }
  if (fields.find("device")) {
    MGPU_TRY_ASSIGN(uint64_t device,
                    fields.integer("device", dag.numDevices - 1));
    node.devices = {DeviceId{int32_t(device)}};
    return {};
  }
  if (!call.isCollective)
    return fields.bad("device", "is missing; a file that is not spmd names "
                                "the device of each kernel");
  for (uint64_t d = 0; d < group; ++d)
    node.devices.push_back(DeviceId{int32_t(d)});
  return {};
}

static Result<double> readShare(const Dag &dag, const Fields &fields) {
  if (!fields.find("sm_share"))
    return 1.0;
  if (!dag.spmd)
    return fields.bad("sm_share", "is allowed in files that are spmd; in "
                                  "others a device runs one kernel at a "
                                  "time");
  MGPU_TRY_ASSIGN(const double share, fields.number("sm_share"));
  if (!(share > 0 && share <= 1))
    return fields.bad("sm_share", "must be above 0 and at most 1");
  return share;
}

Result<void> readCost(const Dag &dag, const Fields &fields, NodeKind other,
                      OpaqueCall call, DagNode &node) {
  if (call.isCollective) {
    MGPU_TRY_ASSIGN(call.bytes, fields.integer("bytes", maxBytes));
  }
  const Json *op = fields.find("op");
  bool isNamed = op && op->is_string();
  node.isMatmul = isNamed && *op == "matmul";
  if (!call.isCollective) {
    call.isSlice =
        isSliceName(isNamed ? op->get_ref<const std::string &>() : node.name);
    MGPU_TRY_ASSIGN(call.splittable, fields.integer("splittable", maxBytes, 0));
    MGPU_TRY_ASSIGN(call.smShare, readShare(dag, fields));
  }
  node.work = call;
  MGPU_TRY_ASSIGN(node.flops, fields.number("flops"));
  MGPU_TRY_ASSIGN(node.bytesRead, fields.integer("bytes_read", maxBytes, 0));
  MGPU_TRY_ASSIGN(node.bytesWritten,
                  fields.integer("bytes_written", maxBytes, 0));
  MGPU_TRY_ASSIGN(node.outBytes, fields.integer("out_bytes", maxBytes, 0));
  if (other == NodeKind::Fill) {
    MGPU_TRY_ASSIGN(node.bytesWritten, fields.integer("bytes", maxBytes));
    node.outBytes = fields.find("uses") ? 0 : node.bytesWritten;
  }
  return {};
}

} // namespace mgpu::planner
