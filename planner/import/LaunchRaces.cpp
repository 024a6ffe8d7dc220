// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/import/LaunchRaces.h"

#include "planner/import/AccessSet.h"
#include "planner/import/KernelParts.h"
#include "planner/import/PossibleRaces.h"

#include <fmt/format.h>
#include <utility>

namespace mgpu::planner {

using namespace mlir;
using facts::areEqualConstants, facts::blockIds, facts::idsOf;

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

  /// Two threads whose `id` differs; the first has the smaller one, or the
  /// larger one.
  std::optional<MeetingThreads> differIn(uint32_t id,
                                         bool isFirstSmaller) const {
    auto key =
        std::make_tuple(first, second, ids.to_ulong(), id, isFirstSmaller);
    auto at = known.find(key);
    auto threads = at != known.end() ? at->second : solve(id, isFirstSmaller);
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
             return !apart(meeting, id, true).isIntegerEmpty() ||
                    !apart(meeting, id, false).isIntegerEmpty();
           });
  }

private:
  presburger::IntegerRelation apart(const Meeting &meeting, uint32_t id,
                                    bool isFirstSmaller) const {
    presburger::IntegerRelation with = meeting.relation();
    const size_t at = size_t(llvm::find(firstIds, id) - firstIds.begin());
    llvm::SmallVector<int64_t, 16> apart(with.getNumCols(), 0);
    apart[at] = isFirstSmaller ? -1 : 1;
    apart[first.sizes.size() + at] = -apart[at];
    apart.back() = -1;
    with.addInequality(apart);
    return with;
  }

  /// The address is without `base`.
  std::optional<MeetingThreads> solve(uint32_t id, bool isFirstSmaller) const {
    const Meeting meeting(first, second);
    if (!meeting.isSmall())
      return std::nullopt;
    const presburger::IntegerRelation with = apart(meeting, id, isFirstSmaller);
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
              KnownMeetings &known)
      : affine(affine), known(known) {
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
    if (aStored && aStored == bStored && isNumber)
      differing &= idsOf(aStored);
    else if (aStored && bStored && areEqualConstants(aStored, bStored))
      return;
    const Question question(a.set, b.set, ids, affine, known);
    for (uint32_t id = 0; id < ids.size(); ++id)
      if (differing.test(id))
        for (bool isFirstSmaller : {true, false}) {
          if (!isFirstSmaller && a.from.op == b.from.op)
            continue; // the same two
          if (auto threads = question.differIn(id, isFirstSmaller)) {
            races.push_back(
                {a.from.op, b.from.op, b.root,
                 raceText(a.from, b.from, threads->first, threads->second,
                          threads->address, affine)});
            return;
          }
        }
  }

  AffineEvaluator &affine;
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
                                        KnownMeetings &known) {
  if (facts::mayOrderBlocks(body))
    return {};
  LaunchRaces sure(body, views, affine, known);
  std::vector<LaunchRace> races = sure.find();
  llvm::append_range(races,
                     findPossibleRaces(body, views, affine,
                                       [&](const AccessSet &a,
                                           const AccessSet &b, Ids differing) {
                                         return sure.mayMeet(a, b, differing);
                                       }));
  return races;
}

} // namespace mgpu::planner
