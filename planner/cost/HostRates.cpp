// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/cost/HostRates.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace mgpu::planner {

using Step = KernelFacts::Step;

namespace {

constexpr double vectorLanes = 8;
constexpr std::array<double, 3> levelBytes = {0x1p16, 0x1p22, 0x1p27};

/// Adds `count` to the two levels that `bytes` lie between, by their logarithm.
void addAtLevels(HostCounts &counts, const std::string &name, double count,
                 double bytes) {
  const double at = std::log2(std::clamp(bytes, levelBytes[0], levelBytes[2]));
  const size_t low = at < std::log2(levelBytes[1]) ? 0 : 1;
  const double begin = std::log2(levelBytes[low]),
               share = (at - begin) / (std::log2(levelBytes[low + 1]) - begin);
  for (auto [level, part] : {std::pair(low, 1 - share), {low + 1, share}})
    if (part > 0)
      counts[name + "." + std::to_string(level)] += count * part;
}

class Counter {
public:
  Counter(const KernelFacts &facts, double blocks, double bytes)
      : facts(facts), bytes(bytes) {
    const double width = facts.block.x;
    lanes = blocks * double(facts.block.volume());
    // Threads of a row that do not fill a vector take as long each as one.
    rows = lanes / width;
    full = rows * vectorLanes *
           (std::floor(width / vectorLanes) + std::fmod(width, vectorLanes));
    counts["block"] = blocks;
  }
  HostCounts run() && {
    for (const Step &step : facts.steps)
      visit(step, facts.places[step.place].times);
    return std::move(counts);
  }

private:
  void visit(const Step &step, double times);
  void visitAccess(const Step &step, double times);

  const KernelFacts &facts;
  const double bytes; ///< of the launch
  double lanes = 0;   ///< threads
  double rows = 0;    ///< of threads
  double full = 0;    ///< lanes of the vectors of all rows
  HostCounts counts;
};

void Counter::visit(const Step &step, double times) {
  switch (step.kind) {
  case Step::Kind::Compute:
    if (step.isAddress)
      return;
    // Work that a row has in common is done once for it.
    if (!step.function.empty())
      counts[step.function] +=
          (step.isCommon ? rows * vectorLanes : full) * times;
    else
      counts[step.isCommon ? "scalar" : "operation"] +=
          (step.isCommon ? rows : full) * times * step.instructions;
    return;
  case Step::Kind::BlockReduction:
    counts["reduction"] += lanes * times;
    return;
  case Step::Kind::SubgroupReduction:
    counts["exchange"] += lanes * times;
    return;
  case Step::Kind::Shared:
    counts["shared"] += lanes * times;
    return;
  case Step::Kind::Load:
  case Step::Kind::Store:
    visitAccess(step, times);
  }
}

void Counter::visitAccess(const Step &step, double times) {
  if (!step.address)
    return addAtLevels(counts, "gather", lanes * times, bytes);
  constexpr uint32_t numIds = 6; // loops' counters follow
  int64_t stride = 0;
  bool isAlongLoop = false;
  for (auto [counter, coefficient] : step.address->terms) {
    if (counter == 0)
      stride = coefficient;
    isAlongLoop |= counter >= numIds && std::abs(coefficient) == 1;
  }
  const double elements = double(step.bytes) / step.width;
  if (facts.block.x == 1 || stride == 0)
    counts["common"] += rows * times * elements;
  else if (std::abs(double(stride)) <= elements)
    counts["access"] += full * times * elements * step.width / 4;
  else if (isAlongLoop)
    counts["turned"] += full * times * elements;
  else
    addAtLevels(counts, "strided", lanes * times * elements, bytes);
}

} // namespace

std::optional<Product> hostProduct(const Dag &dag, const DagNode &node) {
  const auto *call = std::get_if<KernelCall>(&node.work);
  const Product *product =
      call ? dag.kernels[call->kernel.value].product() : nullptr;
  if (!product)
    return std::nullopt;
  Product out = *product;
  if (const auto &part = call->part)
    out.batch *= double(part->count.volume()) / double(call->grid.volume());
  return out;
}

HostCounts hostCounts(const Dag &dag, const DagNode &node) {
  HostCounts counts;
  const double bytes = double(node.bytesRead) + double(node.bytesWritten);
  if (const auto *call = std::get_if<KernelCall>(&node.work)) {
    const KernelSpec &kernel = dag.kernels[call->kernel.value];
    const double blocks =
        double(call->part ? call->part->count.volume() : call->grid.volume());
    if (kernel.facts && !kernel.product() && !kernel.facts->steps.empty())
      counts = Counter(*kernel.facts, blocks, bytes).run();
    else if (!kernel.product())
      counts = {{"operation", node.flops}, {"access", bytes / 4}};
  } else {
    counts = {{"operation", node.flops}, {"access", bytes / 4}};
  }
  counts["launch"] = 1;
  std::erase_if(counts, [](const auto &each) { return !(each.second > 0); });
  return counts;
}

