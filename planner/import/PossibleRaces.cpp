// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/import/PossibleRaces.h"

#include "facts/ThreadValues.h"
#include "planner/import/AccessSet.h"
#include "planner/import/KernelParts.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include <fmt/format.h>
#include <unordered_map>

namespace mgpu::planner {

using namespace mlir;
using facts::areEqualConstants, facts::blockIds, facts::idsOf;
using facts::ThreadIds, facts::ThreadValues;

namespace {

// To work out all threads of a large launch would take its time.
constexpr int64_t mostThreads = 2048;
constexpr size_t mostAccesses = 64;

struct PossibleAccess {
  MemoryAccess from;
  KernelView view;
  std::optional<AccessSet> set; ///< a superset of its elements, where known
  std::optional<unsigned> part; ///< see Parts
  /// The element that each thread comes to, -1 where it comes to none. Empty
  /// where that is not known.
  std::vector<int64_t> elements;

  bool writes() const { return from.stored || from.isAtomic; }
  bool isAffine() const { return set && set->isSure; }
};

/// The element that each thread comes to, or -1; none where that is not known.
std::vector<int64_t> elementsOf(const PossibleAccess &access, Region &body,
                                ThreadValues &values, AffineEvaluator &affine) {
  if (!affine.isOfIds(access.view.offset))
    return {};
  std::vector<int64_t> elements;
  for (int64_t thread = 0; thread < values.numThreads(); ++thread)
    elements.push_back(
        affine.valueAt(access.view.offset, values.idsOf(thread)));
  // The value in a thread that does not come here need not be known.
  std::vector<bool> comes(elements.size(), true);
  for (Operation *op = access.from.op; op->getParentRegion() != &body;
       op = op->getParentOp())
    if (auto branch = dyn_cast<scf::IfOp>(op->getParentOp()))
      for (auto [thread, holds] :
           llvm::enumerate(values.of(branch.getCondition())))
        if (auto number = dyn_cast_or_null<IntegerAttr>(holds);
            number && number.getValue().isZero() ==
                          (op->getParentRegion() == &branch.getThenRegion()))
          comes[thread] = false;
  for (auto [index, stride] :
       llvm::zip(access.from.indices, access.view.strides)) {
    const std::vector<Attribute> &all = values.of(index);
    for (size_t thread = 0; thread < elements.size(); ++thread) {
      auto at = all.empty() ? IntegerAttr()
                            : dyn_cast_or_null<IntegerAttr>(all[thread]);
      if (at)
        elements[thread] += at.getInt() * stride;
      else if (comes[thread])
        return {};
    }
  }
  for (size_t thread = 0; thread < elements.size(); ++thread)
    if (!comes[thread])
      elements[thread] = -1;
  return elements;
}

/// Whether the text shows that each thread computes one value as both.
bool isSameValue(Value a, Value b) {
  if (a == b)
    return true;
  Operation *one = a.getDefiningOp(), *other = b.getDefiningOp();
  return one && other && one->getNumRegions() == 0 &&
         one->getNumResults() == 1 && one->getName() == other->getName() &&
         one->getAttrDictionary() == other->getAttrDictionary() &&
         llvm::equal(one->getOperands(), other->getOperands(), isSameValue);
}

class PossibleRaces {
public:
  using MayMeet =
      llvm::function_ref<bool(const AccessSet &, const AccessSet &, Ids)>;

  PossibleRaces(Region &body, KernelViews &views, AffineEvaluator &affine,
                MayMeet meet)
      : affine(affine), values(affine, mostThreads), meet(meet) {
    const Parts parts(body);
    body.walk([&](Operation *op) {
      auto access = memoryAccessOf(op);
      const KernelView *view = access ? views.of(access->memref) : nullptr;
      if (!view || !access->lanes.empty() ||
          access->indices.size() != view->strides.size())
        return;
      const KernelView known = *view; // others may be found meanwhile
      auto set = accessSetOf(*access, known, body, affine);
      if (!set && llvm::all_of(access->indices, [&](Value index) {
            return affine.evaluate(index).has_value();
          }))
        return; // no thread comes there
      if (!set)
        set = accessSetOf(*access, known, body, affine, /*bounded=*/true);
      accesses.push_back({*access, known, std::move(set), parts.of(op), {}});
    });
    if (llvm::all_of(accesses,
                     [](const auto &each) { return each.isAffine(); }))
      accesses.clear();
    if (accesses.size() > mostAccesses)
      accesses.resize(mostAccesses);
    for (PossibleAccess &access : accesses)
      access.elements = elementsOf(access, body, values, affine);
  }

