// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "device/api/Topology.h"

#include "support/FileIO.h"

#include <algorithm>
#include <array>
#include <cmath>
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
  uint32_t device(const char *name, uint32_t devices) {
    const Json *value = find(name);
    if (value && value->is_number_unsigned() &&
        value->get<uint64_t>() < devices)
      return value->get<uint32_t>();
    bad(name, fmt::format("must be a device below {}", devices));
    return 0;
  }
  double factor(const char *name) {
    const Json *value = find(name);
    if (value && value->is_number() && value->get<double>() >= 1 &&
        value->get<double>() <= 1e3)
      return value->get<double>();
    bad(name, "must be a factor from 1 to 1000");
    return 1;
  }
  double rate(const char *name) {
    const Json *value = find(name);
    if (value && value->is_number() && value->get<double>() >= 1e-9 &&
        value->get<double>() < 1e18)
      return value->get<double>();
    bad(name, "must be a number from 1e-9 to 1e18");
    return 0;
  }
  /// False where it is absent.
  bool flag(const char *name) {
    const Json *value = find(name);
    if (value && !value->is_boolean())
      bad(name, "must be true or false");
    return value && value->is_boolean() && value->get<bool>();
  }
  /// All fields, each a rate.
  std::map<std::string, double> rates() {
    std::map<std::string, double> out;
    for (auto it = object.begin(); object.is_object() && it != object.end();
         ++it)
      out[it.key()] = rate(it.key().c_str());
    if (out.empty())
      bad("", "has no counts");
    return out;
  }
  /// One of `words`; the first after a fault.
  std::string word(const char *name,
                   std::initializer_list<std::string_view> words) {
    std::string given = text(name);
    if (std::find(words.begin(), words.end(), given) == words.end())
      bad(name, fmt::format("must be one of {}", fmt::join(words, ", ")));
    return given;
  }
  /// The objects of a list, which may be empty; `most` is their limit.
  std::vector<Fields> list(const char *name, size_t most) {
    std::vector<Fields> out;
    const Json *value = find(name);
    if (!value || !value->is_array() || value->size() > most) {
      bad(name, fmt::format("must be a list of at most {} objects", most));
      return out;
    }
    for (size_t k = 0; k < value->size(); ++k)
      out.push_back(Fields(
          (*value)[k], fmt::format("{}: {} {}", where, name, k + 1), fault));
    return out;
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

/// By LinkKind.
constexpr std::array<std::string_view, 3> linkWords = {"nvlink", "pcie",
                                                       "memory"};
constexpr size_t most = 10'000; ///< of each list of a calibration

void parsePairs(Fields &in, uint32_t devices,
                std::vector<Topology::Calibration::Pair> &out) {
  for (Fields &each : in.list("pairs", most)) {
    each.allow({"from", "to", "start_us", "bytes_per_second"});
    Topology::Calibration::Pair &row = out.emplace_back();
    row.from = each.device("from", devices);
    row.to = each.device("to", devices);
    row.startUs = each.rate("start_us");
    row.bytesPerSecond = each.rate("bytes_per_second");
    if (row.from == row.to)
      each.bad("to", "must be another device");
  }
  std::sort(out.begin(), out.end(), [](const auto &a, const auto &b) {
    return std::pair(a.from, a.to) < std::pair(b.from, b.to);
  });
}

Topology::Calibration parseCalibration(Fields in, uint32_t devices) {
  Topology::Calibration out;
  in.allow({"launch_us", "copy_latency_us", "source", "collectives", "matmuls",
            "contention", "kernel_beside_kernel", "pairs", "host"});
  out.launchUs = in.rate("launch_us");
  out.copyLatencyUs = in.rate("copy_latency_us");
  out.source = in.text("source");
  for (Fields &each : in.list("collectives", most)) {
    each.allow({"op", "ranks", "bytes", "us"});
    Topology::Calibration::Collective &row = out.collectives.emplace_back();
    row.op = each.word("op", {"all_reduce", "all_gather", "reduce_scatter",
                              "all_to_all", "broadcast", "send_recv"});
    row.ranks = uint32_t(each.count("ranks", 1 << 16));
    row.bytes = each.count("bytes", uint64_t(1) << 52);
    row.us = each.rate("us");
  }
  for (Fields &each : in.list("matmuls", most)) {
    each.allow({"type", "m", "n", "k", "us", "turned"});
    Topology::Calibration::Matmul &row = out.matmuls.emplace_back();
    row.type = each.word("type", {"f32", "f64", "bf16"});
    row.isTurned = each.flag("turned");
    row.m = uint32_t(each.count("m", 1 << 24));
    row.n = uint32_t(each.count("n", 1 << 24));
    row.k = uint32_t(each.count("k", 1 << 24));
    row.us = each.rate("us");
  }
  for (Fields &each : in.list("contention", 9)) {
    each.allow({"work", "beside", "factor"});
    Topology::Calibration::Beside &row = out.contention.emplace_back();
    row.work = each.word("work", {"kernel", "copy", "collective"});
    row.beside = each.word("beside", {"kernel", "copy", "collective"});
    row.factor = each.factor("factor");
  }
  for (Fields &each : in.list("kernel_beside_kernel", most)) {
    each.allow({"multiprocessors", "factor"});
    Topology::Calibration::BesideKernel &row = out.besideKernel.emplace_back();
    row.multiprocessors = uint32_t(each.count("multiprocessors", 1 << 16));
    row.factor = each.factor("factor");
  }
  if (in.has("pairs"))
    parsePairs(in, devices, out.pairs);
  if (in.has("host"))
    for (Fields &each : in.list("host", most)) {
      each.allow({"counts", "bytes", "us"});
      Topology::Calibration::HostWork &row = out.host.emplace_back();
      row.counts = each.inside("counts").rates();
      row.bytes = each.rate("bytes");
      row.us = each.rate("us");
      auto isSane = [](double number) {
        return number > 1e-6 && number < 1e15;
      };
      bool areSane = isSane(row.bytes) && isSane(row.us);
      for (const auto &[name, count] : row.counts)
        areSane &= isSane(count);
      if (!areSane)
        each.bad("", "has a number that is not from 1e-6 to 1e15");
    }
  return out;
}

constexpr std::array<std::string_view, 14> achieved = {
    "memory_share",
    "memory_share_below_100mb",
    "memory_share_below_10mb",
    "memory_share_below_1mb",
    "flops_share",
    "product_share",
    "beside_collective_share",
    "clock_share",
    "launch_us",
    "start_us",
    "one_shot_us",
    "relay_us",
    "linked_devices",
    "replay_us"};

/// The fields that a rate may be the source of.
std::map<std::string_view, double> fieldsOf(const Topology &topology) {
  const Topology::Device &device = topology.device;
  std::map<std::string_view, double> out{
      {"memory_bytes", double(device.memoryBytes)},
      {"memory_bytes_per_second", device.memoryBytesPerSecond},
      {"sm_count", device.smCount},
      {"flops_per_second", device.flopsPerSecond},
      {"bf16_flops_per_second", device.bf16FlopsPerSecond},
      {"tf32_flops_per_second", device.tf32FlopsPerSecond},
      {"link_bytes_per_second", topology.link.bytesPerSecond},
      {"host_link_bytes_per_second", topology.hostLink.bytesPerSecond}};
  if (topology.nic) {
    out["nic_count"] = topology.nic->count;
    out["nic_bytes_per_second"] = topology.nic->bytesPerSecond;
  }
  return out;
}

void parseRate(Fields &in, Topology &topology) {
  in.allow({"name", "value", "low", "high", "from", "url", "quote", "assumed"});
  Topology::Rate rate;
  rate.name = in.text("name");
  rate.low = rate.high = rate.value = in.rate("value");
  if (in.has("low") || in.has("high") || in.has("assumed")) {
    rate.low = in.rate("low");
    rate.high = in.rate("high");
  }
  if (in.has("assumed")) {
    rate.assumed = in.text("assumed");
    if (!rate.isRange())
      in.bad("low", "must be below \"high\" in a rate that is assumed");
    for (const char *quoted : {"from", "url", "quote"})
      if (in.has(quoted))
        in.bad(quoted, "must be absent in a rate that is assumed");
  } else {
    rate.from = in.text("from");
    rate.url = in.text("url");
    rate.quote = in.text("quote");
  }
  if (rate.value < rate.low || rate.value > rate.high)
    in.bad("value", "must lie from \"low\" to \"high\"");
  const auto fields = fieldsOf(topology);
  const auto field = fields.find(rate.name);
  if (field == fields.end() &&
      std::find(achieved.begin(), achieved.end(), rate.name) == achieved.end())
    in.bad("name", fmt::format("must be a figure of the device, \"link_\", "
                               "\"host_link_\" or \"nic_\" and one of theirs, "
                               "or one of {}",
                               fmt::join(achieved, ", ")));
  else if (field != fields.end() &&
           std::abs(field->second - rate.value) > 1e-6 * rate.value)
    in.bad("value", "must be that of the field it names");
  else if (field != fields.end() && rate.isRange())
    in.bad("high", "must equal \"low\" where the rate names a field");
  else if (topology.rate(rate.name))
    in.bad("name", "must differ from those before it");
  if (rate.name.find("_share") != std::string::npos &&
      (rate.low < 1e-3 || rate.high > 1))
    in.bad("value", "must be from 0.001 to 1, as it is a share");
  topology.rates.push_back(std::move(rate));
}

} // namespace

