// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// From one layout to the next ones, and the way to the last.
#include "dialect/conversion/spmd/ReshardSearch.h"

namespace mgpu::conversion {

using namespace mlir;

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

} // namespace mgpu::conversion
