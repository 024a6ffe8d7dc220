// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/import/LaunchRaces.h"

#include "dialect/mgpu/HostCode.h"
#include "dialect/mgpu/Instructions.h"
#include "planner/import/AccessSet.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/CallInterfaces.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/STLExtras.h"

#include <fmt/format.h>
#include <unordered_map>
#include <utility>

namespace mgpu::planner {

using namespace mlir;

namespace {

/// The number of operations before `op` at which threads of a block wait for
/// each other or exchange values; none where one of these is in a loop or
/// branch.
class Parts {
public:
  explicit Parts(mlir::Region &body) : body(body) {
    body.walk([&](mlir::Operation *op) {
      if (!facts::isExchangeWithinBlocks(op))
        return;
      isKnown &= op->getParentRegion() == &body && body.hasOneBlock();
      if (isKnown)
        ends.push_back(op);
    });
  }

  std::optional<unsigned> of(mlir::Operation *op) const {
    if (ends.empty() && isKnown)
      return 0;
    mlir::Operation *top = body.findAncestorOpInRegion(*op);
    if (!isKnown || !top)
      return std::nullopt;
    return unsigned(llvm::count_if(
        ends, [&](mlir::Operation *end) { return end->isBeforeInBlock(top); }));
  }

private:
  mlir::Region &body;
  bool isKnown = true;
  std::vector<mlir::Operation *> ends;
};

bool areEqualConstants(Value a, Value b) {
  Attribute left, right;
  return matchPattern(a, m_Constant(&left)) &&
         matchPattern(b, m_Constant(&right)) && left == right;
}

/// Whether blocks may order each other anywhere in the kernel: in code that is
/// not seen, or in a loop that ends when another block's atomic operation has
/// been seen.
bool mayOrderBlocks(Region &body) {
  bool mayWait = !body.hasOneBlock(), hasAtomics = false, isUnseen = false;
  body.walk([&](Operation *op) {
    if (ir::isInstruction(op))
      return;
    const StringRef dialect = op->getName().getDialectNamespace();
    mayWait |= isa<scf::WhileOp, scf::ExecuteRegionOp>(op);
    hasAtomics |= isa<memref::AtomicRMWOp, memref::GenericAtomicRMWOp>(op);
    isUnseen |= isa<CallOpInterface>(op) || dialect == "nvvm" ||
                dialect == "nvgpu" || dialect == "llvm";
  });
  return isUnseen || (mayWait && hasAtomics);
}

constexpr int64_t subgroupSize = 32;

/// Whether a value that is computed in a loop may be another in each trip.
bool changesByTrip(Value value, Operation *loop,
                   llvm::SmallPtrSetImpl<Operation *> &seen) {
  Operation *op = value.getDefiningOp();
  if (!op) // an argument of the loop, or of one in it
    op = value.getParentBlock()->getParentOp();
  if (op == loop)
    return true;
  if (!loop->isProperAncestor(op) || !seen.insert(op).second)
    return false;
  return op
      ->walk([&](Operation *inner) {
        return llvm::any_of(
                   inner->getOperands(),
                   [&](Value each) { return changesByTrip(each, loop, seen); })
                   ? WalkResult::interrupt()
                   : WalkResult::advance();
      })
      .wasInterrupted();
}

/// The ids that decide what a thread's last store leaves: those that the value
/// follows from, and, where it changes from trip to trip, those that its loops
/// end by.
Ids idsOfStored(const MemoryAccess &access,
                const facts::Uniformity &uniformity) {
  Ids ids = uniformity.idsOf(access.stored);
  for (Operation *op = access.op->getParentOp(); op; op = op->getParentOp()) {
    llvm::SmallPtrSet<Operation *, 16> seen;
    if (!isa<scf::ForOp, scf::WhileOp>(op) ||
        !changesByTrip(access.stored, op, seen))
      continue;
    if (auto loop = dyn_cast<scf::ForOp>(op))
      ids |= uniformity.idsOf(loop.getLowerBound()) |
             uniformity.idsOf(loop.getUpperBound()) |
             uniformity.idsOf(loop.getStep());
    else
      ids |= uniformity.idsOf(
          cast<scf::WhileOp>(op).getConditionOp().getCondition());
  }
  return ids;
}

/// Whether a block's last subgroup has fewer threads than others.
bool hasPartialSubgroup(const AffineEvaluator &affine) {
  return affine.sizeOf(0) * affine.sizeOf(1) * affine.sizeOf(2) %
             subgroupSize !=
         0;
}

/// The number of a thread's subgroup in its block.
int64_t subgroupOf(const facts::ThreadIds &ids, const AffineEvaluator &affine) {
  return (ids[0] + affine.sizeOf(0) * (ids[1] + affine.sizeOf(1) * ids[2])) /
         subgroupSize;
}

} // namespace

// Races within a launch where an index or a condition is not affine. Values
// that follow from the ids alone (an exclusive or of them) are worked out
// thread by thread; values from memory are not known.

using facts::blockIds, facts::ThreadIds, facts::ThreadValues;

namespace {

// To work out all threads of a large launch would take its time.
constexpr int64_t mostThreads = 2048;
constexpr size_t mostAccesses = 64;

struct PossibleAccess {
  MemoryAccess from;
  KernelView view;
  std::optional<AccessSet> set; ///< a superset of its elements, where known
  std::optional<unsigned> part; ///< see Parts
  Ids ofStored;                 ///< idsOfStored(), where it stores a value
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

/// Pairs of values, and whether each thread computes one value as both.
class SameValues {
public:
  explicit SameValues(Region &body) {
    body.walk([&](Operation *op) {
      auto access = memoryAccessOf(op);
      if (access && !access->stored && !access->isAtomic)
        return;
      if (access)
        written.insert(ir::rootOf(access->memref));
      else
        isUnseen |= op->getNumRegions() == 0 && !isMemoryEffectFree(op) &&
                    !isa<memref::AllocaOp, gpu::BarrierOp>(op);
    });
  }

