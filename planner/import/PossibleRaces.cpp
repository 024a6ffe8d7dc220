// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/import/PossibleRaces.h"

#include "planner/import/KernelParts.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include <fmt/format.h>
#include <unordered_map>

namespace mgpu::planner {

using namespace mlir;

namespace {

// To work out all threads of a large launch would take its time.
constexpr int64_t mostThreads = 2048;
constexpr size_t mostAccesses = 64;

using ThreadIds = std::array<int64_t, 6>; ///< of the thread, of its block

/// The integers that the threads of a launch compute from their ids.
class ThreadValues {
public:
  explicit ThreadValues(AffineEvaluator &affine) : affine(affine) {
    for (uint32_t k = 0; k < 6; ++k)
      count = std::min(count * affine.sizeOf(k), mostThreads);
  }

  int64_t numThreads() const { return count; }
  ThreadIds idsOf(int64_t thread) const {
    ThreadIds ids;
    for (uint32_t k = 0; k < 6; ++k) {
      ids[k] = thread % affine.sizeOf(k);
      thread /= affine.sizeOf(k);
    }
    return ids;
  }

  std::string nameOf(int64_t thread) const {
    const ThreadIds ids = idsOf(thread);
    auto each = [&](uint32_t base) {
      return affine.sizeOf(base + 1) > 1 || affine.sizeOf(base + 2) > 1
                 ? fmt::format("({}, {}, {})", ids[base], ids[base + 1],
                               ids[base + 2])
                 : fmt::format("{}", ids[base]);
    };
    return fmt::format("thread {} of block {}", each(0), each(3));
  }

  /// Null where more than ids says what it is.
  IntegerAttr at(Value value, const ThreadIds &ids) {
    Type type = value.getType();
    if (!type.isIntOrIndex())
      return {};
    if (auto form = affine.evaluate(value); form && affine.isOfIds(*form)) {
      const unsigned width = type.isIndex() ? 64 : type.getIntOrFloatBitWidth();
      return IntegerAttr::get(
          type, APInt(width, uint64_t(affine.valueAt(*form, ids)), true, true));
    }
    Operation *op = value.getDefiningOp();
    if (!op || op->getNumRegions() > 0 || op->getNumResults() != 1 ||
        !isPure(op))
      return {};
    SmallVector<Attribute> operands;
    for (Value operand : op->getOperands()) {
      operands.push_back(at(operand, ids));
      if (!operands.back())
        return {};
    }
    SmallVector<OpFoldResult> results;
    if (failed(op->fold(operands, results)) || results.size() != 1)
      return {};
    auto number = dyn_cast<Attribute>(results[0]);
    return number ? dyn_cast<IntegerAttr>(number)
                  : at(cast<Value>(results[0]), ids);
  }

private:
  AffineEvaluator &affine;
  int64_t count = 1;
};

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

/// The element that a thread comes to, or -1; none where that is not known.
std::optional<int64_t> elementOf(const PossibleAccess &access, Region &body,
                                 const ThreadIds &ids, ThreadValues &values,
                                 AffineEvaluator &affine) {
  for (Operation *op = access.from.op; op->getParentRegion() != &body;
       op = op->getParentOp())
    if (auto branch = dyn_cast<scf::IfOp>(op->getParentOp()))
      if (IntegerAttr holds = values.at(branch.getCondition(), ids);
          holds && holds.getValue().isZero() ==
                       (op->getParentRegion() == &branch.getThenRegion()))
        return -1;
  if (!affine.isOfIds(access.view.offset))
    return std::nullopt;
  int64_t element = affine.valueAt(access.view.offset, ids);
  for (auto [index, stride] :
       llvm::zip(access.from.indices, access.view.strides)) {
    IntegerAttr at = values.at(index, ids);
    if (!at)
      return std::nullopt;
    element += at.getInt() * stride;
  }
  return element;
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
      : values(affine), meet(meet) {
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
      workOut(access, body, affine);
  }

  std::vector<LaunchRace> find() {
    for (size_t a = 0; a < accesses.size(); ++a)
      for (size_t b = 0; b <= a; ++b)
        if (mayMeet(accesses[b], accesses[a]))
          judge(accesses[b], accesses[a]);
    return std::move(races);
  }

private:
  void workOut(PossibleAccess &access, Region &body, AffineEvaluator &affine) {
    for (int64_t thread = 0; thread < values.numThreads(); ++thread) {
      auto element =
          elementOf(access, body, values.idsOf(thread), values, affine);
      if (!element)
        return access.elements.clear();
      access.elements.push_back(*element);
    }
  }

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
          return add(a, b, textOf(a, b, other, int64_t(thread), element));
  }

  std::string textOf(const PossibleAccess &a, const PossibleAccess &b,
                     int64_t first, int64_t second, int64_t element) const {
    auto verb = [](const PossibleAccess &access) {
      return access.from.isAtomic ? "updates"
             : access.writes()    ? "writes"
                                  : "reads";
    };
    return fmt::format("{} {} element {}, which {} {}", values.nameOf(second),
                       verb(b), element, values.nameOf(first), verb(a));
  }

  void add(const PossibleAccess &a, const PossibleAccess &b, std::string text) {
    races.push_back(
        {a.from.op, b.from.op, b.view.root, std::move(text), false});
  }

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
