// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/conversion/mpmd/PipelineWorks.h"

#include "llvm/ADT/MapVector.h"

#include <set>

namespace mgpu::conversion {

using namespace mlir;

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