  std::vector<LaunchRace> find() {
    for (size_t a = 0; a < accesses.size(); ++a)
      for (size_t b = 0; b <= a; ++b)
        if (mayMeet(accesses[b], accesses[a]))
          judge(accesses[b], accesses[a]);
    return std::move(races);
  }

private:
  static bool mayMeet(const PossibleAccess &a, const PossibleAccess &b) {
    if ((a.isAffine() && b.isAffine()) || (!a.writes() && !b.writes()) ||
        (a.from.isAtomic && b.from.isAtomic) || a.view.buffer != b.view.buffer)
      return false;
    return !a.from.stored || !b.from.stored ||
           !areEqualConstants(a.from.stored, b.from.stored);
  }

  /// Whether nothing orders the two accesses of two threads.
  bool areUnordered(const PossibleAccess &a, const PossibleAccess &b,
                    const ThreadIds &one, const ThreadIds &other) const {
    Ids differing;
    for (size_t k = 0; k < one.size(); ++k)
      differing.set(k, one[k] != other[k]);
    if (a.from.stored && a.from.stored == b.from.stored &&
        (idsOf(a.from.stored) & differing).none())
      return false; // one value
    return (differing & blockIds()).any() ||
           (differing.any() && a.part && a.part == b.part);
  }

  void judge(const PossibleAccess &a, const PossibleAccess &b) {
    if (a.elements.empty() || b.elements.empty()) {
      const bool isOne =
          a.from.memref == b.from.memref &&
          llvm::equal(a.from.indices, b.from.indices, isSameValue);
      const Ids apart = a.part && a.part == b.part ? Ids().set() : blockIds();
      if (!isOne &&
          areUnordered(a, b, values.idsOf(0),
                       values.idsOf(values.numThreads() - 1)) &&
          (!a.set || !b.set || meet(*a.set, *b.set, apart)))
        add(a, b,
            "two threads may come to one element, which one of them "
            "writes");
      return;
    }
    // More threads of an element than these would say no more.
    constexpr size_t mostKept = 4;
    std::unordered_map<int64_t, std::vector<int64_t>> threads;
    for (auto [thread, element] : llvm::enumerate(a.elements))
      if (auto &there = threads[element];
          element >= 0 && there.size() < mostKept)
        there.push_back(int64_t(thread));
    for (auto [thread, element] : llvm::enumerate(b.elements))
      for (int64_t other : threads[element])
        if (areUnordered(a, b, values.idsOf(other),
                         values.idsOf(int64_t(thread))))
          return add(a, b,
                     raceText(a.from, b.from, values.idsOf(other),
                              values.idsOf(int64_t(thread)), element, affine));
  }

  void add(const PossibleAccess &a, const PossibleAccess &b, std::string text) {
    races.push_back(
        {a.from.op, b.from.op, b.view.root, std::move(text), false});
  }

  AffineEvaluator &affine;
  ThreadValues values;
  MayMeet meet;
  std::vector<PossibleAccess> accesses;
  std::vector<LaunchRace> races;
};

} // namespace

std::vector<LaunchRace> findPossibleRaces(
    Region &body, KernelViews &views, AffineEvaluator &affine,
    llvm::function_ref<bool(const AccessSet &, const AccessSet &, Ids)>
        mayMeet) {
  return PossibleRaces(body, views, affine, mayMeet).find();
}

} // namespace mgpu::planner
