// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/conversion/mpmd/PipelineOrder.h"

#include <algorithm>

namespace mgpu::conversion {

std::span<const NamedSchedule> namedSchedules() {
  static constexpr NamedSchedule names[] = {
      {"gpipe", PipelineSchedule::GPipe},
      {"1f1b", PipelineSchedule::OneForwardOneBackward},
      {"eager-1f1b", PipelineSchedule::EagerOneForwardOneBackward},
      {"interleaved", PipelineSchedule::Interleaved},
      {"circular", PipelineSchedule::Circular},
      {"zb-h1", PipelineSchedule::ZeroBubbleH1},
      {"zb-h2", PipelineSchedule::ZeroBubbleH2},
      {"dualpipev", PipelineSchedule::DualPipeV}};
  return names;
}

bool splitsBackward(PipelineSchedule schedule) {
  return schedule == PipelineSchedule::ZeroBubbleH1 ||
         schedule == PipelineSchedule::ZeroBubbleH2 ||
         schedule == PipelineSchedule::DualPipeV;
}

std::optional<PipelineSchedule> parsePipelineSchedule(std::string_view name) {
  for (const auto &[known, schedule] : namedSchedules())
    if (name == known)
      return schedule;
  return std::nullopt;
}

std::string whyNoOrder(PipelineSchedule schedule, const PipelineSize &size) {
  if (schedule == PipelineSchedule::DualPipeV) {
    if (!size.isFolded)
      return "it takes two stages on each mesh, of which data goes through the "
             "first ones and then back through the second ones";
    if (size.microbatches < 2 * size.meshes)
      return "it takes at least " + std::to_string(2 * size.meshes) +
             " microbatches, twice the number of meshes, and there are " +
             std::to_string(size.microbatches);
    return {};
  }
  const bool isForStages = schedule == PipelineSchedule::Interleaved ||
                           schedule == PipelineSchedule::Circular;
  if (!isForStages && size.stages > 1)
    return "it is for one stage a mesh, and a mesh has " +
           std::to_string(size.stages) + "; interleaved and circular take more";
  if (schedule == PipelineSchedule::Interleaved &&
      size.microbatches % size.meshes != 0)
    return "it takes a multiple of " + std::to_string(size.meshes) +
           " microbatches, the number of meshes, and there are " +
           std::to_string(size.microbatches) + "; circular takes any number";
  return {};
}

/// How many forward works come before the first backward one, less one.
static int64_t warmUp(PipelineSchedule schedule, const PipelineSize &size,
                      int64_t mesh) {
  const int64_t after = size.meshes - 1 - mesh; // meshes behind this one
  switch (schedule) {
  case PipelineSchedule::OneForwardOneBackward:
  case PipelineSchedule::ZeroBubbleH1:
    return after;
  case PipelineSchedule::EagerOneForwardOneBackward:
  case PipelineSchedule::ZeroBubbleH2:
    return 2 * after;
  case PipelineSchedule::Interleaved:
    return 2 * after + (size.stages - 1) * size.meshes;
  case PipelineSchedule::GPipe:
  case PipelineSchedule::Circular:
  case PipelineSchedule::DualPipeV: // has an order of its own
    break;
  }
  return size.microbatches * size.stages;
}

/// The works of one direction: groups of as many microbatches as there are
/// meshes, and of each group stage by stage.
static std::vector<PipelineWork> worksOf(PipelineWork::Kind kind,
                                         const PipelineSize &size) {
  const bool isForward = kind == PipelineWork::Kind::Forward;
  std::vector<PipelineWork> works;
  for (int64_t first = 0; first < size.microbatches; first += size.meshes)
    for (int64_t k = 0; k < size.stages; ++k)
      for (int64_t i = first;
           i < std::min(first + size.meshes, size.microbatches); ++i)
        works.push_back({kind, i, isForward ? k : size.stages - 1 - k});
  return works;
}

namespace {

/// The steps of DualPipeV on one mesh.
class DualPipeVOrder {
public:
  DualPipeVOrder(const PipelineSize &size, int64_t mesh)
      : size(size), mesh(mesh) {}
  std::vector<OrderedWork> run();

private:
  using Kind = PipelineWork::Kind;
  void add(const PipelineWork &work) { order.push_back({work, half}); }
  void forward(int64_t stage) {
    add({Kind::Forward, nextForward[stage]++, stage});
  }
  /// `isWhole`: its weights' part follows at once.
  void backward(int64_t stage, bool isWhole = true) {
    const int64_t microbatch = nextBackward[stage]++;
    add({Kind::Backward, microbatch, stage});
    const PipelineWork rest{Kind::Weights, microbatch, stage};
    if (isWhole)
      add(rest);
    else
      waiting.push_back(rest);
  }
  /// Adds both as one.
  void both(int64_t forwardStage, int64_t backwardStage) {
    half = PipelineHalf::First;
    forward(forwardStage);
    half = PipelineHalf::Second;
    backward(backwardStage);
    half = PipelineHalf::None;
  }
  void weights() {
    add(waiting.front());
    waiting.erase(waiting.begin());
  }
  void runLastBackward();

