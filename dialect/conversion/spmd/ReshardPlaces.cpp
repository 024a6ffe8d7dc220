// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Lists the steps that a layout on the way allows, and what is sliced there.
#include "dialect/conversion/spmd/Reshard.h"

namespace mgpu::conversion {

using namespace mlir;

// From one layout to the next ones, and the way to the last.

// The shortest way through the layouts between two, by what steps cost
// (Dijkstra 1959).

namespace {

/// A layout on the way.
struct ReshardPlace {
  llvm::SmallVector<Cut> cuts;
  unsigned reduced = 0;  ///< how many reductions are done
  bool isUndone = false; ///< something was gathered, so nothing is copied now
  double cost = 0;
  unsigned exchanges = 0;
  int before = -1;         ///< the place before
  ReshardSteps steps = {}; ///< from there to here
  bool isFinal = false;    ///< no way here costs less

  bool isSame(const ReshardPlace &other) const {
    return reduced == other.reduced && isUndone == other.isUndone &&
           cuts == other.cuts;
  }
  bool isBefore(const ReshardPlace &other) const {
    return std::tie(cost, exchanges) < std::tie(other.cost, other.exchanges);
  }
};

/// Finds the steps of one request. A place says what may be done in it; the
/// search goes from place to place.
class ReshardSearch {
public:
  ReshardSearch(const ReshardRequest &request, const Reshards &reshards)
      : request(request), reshards(reshards), target(cutsOf(request.to)),
        full(request.full.getShape()) {}
  ReshardSteps run();

private:
  bool isEven(unsigned dim) const;
  bool wants(const ReshardPlace &at, unsigned dim,
             llvm::ArrayRef<int64_t> axes) const;
  bool isTaken(const ReshardPlace &at, int64_t axis) const;
  int64_t bytesAt(const ReshardPlace &at) const;
  void planReductions(ReshardPlace start);
  bool sliceOne(ReshardPlace &at) const;
  void slice(ReshardPlace &at) const;
  void leave(int from);
  void reduceAt(int from);
  void undoAt(int from);
  void undo(int from, unsigned dim, llvm::ArrayRef<int64_t> axes);
  void go(int from, ReshardStep step, ReshardPlace to);
  ReshardSteps stepsTo(int place) const;

