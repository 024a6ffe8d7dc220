// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/conversion/mpmd/PipelineWorks.h"

#include "llvm/ADT/MapVector.h"

#include <algorithm>
#include <set>

namespace mgpu::conversion {

using namespace mlir;

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

namespace {

/// A fragment that works on a microbatch.
struct Unit {
  mpmd::FragmentOp op;
  PipelineWork::Kind kind = PipelineWork::Kind::Forward;
  int64_t microbatch = 0; ///< its call counter
  int64_t level = 0;      ///< how often its data changed the mesh before it
};

/// Where a microbatch has come to.
struct Reached {
  StringRef mesh;
  int64_t level = 0;
};
/// By kind of work and call counter.
using ReachedBy = std::map<std::pair<PipelineWork::Kind, int64_t>, Reached>;

/// A fragment without a counter is one of microbatch 0 if `isOneMicrobatch`.
std::optional<Unit> unitOf(mpmd::FragmentOp op, bool isOneMicrobatch) {
  auto counter = op->getAttrOfType<IntegerAttr>(mpmd::callCounterName);
  auto origins = op.getOrigin().getAsRange<mpmd::UserOriginAttr>();
  if ((!counter && !isOneMicrobatch) || origins.empty() ||
      op->hasAttr(rematName))
    return std::nullopt;
  const int64_t transposes = (*origins.begin()).getTransposeCount();
  for (mpmd::UserOriginAttr origin : origins)
    if (origin.getTransposeCount() != transposes)
      return std::nullopt;
  if (transposes > 1)
    return std::nullopt;
  using Kind = PipelineWork::Kind;
  const Kind kind = op->hasAttr(dropTransferredName) ? Kind::Weights
                    : transposes == 1                ? Kind::Backward
                                                     : Kind::Forward;
  return Unit{op, kind,
              counter ? int64_t(counter.getValue().getZExtValue()) : 0, 0};
}

/// The direction in which data goes. Both parts of backward work take what
/// comes to it.
PipelineWork::Kind wayOf(PipelineWork::Kind kind) {
  return kind == PipelineWork::Kind::Weights ? PipelineWork::Kind::Backward
                                             : kind;
}

/// Whether it has neither microbatches nor backward work, so that all of it
/// goes forward once.
bool goesForwardOnce(Block &body) {
  return llvm::none_of(body.getOps<mpmd::FragmentOp>(), [](auto op) {
    return op->hasAttr(mpmd::callCounterName) ||
           llvm::any_of(
               op.getOrigin().template getAsRange<mpmd::UserOriginAttr>(),
               [](auto origin) { return origin.getTransposeCount() > 0; });
  });
}

/// All units, with their levels.
std::vector<Unit> findUnits(Block &body, bool isOneMicrobatch) {
  std::vector<Unit> units;
  llvm::DenseMap<Operation *, ReachedBy> reached;
  for (Operation &op : body) {
    ReachedBy before;
    for (Value operand : op.getOperands())
      if (Operation *source = operand.getDefiningOp())
        for (const auto &[key, at] : reached[source])
          if (auto [mine, isNew] = before.try_emplace(key, at);
              !isNew && mine->second.level < at.level)
            mine->second = at;
    auto fragment = dyn_cast<mpmd::FragmentOp>(op);
    std::optional<Unit> unit =
        fragment ? unitOf(fragment, isOneMicrobatch) : std::nullopt;
    if (!unit) {
      reached[&op] = std::move(before);
      continue;
    }
    const std::pair key(wayOf(unit->kind), unit->microbatch);
    if (auto at = before.find(key); at != before.end())
      unit->level =
          at->second.level + (at->second.mesh != fragment.getMeshName());
    reached[&op][key] = {fragment.getMeshName(), unit->level};
    units.push_back(*unit);
  }
  return units;
}

/// By mesh and direction: the levels at which it works.
using Levels = llvm::MapVector<StringRef, std::array<std::set<int64_t>, 2>>;

/// Where data goes through the meshes and back, so that two stages follow each
/// other on the last one: the name of the first of these. Else empty.
StringRef nameBeforeFold(const Pipeline &pipeline, const Levels &levels,
                         ArrayRef<Unit> units) {
  const int64_t count = pipeline.size.meshes;
  if (count < 2)
    return {};
  for (auto [s, mesh] : llvm::enumerate(pipeline.meshes)) {
    const int64_t first = int64_t(s), last = 2 * (count - 1) - first;
    if (levels.find(mesh.name)->second[0] != std::set<int64_t>{first, last})
      return {};
  }
  StringRef before;
  for (const Unit &unit : units) {
    mpmd::FragmentOp op = unit.op;
    if (op.getMeshName() != pipeline.meshes.back().name ||
        unit.kind != PipelineWork::Kind::Forward)
      continue;
    if (before.empty())
      before = originOf(op);
    else if (originOf(op) != before)
      return before;
  }
  return {};
}

/// The position of `value` in the ordered set.
int64_t positionIn(const std::set<int64_t> &values, int64_t value) {
  return std::distance(values.begin(), values.find(value));
}

} // namespace

StringRef originOf(mpmd::FragmentOp op) {
  return cast<mpmd::UserOriginAttr>(op.getOrigin()[0]).getUserName();
}

bool isWaitedFor(OpResult value) {
  auto maker = cast<mpmd::FragmentOp>(value.getOwner());
  return llvm::any_of(value.getUsers(), [&](Operation *user) {
    auto fragment = dyn_cast<mpmd::FragmentOp>(user);
    return isa<mpmd::TransferOp>(user) ||
           (fragment && fragment->hasAttr(mpmd::callCounterName) &&
            fragment->getAttr(mpmd::callCounterName) ==
                maker->getAttr(mpmd::callCounterName) &&
            !fragment.getOrigin().empty() &&
            originOf(fragment) != originOf(maker));
  });
}

bool canBeSplit(mpmd::FragmentOp op) {
  return llvm::any_of(op->getResults(), isWaitedFor) &&
         !llvm::all_of(op->getResults(), isWaitedFor);
}

Pipeline findPipeline(func::FuncOp function, bool takesWhole) {
  Block &body = function.front();
  const std::vector<Unit> units =
      findUnits(body, takesWhole && goesForwardOnce(body));
  std::set<int64_t> counters;
  Levels levels;
  for (const Unit &unit : units) {
    counters.insert(unit.microbatch);
    mpmd::FragmentOp op = unit.op;
    levels[op.getMeshName()][size_t(wayOf(unit.kind))].insert(unit.level);
  }
  Pipeline pipeline;
  pipeline.size.microbatches = int64_t(counters.size());
  // Meshes by their first level, then as the program comes to them.
  std::vector<std::pair<int64_t, size_t>> firsts;
  for (auto [k, each] : llvm::enumerate(levels))
    if (!each.second[0].empty()) // else it is no part of the way forward
      firsts.push_back({*each.second[0].begin(), k});
  llvm::sort(firsts);
  for (auto [level, k] : firsts)
    pipeline.meshes.push_back({(levels.begin() + k)->first, {}});
  pipeline.size.meshes = int64_t(pipeline.meshes.size());
  for (Pipeline::Mesh &mesh : pipeline.meshes)
    pipeline.size.stages =
        std::max({pipeline.size.stages, int64_t(levels[mesh.name][0].size()),
                  int64_t(levels[mesh.name][1].size())});
  const StringRef beforeFold = nameBeforeFold(pipeline, levels, units);
  pipeline.size.isFolded = !beforeFold.empty();
  for (const Unit &unit : units) {
    mpmd::FragmentOp op = unit.op;
    auto mesh = llvm::find_if(pipeline.meshes, [&](const auto &each) {
      return each.name == op.getMeshName();
    });
    if (mesh == pipeline.meshes.end())
      continue;
    const std::set<int64_t> &mine =
        levels[mesh->name][size_t(wayOf(unit.kind))];
    int64_t stage = positionIn(mine, unit.level);
    if (unit.kind !=
        PipelineWork::Kind::Forward) // they come back to the last stage first
      stage = int64_t(mine.size()) - 1 - stage;
    if (pipeline.size.isFolded && &*mesh == &pipeline.meshes.back())
      stage = originOf(op) == beforeFold ? 0 : 1;
    mesh->works[{unit.kind, positionIn(counters, unit.microbatch), stage}]
        .push_back(op);
  }
  return pipeline;
}

} // namespace mgpu::conversion