  const PipelineSize &size;
  const int64_t mesh;
  int64_t nextForward[2] = {0, 0}, nextBackward[2] = {0, 0};
  std::vector<PipelineWork> waiting;      ///< weights' parts
  PipelineHalf half = PipelineHalf::None; ///< of what is added
  std::vector<OrderedWork> order;
};

std::vector<OrderedWork> DualPipeVOrder::run() {
  const int64_t after = size.meshes - 1 - mesh; // meshes behind this one
  for (int64_t k = 0; k < 2 * after; ++k)
    forward(0);
  for (int64_t k = 0; k < mesh + 1; ++k) {
    forward(0);
    forward(1);
  }
  for (int64_t k = 0; k < after; ++k) {
    backward(1, false);
    weights();
    forward(1);
  }
  for (int64_t k = 0; k < size.microbatches - 2 * size.meshes + mesh + 1; ++k) {
    both(0, 1);
    both(1, 0);
  }
  for (int64_t k = 0; k < after; ++k) {
    backward(1);
    both(1, 0);
  }
  runLastBackward();
  for (int64_t k = 0; k < after; ++k) {
    weights();
    backward(0, false);
  }
  while (!waiting.empty())
    weights();
  return std::move(order);
}

/// In the second half the weights' parts wait.
void DualPipeVOrder::runLastBackward() {
  const int64_t half = (mesh + 1) / 2;
  for (int64_t k = 0; k < mesh + 1; ++k) {
    const bool isEven = mesh % 2 == 0;
    backward(1, isEven ? k <= half : k < half);
    backward(0, k < half);
  }
}

} // namespace

std::vector<OrderedWork> pipelineOrder(PipelineSchedule schedule,
                                       const PipelineSize &size, int64_t mesh) {
  using Kind = PipelineWork::Kind;
  if (schedule == PipelineSchedule::DualPipeV)
    return DualPipeVOrder(size, mesh).run();
  const std::vector<PipelineWork> forward = worksOf(Kind::Forward, size),
                                  backward = worksOf(Kind::Backward, size),
                                  weights = worksOf(Kind::Weights, size);
  // How many backward works come before the weights' part of the first, less
  // one. Without a split no weights' part is there.
  int64_t lag = schedule == PipelineSchedule::ZeroBubbleH2 ? 2 * mesh : mesh;
  std::vector<OrderedWork> order;
  auto next = forward.begin(), weight = weights.begin();
  for (int64_t k = warmUp(schedule, size, mesh); k > 0 && next < forward.end();
       --k)
    order.push_back({*next++});
  for (const PipelineWork &work : backward) {
    if (next < forward.end())
      order.push_back({*next++});
    order.push_back({work});
    if (--lag < 0)
      order.push_back({*weight++});
  }
  while (weight < weights.end())
    order.push_back({*weight++});
  return order;
}

} // namespace mgpu::conversion