  const ReshardRequest &request;
  const Reshards &reshards;
  llvm::SmallVector<Cut> target;
  llvm::ArrayRef<int64_t> full;
  llvm::SmallVector<Axes> reductions; ///< in the order in which they are done
  std::vector<ReshardPlace> places;
};

} // namespace

/// Takes `step` to a place, where no other way there costs less.
void ReshardSearch::go(int from, ReshardStep step, ReshardPlace to) {
  to.cost = places[from].cost + reshards.costOf(request, step);
  to.exchanges = places[from].exchanges + 1;
  to.before = from;
  to.isFinal = false;
  to.steps = {std::move(step)};
  slice(to);
  for (ReshardPlace &known : places)
    if (known.isSame(to)) {
      if (to.isBefore(known))
        known = std::move(to);
      return;
    }
  places.push_back(std::move(to));
}

void ReshardSearch::reduceAt(int from) {
  const ReshardPlace at = places[from];
  const Axes axes = reductions[at.reduced];
  ReshardStep step{ReshardStep::AllReduce, 0, 0, axes};
  step.bytes = bytesAt(at);
  ReshardPlace reduced = at;
  ++reduced.reduced;
  for (unsigned dim = 0; dim < full.size(); ++dim) {
    if (!isEven(dim) || !wants(at, dim, axes))
      continue;
    ReshardStep scatter = step;
    scatter.kind = ReshardStep::ReduceScatter;
    scatter.dim = dim;
    ReshardPlace cut = reduced;
    llvm::append_range(cut.cuts[dim].axes, axes);
    go(from, std::move(scatter), std::move(cut));
  }
  go(from, std::move(step), std::move(reduced));
}

/// Takes the innermost `axes` from `dim`: to a dimension that wants them next,
/// or by gathering.
void ReshardSearch::undo(int from, unsigned dim, ArrayRef<int64_t> axes) {
  const ReshardPlace at = places[from];
  ReshardPlace to = at;
  to.isUndone = true;
  to.cuts[dim].axes.truncate(at.cuts[dim].axes.size() - axes.size());
  for (unsigned other = 0; other < full.size(); ++other) {
    if (other == dim || !isEven(other) || !wants(at, other, axes))
      continue;
    ReshardStep step{ReshardStep::AllToAll, other, dim, Axes(axes)};
    step.bytes = bytesAt(at);
    ReshardPlace moved = to;
    llvm::append_range(moved.cuts[other].axes, axes);
    go(from, std::move(step), std::move(moved));
  }
  ReshardStep step{ReshardStep::AllGather, dim, 0, Axes(axes)};
  step.bytes = bytesAt(to);
  go(from, std::move(step), std::move(to));
}

void ReshardSearch::undoAt(int from) {
  for (unsigned dim = 0; dim < full.size(); ++dim) {
    if (!isEven(dim))
      continue;
    const Axes have = places[from].cuts[dim].axes, &want = target[dim].axes;
    const size_t stays =
        std::mismatch(have.begin(), have.end(), want.begin(), want.end())
            .first -
        have.begin();
    for (size_t kept = stays; kept < have.size(); ++kept)
      undo(from, dim, ArrayRef(have).drop_front(kept));
  }
}

void ReshardSearch::leave(int from) {
  if (places[from].reduced < reductions.size())
    return reduceAt(from);
  undoAt(from);
  const ReshardPlace at = places[from];
  if (at.isUndone)
    return;
  ReshardStep step{ReshardStep::Move, 0, 0, {}};
  step.from =
      layoutOfCuts(request.to.getContext(), request.to.getMesh(), at.cuts);
  ReshardPlace to = at;
  to.cuts = target;
  to.isUndone = true;
  go(from, std::move(step), std::move(to));
}

ReshardSteps ReshardSearch::stepsTo(int place) const {
  ReshardSteps steps;
  for (; place >= 0; place = places[place].before)
    steps.insert(steps.begin(), places[place].steps.begin(),
                 places[place].steps.end());
  return steps;
}

ReshardSteps ReshardSearch::run() {
  ReshardPlace start{cutsOf(request.from)};
  planReductions(start);
  slice(start);
  places.push_back(std::move(start));
  while (true) {
    int nearest = -1;
    for (int k = 0; k < int(places.size()); ++k)
      if (!places[k].isFinal &&
          (nearest < 0 || places[k].isBefore(places[nearest])))
        nearest = k;
    assert(nearest >= 0 && "a move leads to every layout");
    places[nearest].isFinal = true;
    if (places[nearest].cuts == target &&
        places[nearest].reduced == reductions.size())
      return stepsTo(nearest);
    leave(nearest);
  }
}

const ReshardSteps &Reshards::find(const ReshardRequest &request) {
  auto [at, isNew] = known.try_emplace(
      {request.full.getAsOpaquePointer(), request.from.getAsOpaquePointer(),
       request.to.getAsOpaquePointer(),
       std::vector<int64_t>(request.partial.begin(), request.partial.end())});
  if (isNew)
    at->second = ReshardSearch(request, *this).run();
  return at->second;
}

/// Whether the parts of `dim` have the same size, before and after.
bool ReshardSearch::isEven(unsigned dim) const {
  bool keepsBounds = request.from.getOffsets().empty() ||
                     request.from.getOffsets()[dim].empty();
  return keepsBounds && target[dim].bounds.empty() && !target[dim].hasHalo() &&
         full[dim] % request.to.parts(dim) == 0 &&
         full[dim] % request.from.parts(dim) == 0;
}

/// Whether `dim` is to be cut along `axes` next, with nothing undone before.
bool ReshardSearch::wants(const ReshardPlace &at, unsigned dim,
                          ArrayRef<int64_t> axes) const {
  ArrayRef<int64_t> have = at.cuts[dim].axes, want = target[dim].axes;
  return want.size() >= have.size() + axes.size() &&
         want.take_front(have.size()) == have &&
         want.slice(have.size(), axes.size()) == axes;
}

/// Whether an axis cuts something, or has partial results along it.
bool ReshardSearch::isTaken(const ReshardPlace &at, int64_t axis) const {
  auto has = [&](const Axes &axes) { return llvm::is_contained(axes, axis); };
  return llvm::any_of(at.cuts, [&](const Cut &cut) { return has(cut.axes); }) ||
         llvm::any_of(ArrayRef(reductions).drop_front(at.reduced), has);
}

/// The bytes of the largest part.
int64_t ReshardSearch::bytesAt(const ReshardPlace &at) const {
  SmallVector<int64_t> sizes;
  for (auto [cut, size] : llvm::zip(at.cuts, full)) {
    int64_t parts = countAlong(request.to.getMesh(), cut.axes);
    int64_t most = llvm::divideCeil(size, parts);
    for (size_t k = 1; k < cut.bounds.size(); ++k)
      most = std::max(k == 1 ? 0 : most, cut.bounds[k] - cut.bounds[k - 1]);
    sizes.push_back(std::min(most + cut.low + cut.high, size));
  }
  return bytesOf(request.full, sizes);
}

/// One after the other those axes that some dimension is to be cut along, then
/// the others together.
void ReshardSearch::planReductions(ReshardPlace start) {
  Axes rest = request.partial;
  bool mustMove = llvm::any_of(
      llvm::seq<unsigned>(0, unsigned(full.size())), [&](unsigned dim) {
        return start.cuts[dim] != target[dim] && !isEven(dim) &&
               !start.cuts[dim].axes.empty();
      });
  for (unsigned dim = 0; !mustMove && dim < full.size(); ++dim)
    for (auto *axis = rest.begin(); axis != rest.end();) {
      if (!isEven(dim) || !wants(start, dim, *axis)) {
        ++axis;
        continue;
      }
      reductions.push_back({*axis});
      start.cuts[dim].axes.push_back(*axis);
      rest.erase(axis);
      axis = rest.begin();
    }
  if (!rest.empty())
    reductions.push_back(rest);
}

/// Cuts one dimension further of what each device has whole.
bool ReshardSearch::sliceOne(ReshardPlace &at) const {
  for (unsigned dim = 0; dim < full.size(); ++dim) {
    Cut &cut = at.cuts[dim];
    if (cut.axes.size() >= target[dim].axes.size() || !wants(at, dim, {}))
      continue;
    Axes next(ArrayRef(target[dim].axes).drop_front(cut.axes.size()));
    if (isEven(dim)) {
      auto *taken =
          llvm::find_if(next, [&](int64_t axis) { return isTaken(at, axis); });
      next.erase(taken, next.end());
      if (next.empty())
        continue;
      llvm::append_range(cut.axes, next);
      at.steps.push_back({ReshardStep::Slice, dim, 0, next});
      return true;
    }
    // Parts of different sizes are not cut again, so that is done at once.
    if (!cut.axes.empty() ||
        llvm::any_of(next, [&](int64_t axis) { return isTaken(at, axis); }))
      continue;
    at.steps.push_back({ReshardStep::Slice, dim, 0, next});
    if (!target[dim].bounds.empty() || target[dim].hasHalo())
      at.steps.back().ranges = request.to.rangesOf(dim, full[dim]);
    cut = target[dim];
    return true;
  }
  return false;
}

void ReshardSearch::slice(ReshardPlace &at) const {
  while (sliceOne(at))
    ;
}

} // namespace mgpu::conversion