std::vector<std::string_view> rateNames() {
  return {achieved.begin(), achieved.end()};
}

const Topology::Rate *Topology::rate(std::string_view name) const {
  auto it = std::ranges::find(rates, name, &Rate::name);
  return it == rates.end() ? nullptr : &*it;
}

bool Topology::hasRanges() const {
  return std::ranges::any_of(rates, &Rate::isRange);
}

Topology Topology::atEnd(bool slow) const {
  Topology out = *this;
  for (Rate &rate : out.rates)
    rate.low = rate.high = rate.value =
        rate.name.ends_with("_us") == slow ? rate.high : rate.low;
  return out;
}

std::string Topology::Rate::source() const {
  const std::string words = assumed.empty()
                                ? fmt::format("{} says \"{}\"", url, quote)
                                : "assumed: " + assumed;
  return isRange() ? fmt::format("{:g} to {:g}; {}", low, high, words) : words;
}

Result<Topology> parseTopology(std::string_view text, std::string_view source) {
  Json root = Json::parse(text.begin(), text.end(), nullptr, false);
  if (root.is_discarded())
    return fail(ErrorKind::Invalid, fmt::format("{}: not valid JSON", source));
  Result<void> fault;
  Topology topology;
  Fields top(root, std::string(source), fault);
  top.allow({"format", "name", "nodes", "devices", "device", "link",
             "host_link", "nic", "calibration", "rates"});
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
  const std::string kind =
      link.word("kind", {linkWords[0], linkWords[1], linkWords[2]});
  for (size_t k = 0; k < linkWords.size(); ++k)
    if (kind == linkWords[k])
      topology.link.kind = LinkKind(k);
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
  if (top.has("calibration"))
    topology.calibration =
        parseCalibration(top.inside("calibration"), topology.devices);
  if (top.has("rates"))
    for (Fields &each : top.list("rates", 100))
      parseRate(each, topology);
  if (!fault)
    return fail(std::move(fault.error()));
  return topology;
}