  bool isSame(Value a, Value b) {
    if (a == b)
      return true;
    if (auto at = known.find({a, b}); at != known.end())
      return at->second;
    Operation *one = a.getDefiningOp(), *other = b.getDefiningOp();
    const bool isOne =
        one && other && one->getNumRegions() == 0 &&
        one->getNumResults() == 1 && one->getName() == other->getName() &&
        one->getAttrDictionary() == other->getAttrDictionary() &&
        givesOne(one) && areSame(one->getOperands(), other->getOperands());
    known[{a, b}] = isOne;
    return isOne;
  }

  bool areSame(ValueRange these, ValueRange those) {
    return llvm::equal(these, those,
                       [&](Value a, Value b) { return isSame(a, b); });
  }

private:
  /// Whether an operation gives one value for the same operands, wherever it
  /// stands.
  bool givesOne(Operation *op) const {
    auto load = dyn_cast<memref::LoadOp>(op);
    return load ? !isUnseen && !written.contains(ir::rootOf(load.getMemRef()))
                : isMemoryEffectFree(op);
  }

  llvm::DenseMap<std::pair<Value, Value>, bool> known;
  llvm::DenseSet<Value> written;
  bool isUnseen = false;
};

class PossibleRaces {
public:
  using MayMeet =
      llvm::function_ref<bool(const AccessSet &, const AccessSet &, Ids)>;

  PossibleRaces(Region &body, KernelViews &views, AffineEvaluator &affine,
                const facts::Uniformity &uniformity, MayMeet meet)
      : affine(affine), uniformity(uniformity), values(affine, mostThreads),
        body(body), meet(meet) {
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
      accesses.push_back(
          {*access, known, std::move(set), parts.of(op), {}, {}});
    });
    if (llvm::all_of(accesses,
                     [](const auto &each) { return each.isAffine(); }))
      accesses.clear();
    if (accesses.size() > mostAccesses)
      accesses.resize(mostAccesses);
    for (PossibleAccess &access : accesses) {
      access.elements = elementsOf(access, body, values, affine);
      if (access.from.stored)
        access.ofStored = idsOfStored(access.from, uniformity);
    }
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
        (a.ofStored & differing).none() &&
        (!uniformity.variesBySubgroup(a.from.stored,
                                      hasPartialSubgroup(affine)) ||
         subgroupOf(one, affine) == subgroupOf(other, affine)))
      return false; // one value
    return (differing & blockIds()).any() ||
           (differing.any() && a.part && a.part == b.part);
  }

