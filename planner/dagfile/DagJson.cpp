// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/dagfile/DagJson.h"

#include "planner/dag/DagBuilder.h"
#include "planner/dagfile/DagJsonFields.h"
#include "support/FileIO.h"

#include <algorithm>
#include <set>

namespace mgpu::planner {

// The fields of one node of an mgpu-dag/2 file that say what it is, whatever
// the other nodes are. `dag` is what the top of the file says.

/// "deps", whose form has been checked.
static std::vector<NodeId> dependenciesOf(const Json &object) {
  std::vector<NodeId> after;
  after.reserve(object["deps"].size());
  for (const Json &dep : object["deps"])
    after.push_back(NodeId{uint32_t(dep.get<uint64_t>())});
  return after;
}

/// A device's number, or "host".
static Result<DeviceId> readPlace(const Dag &dag, const Fields &fields,
                                  const char *field) {
  const Json *value = fields.find(field);
  if (value && *value == "host")
    return DeviceId::host();
  if (value && value->is_string())
    return fields.bad(field, "must be a device's number or \"host\"");
  MGPU_TRY_ASSIGN(uint64_t device, fields.integer(field, dag.numDevices - 1));
  return DeviceId{int32_t(device)};
}

static Result<std::vector<int64_t>> readNumbers(const Fields &fields,
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

/// When it runs, and where it stands in the source.
static Result<void> readPhase(const Dag &dag, const Fields &fields,
                              DagNode &node) {
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

/// Its devices, and the group of a collective.
static Result<void> readDevices(const Dag &dag, const Fields &fields,
                                DagNode &node, OpaqueCall &call) {
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

/// Reads what a kernel, a fill or a collective computes and moves.
static Result<void> readCost(const Dag &dag, const Fields &fields,
                             NodeKind other, OpaqueCall call, DagNode &node) {
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

namespace {

class Reader {
public:
  explicit Reader(std::string_view source) : source(source), tracker(dag) {}

  /// Everything of the file but its nodes.
  Result<void> readTop(const Json &root) {
    if (!root.is_object())
      return fail(ErrorKind::Invalid,
                  fmt::format("{}: the file is not a JSON object", source));
    Fields top(root, source);
    MGPU_TRY_ASSIGN(std::string format, top.text("format"));
    if (format != "mgpu-dag/2")
      return top.bad("format", fmt::format("is \"{}\"; this version reads "
                                           "\"mgpu-dag/2\"",
                                           format.substr(0, 40)));
    MGPU_TRY_ASSIGN(dag.name, top.text("name"));
    MGPU_TRY_ASSIGN(uint64_t devices, top.integer("devices", maxDevices));
    if (devices == 0)
      return top.bad("devices", "must be at least 1");
    dag.numDevices = uint32_t(devices);
    if (const Json *spmd = top.find("spmd")) {
      if (!spmd->is_boolean())
        return top.bad("spmd", "must be true or false");
      dag.spmd = spmd->get<bool>();
    }
    MGPU_TRY_ASSIGN(dag.residentBytes,
                    top.integer("resident_bytes", maxBytes, 0));
    const Json *nodes = top.find("nodes");
    if (!nodes || !nodes->is_array())
      return top.bad("nodes", "must be an array");
    MGPU_TRY_ASSIGN(dag.loop.trips,
                    top.integer("loop_trips", uint64_t(1) << 62, 1));
    return readBuffers(top);
  }

  Result<void> read(const Json &node) {
    const size_t i = dag.nodes.size();
    MGPU_TRY(checkNode(i, node));
    return readNode(i, node);
  }

  Result<Dag> finish() {
    // A buffer that nothing reads is kept to the end.
    for (size_t i = 0; i < outputs.size(); ++i)
      if (outputs[i] && !hasConsumer[i] &&
          !dag.buffer(*outputs[i]).device.isHost())
        dag.buffers[outputs[i]->value].role = BufferRole::Resident;
    MGPU_TRY(dag.check());
    dag.nodes.shrink_to_fit();
    dag.buffers.shrink_to_fit();
    dag.edges.shrink_to_fit();
    return std::move(dag);
  }

private:
  std::string where(size_t i, const Json &object) const {
    std::string text = fmt::format("{}: node {}", source, i);
    if (object.is_object())
      if (auto it = object.find("name"); it != object.end() && it->is_string())
        text += fmt::format(" \"{}\"", it->get_ref<const std::string &>());
    return text;
  }

  /// Buffers that nodes name in "uses".
  Result<void> readBuffers(const Fields &top) {
    const Json *buffers = top.find("buffers");
    if (!buffers)
      return {};
    if (!buffers->is_array() || dag.spmd)
      return top.bad("buffers", "must be an array, of a file that is not spmd");
    for (const Json &object : *buffers) {
      const std::string where =
          fmt::format("{}: buffer {}", source, dag.buffers.size());
      if (!object.is_object())
        return fail(ErrorKind::Invalid, where + " is not a JSON object");
      const Fields fields(object, where);
      MGPU_TRY_ASSIGN(std::string name, fields.text("name"));
      MGPU_TRY_ASSIGN(const DeviceId device, readPlace(dag, fields, "device"));
      MGPU_TRY_ASSIGN(const uint64_t bytes, fields.integer("bytes", maxBytes));
      const Json *kept = fields.find("kept");
      if (kept && !kept->is_boolean())
        return fields.bad("kept", "must be true or false");
      addBuffer(std::move(name), device, roleOn(device, kept && *kept == true),
                bytes);
    }
    numNamed = dag.buffers.size();
    return {};
  }
  static BufferRole roleOn(DeviceId device, bool isKept) {
    return device.isHost() ? BufferRole::HostLocal
           : isKept        ? BufferRole::Resident
                           : BufferRole::Temporary;
  }

  /// Reads the uses of a node of the buffers named at the top.
  Result<void> readUses(const Fields &of, const std::string &where,
                        DagNode &node) {
    const Json *uses = of.find("uses");
    if (!uses->is_array() || dag.spmd)
      return of.bad("uses", "must be an array, of a file that is not spmd");
    for (const Json &object : *uses) {
      if (!object.is_object())
        return of.bad("uses", "must be an array of objects");
      const Fields fields(object, where + ": use");
      MGPU_TRY_ASSIGN(const uint64_t buffer,
                      fields.integer("buffer", maxBytes));
      if (buffer >= numNamed)
        return fields.bad("buffer", "names none of \"buffers\"");
      const BufferId id{uint32_t(buffer)};
      MGPU_TRY_ASSIGN(const std::string mode, fields.text("mode"));
      if (mode != "r" && mode != "w" && mode != "rw")
        return fields.bad("mode", "must be r, w or rw");
      use(node, id, mode != "w", mode != "r");
      if (!fields.find("sizes"))
        continue;
      Box &box = node.uses.back().box;
      MGPU_TRY_ASSIGN(const uint64_t offset,
                      fields.integer("offset", maxBytes, 0));
      MGPU_TRY_ASSIGN(const uint64_t width,
                      fields.integer("element_bytes", 1024, 1));
      MGPU_TRY_ASSIGN(box.sizes, readNumbers(fields, "sizes"));
      MGPU_TRY_ASSIGN(box.strides, readNumbers(fields, "strides"));
      box.offset = int64_t(offset);
      box.elementBytes = uint32_t(width);
      if (Result<void> ok = checkBox(box); !ok)
        return fields.bad("sizes", ok.error().message);
    }
    return {};
  }

  /// A copy, or work of the host, which is a copy within its memory.
  Result<void> readCopy(const Fields &fields, size_t i, NodeKind kind,
                        DagNode &node, std::span<const NodeId> after) {
    if (dag.spmd)
      return fields.bad("kind", "is not allowed in a file that is spmd");
    std::optional<BufferId> output;
    if (kind == NodeKind::Host && !fields.find("uses")) {
      if (!node.durationUs)
        return fields.bad("duration_us", "is missing; work of the host has no "
                                         "other measure");
      const BufferId memory =
          addBuffer(fmt::format("{}:host", i), DeviceId::host(),
                    BufferRole::HostLocal, 0);
      use(node, memory, true, false);
      use(node, memory, false, true);
    } else if (!fields.find("uses")) {
      MGPU_TRY_ASSIGN(const DeviceId from, readPlace(dag, fields, "from"));
      MGPU_TRY_ASSIGN(const DeviceId to, readPlace(dag, fields, "to"));
      MGPU_TRY_ASSIGN(const uint64_t bytes, fields.integer("bytes", maxBytes));
      std::optional<BufferId> read;
      for (NodeId other : after)
        if (const auto &made = outputs[other.value];
            !read && made && dag.buffer(*made).device == from &&
            dag.buffer(*made).sizeBytes >= bytes)
          read = made;
      if (!read)
        read = addBuffer(fmt::format("{}:source", i), from, roleOn(from, true),
                         bytes);
      use(node, *read, true, false);
      node.uses.back().box = Box::flat(0, int64_t(bytes));
      output = addBuffer(fmt::format("{}:{}", i, node.name), to,
                         roleOn(to, false), bytes);
      use(node, *output, false, true);
      node.bytesRead = node.bytesWritten = bytes;
    }
    const bool isCopy = node.uses.size() == 2 && node.uses[0].reads &&
                        !node.uses[0].writes && node.uses[1].writes &&
                        !node.uses[1].reads;
    if (!isCopy)
      return fields.bad("uses", "of a copy must be what it reads, then what it "
                                "writes");
    node.work = CopyCall{node.uses[0].buffer, node.uses[1].buffer,
                         node.uses[0].box, node.uses[1].box};
    std::set<DeviceId> ends;
    for (const BufferUse &each : node.uses)
      if (!dag.buffer(each.buffer).device.isHost())
        ends.insert(dag.buffer(each.buffer).device);
    node.devices.assign(ends.begin(), ends.end());
    outputs.push_back(output);
    return {};
  }

  Result<void> checkNode(size_t i, const Json &node) {
    if (!node.is_object())
      return fail(ErrorKind::Invalid,
                  fmt::format("{} is not a JSON object", where(i, node)));
    Fields fields(node, where(i, node));
    const Json *deps = fields.find("deps");
    if (!deps || !deps->is_array())
      return fields.bad("deps", "must be an array of node ids");
    hasConsumer.push_back(false);
    for (const Json &dep : *deps) {
      MGPU_TRY_ASSIGN(uint64_t id, fields.asInteger("deps", dep, UINT32_MAX));
      if (id >= i)
        return fields.bad("deps", fmt::format("names node {}, but a node may "
                                              "depend only on earlier ones",
                                              id));
      hasConsumer[id] = true;
    }
    MGPU_TRY_ASSIGN(uint64_t alias,
                    fields.integer("alias_of", UINT32_MAX, UINT32_MAX));
    if (alias != UINT32_MAX && alias >= i)
      return fields.bad("alias_of", fmt::format("names node {}, which is not "
                                                "an earlier one",
                                                alias));
    return {};
  }

  BufferId addBuffer(std::string name, DeviceId device, BufferRole role,
                     uint64_t bytes) {
    BufferId id{uint32_t(dag.buffers.size())};
    Buffer buffer;
    buffer.name = std::move(name);
    buffer.device = device;
    buffer.role = role;
    buffer.sizeBytes = bytes;
    dag.buffers.push_back(std::move(buffer));
    return id;
  }
  void use(DagNode &node, BufferId id, bool reads, bool writes) {
    Box box = Box::flat(0, int64_t(dag.buffer(id).sizeBytes));
    node.uses.push_back({id, std::move(box), reads, writes});
  }

  Result<void> readNode(size_t i, const Json &object) {
    Fields fields(object, where(i, object));
    MGPU_TRY_ASSIGN(uint64_t id, fields.integer("id", UINT32_MAX));
    if (id != i)
      return fields.bad("id", fmt::format("is {}; ids must be 0, 1, 2, ... in "
                                          "the order of the file",
                                          id));
    DagNode node;
    MGPU_TRY_ASSIGN(std::string kind, fields.text("kind"));
    const NodeKind other = parseOther(kind).value_or(NodeKind::Opaque);
    std::optional<OpaqueCall> call =
        parseKind(other == NodeKind::Opaque ? kind : "kernel");
    // Collectives need not have a name of their own.
    if (call && call->isCollective && !fields.find("name")) {
      node.name = fmt::format("{}_{}", kind, dag.nodes.size());
    } else {
      MGPU_TRY_ASSIGN(node.name, fields.text("name"));
    }
    if (!call)
      return fields.bad("kind", fmt::format("is \"{}\", which is not a kind of "
                                            "node",
                                            kind.substr(0, 40)));
    MGPU_TRY(readPhase(dag, fields, node));
    if (other == NodeKind::Copy || other == NodeKind::Host) {
      if (fields.find("duration_us")) {
        MGPU_TRY_ASSIGN(node.durationUs, fields.number("duration_us"));
      }
      const std::vector<NodeId> after = dependenciesOf(object);
      if (fields.find("uses"))
        MGPU_TRY(readUses(fields, where(i, object), node));
      MGPU_TRY(readCopy(fields, i, other, node, after));
      tracker.append(std::move(node), after);
      return {};
    }
    MGPU_TRY(readDevices(dag, fields, node, *call));
    MGPU_TRY(readCost(dag, fields, other, *call, node));
    MGPU_TRY_ASSIGN(uint64_t workspace,
                    fields.integer("workspace_bytes", maxBytes, 0));
    if (fields.find("duration_us")) {
      MGPU_TRY_ASSIGN(node.durationUs, fields.number("duration_us"));
    }

    const std::vector<NodeId> after = dependenciesOf(object);
    if (fields.find("uses")) {
      MGPU_TRY(readUses(fields, where(i, object), node));
      outputs.push_back(std::nullopt);
    } else {
      node.uses.reserve(after.size() + 1);
      for (NodeId from : after)
        if (outputs[from.value])
          use(node, *outputs[from.value], true, false);
      MGPU_TRY(addOutput(fields, i, node));
    }
    if (workspace > 0)
      use(node,
          addBuffer(fmt::format("{}:workspace", i), node.devices.front(),
                    BufferRole::Temporary, workspace),
          false, true);
    tracker.append(std::move(node), after);
    return {};
  }

  Result<void> addOutput(const Fields &fields, size_t i, DagNode &node) {
    std::optional<BufferId> output;
    MGPU_TRY_ASSIGN(uint64_t alias,
                    fields.integer("alias_of", UINT32_MAX, UINT32_MAX));
    if (alias != UINT32_MAX) {
      output = outputs[alias];
      if (!output || dag.buffer(*output).sizeBytes < node.outBytes)
        return fields.bad("alias_of", fmt::format("names node {}, whose output "
                                                  "is smaller than this one",
                                                  alias));
    } else if (node.outBytes > 0) {
      output =
          addBuffer(fmt::format("{}:{}", i, node.name), node.devices.front(),
                    BufferRole::Temporary, node.outBytes);
    }
    if (output) {
      use(node, *output, false, true);
      const auto &call = std::get<OpaqueCall>(node.work);
      if (call.splittable > 0 && node.outBytes % call.splittable == 0 &&
          dag.buffer(*output).sizeBytes == node.outBytes)
        node.uses.back().blockSteps[0] =
            int64_t(node.outBytes / call.splittable);
    }
    outputs.push_back(output);
    return {};
  }

  std::string source;
  Dag dag;
  DependencyTracker tracker;
  std::vector<bool> hasConsumer;
  size_t numNamed = 0; ///< buffers that "uses" may name
  std::vector<std::optional<BufferId>> outputs; ///< of each node read so far
};

} // namespace

Result<Dag> parseDagJson(std::string_view text, std::string_view source) {
  // Fields that decide how nodes are read may stand behind them, so the text is
  // parsed twice.
  Reader reader(source);
  MGPU_TRY_ASSIGN(const Json top, parseNodes(text, source, [](const Json &) {
                    return Result<void>();
                  }));
  MGPU_TRY(reader.readTop(top));
  MGPU_TRY(parseNodes(text, source,
                      [&](const Json &node) { return reader.read(node); }));
  return reader.finish();
}

Result<Dag> readDagJson(const std::string &path) {
  if (path.ends_with(".xz"))
    return fail(ErrorKind::Unsupported,
                fmt::format("{} is compressed with xz; unpack it first with "
                            "`xz -d`",
                            path));
  static constexpr uint64_t limit = uint64_t(4) << 30;
  MGPU_TRY_ASSIGN(std::string text, readText(path, limit));
  return parseDagJson(text, path);
}

} // namespace mgpu::planner