double footprintOf(const Dag &dag) {
  const size_t count = dag.buffers.size(),
               step = std::max<size_t>(count / 1024, 1);
  double bytes = 0;
  for (size_t k = 0; k < count; k += step)
    bytes += double(dag.buffers[k].sizeBytes);
  return bytes * double(step);
}

using Measured = device::Topology::Calibration;

/// The most counts that a fit takes: calibrate writes far fewer.
static constexpr size_t mostNames = 256;

static bool isCopy(const Measured::HostWork &row) {
  return row.counts.contains("copy");
}
/// Bytes that a kernel moves, four for each access.
static double movedBytes(const HostCounts &counts) {
  auto at = counts.find("access");
  return at == counts.end() ? 0 : at->second * 4;
}

/// Whether a row goes once through large buffers and does little else.
static bool isStream(const Measured::HostWork &row) {
  return row.bytes > hostNearBytes &&
         movedBytes(row.counts) > 0.9 * row.bytes &&
         movedBytes(row.counts) < 1.1 * row.bytes &&
         std::ranges::all_of(row.counts, [](const auto &each) {
           return each.first == "launch" || each.first == "block" ||
                  each.first == "access" || each.first == "operation";
         });
}

/// Whether the work of a row decides its time, and memory does not. Accesses
/// apart from each other count by the size of their buffers.
static bool isNear(const Measured::HostWork &row) {
  return row.bytes <= hostNearBytes ||
         std::ranges::any_of(row.counts, [](const auto &each) {
           return each.first.starts_with("strided.") ||
                  each.first.starts_with("gather.");
         });
}

HostRates::HostRates(const Measured &measured) : products(measured.matmuls) {
  fit(measured.host);
  fitMemory(measured.host);
}

/// Non-negative least squares by coordinates (Franc, Hlavac, Navara 2005): each
/// unknown in turn is made the best one for the others.
void HostRates::fit(const Rows &rows) {
  std::vector<std::string> names;
  std::vector<const Measured::HostWork *> fitted;
  for (const Measured::HostWork &row : rows)
    if (!isCopy(row) && isNear(row)) {
      fitted.push_back(&row);
      for (const auto &[name, count] : row.counts)
        if (names.size() < mostNames &&
            std::ranges::find(names, name) == names.end())
          names.push_back(name);
    }
  const size_t n = names.size();
  std::vector<double> square(n * n), right(n), x(n);
  std::vector<std::vector<double>> shares;
  for (const Measured::HostWork *row : fitted) {
    std::vector<double> &share = shares.emplace_back(n);
    for (size_t k = 0; k < n; ++k)
      if (auto at = row->counts.find(names[k]); at != row->counts.end())
        share[k] = at->second / (row->us * 1e3);
    for (size_t i = 0; i < n; ++i) {
      right[i] += share[i];
      for (size_t k = 0; k < n; ++k)
        square[i * n + k] += share[i] * share[k];
    }
  }
  for (int sweep = 0; sweep < 3000; ++sweep)
    for (size_t i = 0; i < n; ++i) {
      double rest = right[i];
      for (size_t k = 0; k < n; ++k)
        rest -= k == i ? 0 : square[i * n + k] * x[k];
      const double own = square[i * n + i];
      x[i] =
          own > 0 && std::isfinite(rest / own) ? std::max(rest / own, 0.0) : 0;
    }
  for (const std::vector<double> &share : shares) {
    double sum = 0;
    for (size_t k = 0; k < n; ++k)
      sum += share[k] * x[k];
    error += std::abs(sum - 1) / double(shares.size());
  }
  if (!std::isfinite(error))
    error = 1;
  double sum = 0;
  size_t functions = 0;
  for (size_t k = 0; k < n; ++k) {
    ns[names[k]] = x[k];
    if (names[k] == "exp" || names[k] == "log" || names[k] == "tanh") {
      sum += x[k];
      ++functions;
    }
  }
  if (functions > 0)
    meanFunctionNs = sum / double(functions);
}

void HostRates::fitMemory(const Rows &rows) {
  double least = INFINITY;
  for (const Measured::HostWork &row : rows)
    if (isCopy(row)) {
      const double bytes = row.counts.at("copy");
      if (bytes < least) {
        least = bytes;
        copyUs = row.us;
      }
    }
  for (const Measured::HostWork &row : rows) {
    if (isCopy(row)) {
      const double bytes = row.counts.at("copy");
      if (bytes > least)
        copied[row.bytes] = std::max(row.us - copyUs, 0.0) * 1e3 / bytes;
    } else if (isStream(row) && movedBytes(row.counts) > 0) {
      const double compute = computeUs(row.counts);
      stream[row.bytes] =
          std::sqrt(std::max(row.us * row.us - compute * compute, 0.0)) * 1e3 /
          movedBytes(row.counts);
    }
  }
  if (!stream.empty())
    stream[hostNearBytes / 2] = 0;
}