  /// Whether the text shows that each thread comes to one element by both.
  bool isOneElement(const MemoryAccess &a, const MemoryAccess &b) {
    if (a.memref != b.memref)
      return false;
    if (!same)
      same.emplace(body);
    return same->areSame(a.indices, b.indices);
  }

  void judge(const PossibleAccess &a, const PossibleAccess &b) {
    if (a.elements.empty() || b.elements.empty()) {
      const bool isOne = isOneElement(a.from, b.from);
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
  const facts::Uniformity &uniformity;
  ThreadValues values;
  Region &body;
  std::optional<SameValues> same; ///< made where it is asked first
  MayMeet meet;
  std::vector<PossibleAccess> accesses;
  std::vector<LaunchRace> races;
};

} // namespace

/// Two accesses of one buffer, at least one of which is not affine: two threads
/// make them at one element, where the indices follow from the ids; else the
/// indices are two different expressions, and no threads are kept apart by what
/// of them is affine: `mayMeet` says that of larger accesses, and of threads
/// that differ in one of some ids. Conditions that are not known count
/// as met. Looked at are the first few thousand threads.
static std::vector<LaunchRace> findPossibleRaces(
    Region &body, KernelViews &views, AffineEvaluator &affine,
    const facts::Uniformity &uniformity,
    llvm::function_ref<bool(const AccessSet &, const AccessSet &, Ids)>
        mayMeet) {
  return PossibleRaces(body, views, affine, uniformity, mayMeet).find();
}

namespace {

// Each question takes its time.
constexpr size_t mostPairs = 64;
// More answers are not kept.
constexpr size_t mostKnown = 1 << 14;

/// An access that every thread makes which the conditions around it let
/// through.
struct ThreadAccess {
  MemoryAccess from;
  Value root;
  BufferId buffer;
  AccessSet set;
  /// Threads of one block that are in one part of the kernel are not ordered:
  /// they wait for each other between its parts. None: not known.
  std::optional<unsigned> part;

  bool writes() const { return from.stored || from.isAtomic; }
};

std::optional<ThreadAccess> accessOf(Operation *op, Region &body,
                                     const Parts &parts, KernelViews &views,
                                     AffineEvaluator &affine) {
  auto access = memoryAccessOf(op);
  const KernelView *view = access ? views.of(access->memref) : nullptr;
  if (!view)
    return std::nullopt;
  const KernelView known = *view; // others may be found meanwhile
  auto set = accessSetOf(*access, known, body, affine);
  if (!set || !set->isSure)
    return std::nullopt;
  return ThreadAccess{*access, known.root, known.buffer, std::move(*set),
                      parts.of(op)};
}

/// Whether no two threads have one address: each larger coefficient steps over
/// all that the smaller ones reach, and every id of `ids` has one.
bool areDistinct(const AffineForm &address, Ids ids,
                 const AffineEvaluator &affine) {
  llvm::SmallVector<std::pair<int64_t, int64_t>, 8> dims; // stride, size
  for (auto [counter, coefficient] : address.terms) {
    dims.push_back({std::abs(coefficient), affine.sizeOf(counter)});
    if (counter < ids.size())
      ids.reset(counter);
  }
  llvm::sort(dims);
  int64_t reach = 0;
  for (auto [stride, size] : dims) {
    if (stride <= reach)
      return false;
    reach += stride * (size - 1);
  }
  return ids.none();
}

/// Whether two threads of a launch make the accesses at one element.
class Question {
public:
  /// At least one of the two accesses writes.
  Question(const AccessSet &a, const AccessSet &b, Ids ids,
           const AffineEvaluator &affine, KnownMeetings &known)
      : known(known), ids(ids), firstIds(countersOf(ids)),
        first(touchedSet(a, true, affine, firstIds)),
        second(touchedSet(b, true, affine, firstIds)),
        base(std::exchange(first.constant, 0)) {
    second.constant -= base;
  }

  /// Two threads of which the second one's `id` is larger by at least `by`; the
  /// first one's, if that is negative.
  std::optional<MeetingThreads> differIn(uint32_t id, int64_t by) const {
    auto key = std::make_tuple(first, second, ids.to_ulong(), id, by);
    auto at = known.find(key);
    auto threads = at != known.end() ? at->second : solve(id, by);
    if (at == known.end() && known.size() < mostKnown)
      known.emplace(std::move(key), threads);
    if (threads)
      threads->address += base / first.elementBytes;
    return threads;
  }

