// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/cost/HostWork.h"

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

} // namespace mgpu::planner
