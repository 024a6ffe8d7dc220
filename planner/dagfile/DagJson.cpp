// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/dagfile/DagJson.h"

#include "planner/dag/DagBuilder.h"
#include "support/FileIO.h"
#include "support/TextPlace.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace mgpu::planner {

using Json = nlohmann::json;

// Keeps sums of sizes inside 64 bits.
static constexpr uint64_t maxBytes = uint64_t(1) << 52;

namespace {

/// One object of the file, with the words to name it in errors.
class Fields {
public:
  Fields(const Json &object, std::string where)
      : object(object), where(std::move(where)) {}

  tl::unexpected<Error> bad(std::string_view field,
                            std::string_view what) const {
    return fail(ErrorKind::Invalid,
                fmt::format("{}: field \"{}\" {}", where, field, what));
  }
  const Json *find(const char *field) const {
    auto it = object.find(field);
    return it == object.end() || it->is_null() ? nullptr : &*it;
  }
  Result<std::string> text(const char *field) const {
    const Json *value = find(field);
    if (!value || !value->is_string())
      return bad(field, value ? "must be a string" : "is missing");
    return value->get<std::string>();
  }
  Result<uint64_t> integer(const char *field, uint64_t limit,
                           std::optional<uint64_t> absent = {}) const {
    const Json *value = find(field);
    if (!value && absent)
      return *absent;
    if (!value)
      return bad(field, "is missing");
    return asInteger(field, *value, limit);
  }
  Result<uint64_t> asInteger(const char *field, const Json &value,
                             uint64_t limit) const {
    if (!value.is_number_unsigned() || value.get<uint64_t>() > limit)
      return bad(field, fmt::format("must be an integer from 0 to {}", limit));
    return value.get<uint64_t>();
  }
  Result<double> number(const char *field) const {
    const Json *value = find(field);
    if (!value)
      return 0.0;
    if (!value->is_number() || !(value->get<double>() >= 0) ||
        !(value->get<double>() <= 1e18))
      return bad(field, "must be a number from 0 to 1e18");
    return value->get<double>();
  }

private:
  const Json &object;
  std::string where;
};

std::optional<OpaqueCall> parseKind(std::string_view kind) {
  static constexpr std::pair<std::string_view, CollectiveKind> kinds[] = {
      {"all_reduce", CollectiveKind::AllReduce},
      {"all_gather", CollectiveKind::AllGather},
      {"reduce_scatter", CollectiveKind::ReduceScatter},
      {"all_to_all", CollectiveKind::AllToAll},
      {"permute", CollectiveKind::Permute},
      {"broadcast", CollectiveKind::Broadcast},
      {"send", CollectiveKind::SendRecv},
      {"recv", CollectiveKind::SendRecv},
  };
  OpaqueCall call;
  if (kind == "kernel")
    return call;
  for (auto [name, value] : kinds)
    if (name == kind) {
      call.isCollective = true;
      call.kind = value;
      return call;
    }
  return std::nullopt;
}

/// Whether a kernel is called what XLA calls a slice at an offset that is read:
/// by "op", else by its name up to the number.
bool isSliceName(std::string_view name) {
  name = name.substr(0, name.find('.'));
  return name == "dynamic-slice" || name == "dynamic_slice";
}

class Reader {
public:
  Reader(const Json &root, std::string_view source)
      : root(root), source(source), tracker(dag) {}