  /// Whether two threads that differ in one of the ids `differing` may come to
  /// one element, or that takes too long to say.
  bool mayMeet(Ids differing) const {
    const Meeting meeting(first, second);
    return !meeting.isSmall() ||
           llvm::any_of(countersOf(ids & differing), [&](uint32_t id) {
             return !apart(meeting, id, 1).isIntegerEmpty() ||
                    !apart(meeting, id, -1).isIntegerEmpty();
           });
  }

private:
  presburger::IntegerRelation apart(const Meeting &meeting, uint32_t id,
                                    int64_t by) const {
    presburger::IntegerRelation with = meeting.relation();
    const size_t at = size_t(llvm::find(firstIds, id) - firstIds.begin());
    llvm::SmallVector<int64_t, 16> apart(with.getNumCols(), 0);
    apart[at] = by > 0 ? -1 : 1;
    apart[first.sizes.size() + at] = -apart[at];
    apart.back() = -std::abs(by);
    with.addInequality(apart);
    return with;
  }

  /// The address is without `base`.
  std::optional<MeetingThreads> solve(uint32_t id, int64_t by) const {
    const Meeting meeting(first, second);
    if (!meeting.isSmall())
      return std::nullopt;
    const presburger::IntegerRelation with = apart(meeting, id, by);
    if (!with.findIntegerSample())
      return std::nullopt;
    // The smallest, which is slower to find, reads best.
    const auto smallest = with.findIntegerLexMin();
    if (!smallest.isBounded())
      return std::nullopt;
    llvm::SmallVector<int64_t, 16> found;
    for (const auto &value : smallest.getBoundedOptimum())
      found.push_back(llvm::int64fromDynamicAPInt(value));
    MeetingThreads threads;
    for (auto [k, counter] : llvm::enumerate(firstIds)) {
      threads.first[counter] = found[k];
      threads.second[counter] = found[first.sizes.size() + k];
    }
    for (auto [position, coefficient] : first.terms)
      threads.address += coefficient * found[position];
    threads.address /= first.elementBytes;
    return threads;
  }

  static std::vector<uint32_t> countersOf(Ids ids) {
    std::vector<uint32_t> counters;
    for (uint32_t k = 0; k < ids.size(); ++k)
      if (ids.test(k))
        counters.push_back(k);
    return counters;
  }

  KnownMeetings &known;
  Ids ids;
  std::vector<uint32_t> firstIds; ///< their unknowns come first
  TouchedSet first, second;
  int64_t base; ///< bytes of both constants that are taken away
};

class LaunchRaces {
public:
  LaunchRaces(Region &body, KernelViews &views, AffineEvaluator &affine,
              const facts::Uniformity &uniformity, KnownMeetings &known)
      : affine(affine), uniformity(uniformity), known(known) {
    const Parts parts(body);
    body.walk([&](Operation *op) {
      if (auto access = accessOf(op, body, parts, views, affine))
        accesses.push_back(std::move(*access));
    });
    for (uint32_t k = 0; k < ids.size(); ++k)
      ids.set(k, affine.sizeOf(k) > 1);
  }

  std::vector<LaunchRace> find() {
    size_t pairs = 0;
    for (size_t a = 0; a < accesses.size(); ++a)
      for (size_t b = 0; b <= a && pairs < mostPairs; ++b)
        if (mayMeet(accesses[b], accesses[a])) {
          ++pairs;
          ask(accesses[b], accesses[a]);
        }
    return std::move(races);
  }

  bool mayMeet(const AccessSet &a, const AccessSet &b, Ids differing) {
    return a.bytes != b.bytes ||
           Question(a, b, ids, affine, known).mayMeet(differing);
  }

private:
  /// Threads that differ in one of these ids are not ordered between the two.
  Ids apartOf(const ThreadAccess &a, const ThreadAccess &b) const {
    return a.part && a.part == b.part ? ids : ids & blockIds();
  }

