// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "device/api/Topology.h"

#include "support/FileIO.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <initializer_list>
#include <nlohmann/json.hpp>

namespace mgpu::device {

using Json = nlohmann::json;

namespace {

struct Builtin {
  std::string_view name, text;
};
constexpr Builtin builtins[] = {
#include "device/api/Topologies.inc"
};

/// One object of the file; remembers the first fault.
class Fields {
public:
  Fields(const Json &object, std::string where, Result<void> &fault)
      : object(object), where(std::move(where)), fault(fault) {}

  void allow(std::initializer_list<std::string_view> names) {
    if (!object.is_object())
      return bad("", "is not an object");
    for (auto it = object.begin(); it != object.end(); ++it)
      if (std::find(names.begin(), names.end(), it.key()) == names.end())
        bad(it.key(), "is unknown");
  }
  Fields inside(const char *name) {
    static const Json nothing = Json::object();
    const Json *value = find(name);
    return Fields(value ? *value : nothing, where + ": " + name, fault);
  }
  bool has(const char *name) const {
    return object.is_object() && object.contains(name);
  }
  std::string text(const char *name) {
    const Json *value = find(name);
    if (value && value->is_string() &&
        !value->get_ref<const std::string &>().empty())
      return value->get<std::string>();
    bad(name, "must be a string that is not empty");
    return "";
  }
  uint64_t count(const char *name, uint64_t limit) {
    const Json *value = find(name);
    if (value && value->is_number_unsigned() && value->get<uint64_t>() >= 1 &&
        value->get<uint64_t>() <= limit)
      return value->get<uint64_t>();
    bad(name, fmt::format("must be a whole number from 1 to {}", limit));
    return 0;
  }
  double rate(const char *name) {
    const Json *value = find(name);
    if (value && value->is_number() && value->get<double>() > 0 &&
        value->get<double>() < 1e18)
      return value->get<double>();
    bad(name, "must be a rate per second above 0");
    return 0;
  }
  void bad(std::string_view name, std::string_view what) {
    if (fault)
      fault = fail(ErrorKind::Invalid,
                   name.empty()
                       ? fmt::format("{}: {}", where, what)
                       : fmt::format("{}: field \"{}\" {}", where, name, what));
  }

private:
  const Json *find(const char *name) const {
    if (!object.is_object())
      return nullptr;
    auto it = object.find(name);
    return it == object.end() ? nullptr : &*it;
  }

  const Json &object;
  std::string where;
  Result<void> &fault;
};

} // namespace

Result<Topology> parseTopology(std::string_view text, std::string_view source) {
  Json root = Json::parse(text.begin(), text.end(), nullptr, false);
  if (root.is_discarded())
    return fail(ErrorKind::Invalid, fmt::format("{}: not valid JSON", source));
  Result<void> fault;
  Topology topology;
  Fields top(root, std::string(source), fault);
  top.allow({"format", "name", "nodes", "devices", "device", "link",
             "host_link", "nic"});
  if (std::string format = top.text("format"); format != "mgpu-topology/1")
    top.bad("format", "must be \"mgpu-topology/1\"");
  topology.name = top.text("name");
  if (top.has("nodes"))
    topology.nodes = uint32_t(top.count("nodes", 1 << 16));
  topology.devices = uint32_t(top.count("devices", 1 << 16));
  if (topology.nodes > 0 && topology.devices % topology.nodes != 0)
    top.bad("devices", "must be a multiple of the nodes");

  Fields device = top.inside("device");
  device.allow({"name", "architecture", "memory_bytes",
                "memory_bytes_per_second", "sm_count", "flops_per_second",
                "bf16_flops_per_second", "tf32_flops_per_second", "source"});
  topology.device.name = device.text("name");
  topology.device.architecture = uint32_t(device.count("architecture", 999));
  topology.device.memoryBytes = device.count("memory_bytes", uint64_t(1) << 52);
  topology.device.memoryBytesPerSecond = device.rate("memory_bytes_per_second");
  topology.device.smCount = uint32_t(device.count("sm_count", 1 << 16));
  topology.device.flopsPerSecond = device.rate("flops_per_second");
  topology.device.bf16FlopsPerSecond = device.rate("bf16_flops_per_second");
  topology.device.tf32FlopsPerSecond = device.rate("tf32_flops_per_second");
  topology.device.source = device.text("source");

  Fields link = top.inside("link");
  link.allow({"kind", "bytes_per_second", "source"});
  std::string kind = link.text("kind");
  if (kind != "nvlink" && kind != "pcie")
    link.bad("kind", "must be \"nvlink\" or \"pcie\"");
  topology.link.kind = kind == "pcie" ? LinkKind::Pcie : LinkKind::NvLink;
  topology.link.bytesPerSecond = link.rate("bytes_per_second");
  topology.link.source = link.text("source");

  Fields hostLink = top.inside("host_link");
  hostLink.allow({"bytes_per_second", "source"});
  topology.hostLink.bytesPerSecond = hostLink.rate("bytes_per_second");
  topology.hostLink.source = hostLink.text("source");

  if (top.has("nic") || topology.nodes > 1) {
    Fields nic = top.inside("nic");
    nic.allow({"count", "bytes_per_second", "source"});
    topology.nic.emplace();
    topology.nic->count = uint32_t(nic.count("count", 1 << 16));
    topology.nic->bytesPerSecond = nic.rate("bytes_per_second");
    topology.nic->source = nic.text("source");
  }
  if (!fault)
    return fail(std::move(fault.error()));
  return topology;
}

std::vector<std::string_view> builtinTopologies() {
  std::vector<std::string_view> names;
  for (const Builtin &builtin : builtins)
    names.push_back(builtin.name);
  std::sort(names.begin(), names.end());
  return names;
}

Result<Topology> openTopology(std::string_view target) {
  static constexpr std::string_view prefix = "sim:";
  static constexpr uint64_t sizeLimit = 1 << 20;
  if (!target.starts_with(prefix))
    return fail(ErrorKind::Usage,
                fmt::format("target \"{}\" is no topology; give sim:NAME or "
                            "sim:FILE",
                            target));
  std::string name(target.substr(prefix.size()));
  if (name.find('/') != std::string::npos || name.ends_with(".json")) {
    MGPU_TRY_ASSIGN(std::vector<std::byte> bytes, readFile(name, sizeLimit));
    return parseTopology(
        {reinterpret_cast<const char *>(bytes.data()), bytes.size()}, name);
  }
  for (const Builtin &builtin : builtins)
    if (builtin.name == name)
      return parseTopology(builtin.text, builtin.name);
  return fail(ErrorKind::Usage,
              fmt::format("there is no topology \"{}\"; known are {}", name,
                          fmt::join(builtinTopologies(), ", ")));
}

} // namespace mgpu::device