const Topology::Calibration::Pair *Topology::pair(uint32_t from,
                                                  uint32_t to) const {
  if (!calibration)
    return nullptr;
  const auto &pairs = calibration->pairs;
  auto at = std::lower_bound(pairs.begin(), pairs.end(), std::pair(from, to),
                             [](const Calibration::Pair &pair,
                                const std::pair<uint32_t, uint32_t> &key) {
                               return std::pair(pair.from, pair.to) < key;
                             });
  return at != pairs.end() && at->from == from && at->to == to ? &*at : nullptr;
}

static nlohmann::ordered_json ratesJson(const Topology &topology) {
  auto out = nlohmann::ordered_json::array();
  for (const auto &each : topology.rates) {
    nlohmann::ordered_json &into = out.emplace_back();
    into = {{"name", each.name}, {"value", each.value}};
    if (each.isRange())
      into.update({{"low", each.low}, {"high", each.high}});
    if (!each.assumed.empty())
      into["assumed"] = each.assumed;
    else
      into.update(
          {{"from", each.from}, {"url", each.url}, {"quote", each.quote}});
  }
  return out;
}

std::string topologyText(const Topology &topology) {
  using Ordered = nlohmann::ordered_json;
  const Topology::Device &d = topology.device;
  Ordered out{{"format", "mgpu-topology/1"},
              {"name", topology.name},
              {"nodes", topology.nodes},
              {"devices", topology.devices}};
  out["device"] = {{"name", d.name},
                   {"memory_bytes", d.memoryBytes},
                   {"memory_bytes_per_second", d.memoryBytesPerSecond},
                   {"sm_count", d.smCount},
                   {"architecture", d.architecture},
                   {"flops_per_second", d.flopsPerSecond},
                   {"bf16_flops_per_second", d.bf16FlopsPerSecond},
                   {"tf32_flops_per_second", d.tf32FlopsPerSecond},
                   {"source", d.source}};
  out["link"] = {{"kind", linkWords[size_t(topology.link.kind)]},
                 {"bytes_per_second", topology.link.bytesPerSecond},
                 {"source", topology.link.source}};
  out["host_link"] = {{"bytes_per_second", topology.hostLink.bytesPerSecond},
                      {"source", topology.hostLink.source}};
  if (topology.nic)
    out["nic"] = {{"count", topology.nic->count},
                  {"bytes_per_second", topology.nic->bytesPerSecond},
                  {"source", topology.nic->source}};
  if (const auto &c = topology.calibration) {
    Ordered &into = out["calibration"];
    into = {{"launch_us", c->launchUs},
            {"copy_latency_us", c->copyLatencyUs},
            {"source", c->source}};
    for (const char *list :
         {"collectives", "matmuls", "contention", "kernel_beside_kernel"})
      into[list] = Ordered::array();
    for (const auto &each : c->collectives)
      into["collectives"].push_back({{"op", each.op},
                                     {"ranks", each.ranks},
                                     {"bytes", each.bytes},
                                     {"us", each.us}});
    for (const auto &each : c->matmuls)
      into["matmuls"].push_back({{"type", each.type},
                                 {"m", each.m},
                                 {"n", each.n},
                                 {"k", each.k},
                                 {"us", each.us}});
    for (size_t k = 0; k < c->matmuls.size(); ++k)
      if (c->matmuls[k].isTurned)
        into["matmuls"][k]["turned"] = true;
    for (const auto &each : c->host)
      into["host"].push_back(
          {{"counts", each.counts}, {"bytes", each.bytes}, {"us", each.us}});
    for (const auto &each : c->contention)
      into["contention"].push_back({{"work", each.work},
                                    {"beside", each.beside},
                                    {"factor", each.factor}});
    for (const auto &each : c->pairs)
      into["pairs"].push_back({{"from", each.from},
                               {"to", each.to},
                               {"start_us", each.startUs},
                               {"bytes_per_second", each.bytesPerSecond}});
    for (const auto &each : c->besideKernel)
      into["kernel_beside_kernel"].push_back(
          {{"multiprocessors", each.multiprocessors}, {"factor", each.factor}});
  }
  if (!topology.rates.empty())
    out["rates"] = ratesJson(topology);
  return out.dump(1) + "\n";
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
                fmt::format("target \"{}\" is not a topology; give sim:NAME or "
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