  bool mayMeet(const ThreadAccess &a, const ThreadAccess &b) const {
    if ((!a.writes() && !b.writes()) || (a.from.isAtomic && b.from.isAtomic) ||
        a.buffer != b.buffer || a.set.bytes != b.set.bytes)
      return false;
    const AffineForm &first = a.set.address, &second = b.set.address;
    const auto [aFirst, aLast] = affine.range(first);
    const auto [bFirst, bLast] = affine.range(second);
    if (aLast < bFirst || bLast < aFirst)
      return false;
    const bool isSame =
        first.constant == second.constant && first.terms == second.terms;
    return !isSame || !areDistinct(first, apartOf(a, b), affine);
  }

  void ask(const ThreadAccess &a, const ThreadAccess &b) {
    Ids differing = apartOf(a, b);
    const Value aStored = a.from.stored, bStored = b.from.stored;
    // Equal values of vectors may come to other places.
    const bool isNumber = a.from.lanes.empty() && b.from.lanes.empty();
    Ids ofSubgroups; // threads that differ in no others store one value
    if (aStored && aStored == bStored && isNumber) {
      const Ids varying = idsOfStored(a.from, uniformity);
      if (uniformity.variesBySubgroup(aStored, hasPartialSubgroup(affine)))
        ofSubgroups = differing & facts::threadIds() & ~varying;
      differing &= varying | ofSubgroups;
    } else if (aStored && bStored && areEqualConstants(aStored, bStored)) {
      return;
    }
    const Question question(a.set, b.set, ids, affine, known);
    for (uint32_t id = 0; id < ids.size(); ++id)
      if (differing.test(id))
        for (int64_t sign : {1, -1}) {
          if (sign < 0 && a.from.op == b.from.op)
            continue; // the same two
          const bool isOfSubgroups = ofSubgroups.test(id);
          auto threads = question.differIn(
              id, isOfSubgroups ? sign * acrossSubgroups(id) : sign);
          if (threads &&
              (!isOfSubgroups || subgroupOf(threads->first, affine) !=
                                     subgroupOf(threads->second, affine))) {
            races.push_back(
                {a.from.op, b.from.op, b.root,
                 raceText(a.from, b.from, threads->first, threads->second,
                          threads->address, affine)});
            return;
          }
        }
  }

  /// By how much the id of threads of different subgroups differs where no id
  /// of a further axis does.
  int64_t acrossSubgroups(uint32_t id) const {
    int64_t threads = 1; // from one value of the id to the next
    for (uint32_t k = 0; k < id; ++k)
      threads *= affine.sizeOf(k);
    return llvm::divideCeilSigned(subgroupSize + threads - 1, threads);
  }

  AffineEvaluator &affine;
  const facts::Uniformity &uniformity;
  KnownMeetings &known;
  std::vector<ThreadAccess> accesses;
  Ids ids; ///< of which there is more than one value
  std::vector<LaunchRace> races;
};

} // namespace

std::string raceText(const MemoryAccess &a, const MemoryAccess &b,
                     const facts::ThreadIds &first,
                     const facts::ThreadIds &second, int64_t element,
                     const facts::AffineCounters &counters) {
  auto nameOf = [&](const facts::ThreadIds &ids) {
    auto each = [&](uint32_t base) {
      return counters.sizeOf(base + 1) > 1 || counters.sizeOf(base + 2) > 1
                 ? fmt::format("({}, {}, {})", ids[base], ids[base + 1],
                               ids[base + 2])
                 : fmt::format("{}", ids[base]);
    };
    return fmt::format("thread {} of block {}", each(0), each(3));
  };
  auto verb = [](const MemoryAccess &access) {
    return access.isAtomic ? "updates" : access.stored ? "writes" : "reads";
  };
  return fmt::format("{} {} element {}, which {} {}{}", nameOf(second), verb(b),
                     element, nameOf(first), verb(a),
                     a.stored && b.stored ? " too" : "");
}

std::vector<LaunchRace> findLaunchRaces(Region &body, KernelViews &views,
                                        AffineEvaluator &affine,
                                        const facts::Uniformity &uniformity,
                                        KnownMeetings &known) {
  if (mayOrderBlocks(body))
    return {};
  LaunchRaces sure(body, views, affine, uniformity, known);
  std::vector<LaunchRace> races = sure.find();
  llvm::append_range(races,
                     findPossibleRaces(body, views, affine, uniformity,
                                       [&](const AccessSet &a,
                                           const AccessSet &b, Ids differing) {
                                         return sure.mayMeet(a, b, differing);
                                       }));
  return races;
}

} // namespace mgpu::planner