/// By straight lines over the logarithm of the footprint.
static double at(const std::map<double, double> &curve, double footprint) {
  if (curve.empty())
    return 0;
  auto above = curve.lower_bound(footprint);
  if (above == curve.end())
    return std::prev(above)->second;
  if (above == curve.begin())
    return above->second;
  const auto below = std::prev(above);
  const double t = std::log(footprint / below->first) /
                   std::log(above->first / below->first);
  return (1 - t) * below->second + t * above->second;
}

/// Nanoseconds of a thing counted. Without rows of its own it takes as long as
/// what is most like it: accesses that are apart as those of the nearest size
/// of buffers, other accesses as neighbours', work within blocks as an
/// operation, and a function as the mean of those that were measured. A launch
/// and a block are then free.
static double nsOf(const HostCounts &ns, const std::string &name,
                   double meanFunctionNs) {
  auto known = [&](const std::string &other) { return ns.contains(other); };
  if (known(name))
    return ns.at(name);
  if (name.ends_with(".f64"))
    return 2 * nsOf(ns, name.substr(0, name.size() - 4), meanFunctionNs);
  if (name == "launch" || name == "block")
    return 0;
  if (name.starts_with("strided.") || name.starts_with("gather.")) {
    const std::string kind = name.substr(0, name.size() - 1);
    for (int apart : {1, 2})
      for (int level : {name.back() - apart, name.back() + apart})
        if (known(kind + char(level)))
          return ns.at(kind + char(level));
  }
  const std::string family = name.substr(0, name.find('.'));
  auto isOneOf = [&](std::initializer_list<const char *> names) {
    return std::ranges::find(names, family) != names.end();
  };
  const char *like =
      isOneOf({"access", "common", "turned", "shared", "strided", "gather"})
          ? "access"
      : isOneOf({"operation", "scalar", "reduction", "exchange"}) ? "operation"
                                                                  : nullptr;
  if (like)
    return known(like) ? ns.at(like) : 0;
  return meanFunctionNs;
}

double HostRates::computeUs(const HostCounts &counts) const {
  double sum = 0;
  for (const auto &[name, count] : counts)
    sum += count * nsOf(ns, name, meanFunctionNs);
  return sum / 1e3;
}

/// The rates of products nearby, in the logarithms of their sizes.
double HostRates::productUs(const Product &product) const {
  const bool isWide = product.factors == ElementType::F64,
             isNarrow = product.isNarrow();
  const std::string_view type = isWide ? "f64" : isNarrow ? "bf16" : "f32";
  double weights = 0, sum = 0;
  for (bool likes : {true, false}) {
    for (const Measured::Matmul &row : products) {
      if (likes && (row.type != type || row.isTurned != product.isTurned))
        continue;
      double apart = 0.02;
      for (auto [mine, other] : {std::pair(product.m, row.m),
                                 {product.n, row.n},
                                 {product.k, row.k}})
        apart += std::pow(std::log2(mine / other), 2);
      const double weight = 1 / (apart * apart);
      weights += weight;
      sum += weight * std::log(row.us / (double(row.m) * row.n * row.k));
    }
    if (weights > 0)
      break;
  }
  return weights > 0 ? std::exp(sum / weights) * product.flops() / 2
                     : computeUs({{"operation", product.flops()}});
}

HostTime HostRates::kernel(const Dag &dag, const DagNode &node,
                           double footprint) const {
  double compute = computeUs(hostCounts(dag, node));
  const std::optional<Product> product = hostProduct(dag, node);
  if (product)
    compute += productUs(*product);
  const double memory = (double(node.bytesRead) + double(node.bytesWritten)) *
                        at(stream, footprint) / 1e3;
  return {std::max(std::hypot(compute, memory), 1e-3),
          product ? 0.35 : std::clamp(2 * error, 0.2, 0.4)};
}

HostTime HostRates::copy(double bytes, double footprint) const {
  if (copyUs > 0)
    return {copyUs + bytes * at(copied, footprint) / 1e3, 0.3};
  // No copy was measured: it is read and written as by a kernel.
  const double compute = computeUs({{"launch", 1}, {"access", bytes / 2}});
  return {std::max(std::hypot(compute, 2 * bytes * at(stream, footprint) / 1e3),
                   1e-3),
          0.4};
}

} // namespace mgpu::planner