  Result<Dag> run() {
    if (!root.is_object())
      return fail(ErrorKind::Invalid,
                  fmt::format("{}: the file is not a JSON object", source));
    Fields top(root, std::string(source));
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
    MGPU_TRY(findConsumers(*nodes));
    dag.nodes.reserve(nodes->size());
    for (size_t i = 0; i < nodes->size(); ++i)
      MGPU_TRY(readNode(i, (*nodes)[i]));
    MGPU_TRY(dag.check());
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

  /// Which outputs something reads, before buffers are made for them.
  Result<void> findConsumers(const Json &nodes) {
    hasConsumer.resize(nodes.size(), false);
    for (size_t i = 0; i < nodes.size(); ++i) {
      if (!nodes[i].is_object())
        return fail(ErrorKind::Invalid,
                    fmt::format("{} is not a JSON object", where(i, nodes[i])));
      Fields fields(nodes[i], where(i, nodes[i]));
      const Json *deps = fields.find("deps");
      if (!deps || !deps->is_array())
        return fields.bad("deps", "must be an array of node ids");
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
    }
    return {};
  }

  Result<void> readDevices(const Fields &fields, DagNode &node,
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

  BufferId addBuffer(std::string name, DeviceId device, BufferRole role,
                     uint64_t bytes) {
    BufferId id{uint32_t(dag.buffers.size())};
    Buffer buffer;
    buffer.name = std::move(name);
    buffer.device = device;
    buffer.role = role;
    buffer.sizeBytes = bytes;
    buffer.shape = {int64_t(bytes)};
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
    std::optional<OpaqueCall> call = parseKind(kind);
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
    MGPU_TRY(readDevices(fields, node, *call));
    if (call->isCollective) {
      MGPU_TRY_ASSIGN(call->bytes, fields.integer("bytes", maxBytes));
    }
    const Json *op = fields.find("op");
    bool isNamed = op && op->is_string();
    node.isMatmul = isNamed && *op == "matmul";
    if (!call->isCollective) {
      call->isSlice =
          isSliceName(isNamed ? op->get_ref<const std::string &>() : node.name);
      MGPU_TRY_ASSIGN(call->splittable,
                      fields.integer("splittable", maxBytes, 0));
    }
    node.work = *call;
    MGPU_TRY_ASSIGN(node.flops, fields.number("flops"));
    MGPU_TRY_ASSIGN(node.bytesRead, fields.integer("bytes_read", maxBytes, 0));
    MGPU_TRY_ASSIGN(node.bytesWritten,
                    fields.integer("bytes_written", maxBytes, 0));
    MGPU_TRY_ASSIGN(node.outBytes, fields.integer("out_bytes", maxBytes, 0));
    MGPU_TRY_ASSIGN(uint64_t workspace,
                    fields.integer("workspace_bytes", maxBytes, 0));
    if (fields.find("duration_us")) {
      MGPU_TRY_ASSIGN(node.durationUs, fields.number("duration_us"));
    }

    std::vector<NodeId> after;
    for (const Json &dep : object["deps"]) {
      NodeId from{uint32_t(dep.get<uint64_t>())};
      after.push_back(from);
      if (outputs[from.value])
        use(node, *outputs[from.value], true, false);
    }
    MGPU_TRY(addOutput(fields, i, node));
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
      if (!hasConsumer[i])
        dag.buffers[output->value].role = BufferRole::Resident;
    } else if (node.outBytes > 0) {
      output = addBuffer(
          fmt::format("{}:{}", i, node.name), node.devices.front(),
          hasConsumer[i] ? BufferRole::Temporary : BufferRole::Resident,
          node.outBytes);
    }
    if (output)
      use(node, *output, false, true);
    outputs.push_back(output);
    return {};
  }

  const Json &root;
  std::string source;
  Dag dag;
  DependencyTracker tracker;
  std::vector<bool> hasConsumer;
  std::vector<std::optional<BufferId>> outputs; ///< of each node read so far
};

} // namespace

Result<Dag> parseDagJson(std::string_view text, std::string_view source) {
  // The position comes only with the library's exception.
  Json root;
  try {
    root = Json::parse(text.begin(), text.end());
  } catch (const Json::parse_error &error) {
    return fail(
        ErrorKind::Invalid,
        fmt::format("{}: not valid JSON at {}", source,
                    placeIn(text, std::max<size_t>(error.byte, 1) - 1)));
  } catch (const Json::exception &) { // a number beyond all types
    return fail(ErrorKind::Invalid,
                fmt::format("{}: a number in it is too large", source));
  }
  return Reader(root, source).run();
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
