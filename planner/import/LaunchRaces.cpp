// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/import/LaunchRaces.h"

#include "planner/import/Conditions.h"
#include "planner/import/IdsOf.h"
#include "planner/import/KernelView.h"

#include "mlir/Analysis/Presburger/IntegerRelation.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

#include <bitset>
#include <fmt/format.h>

namespace mgpu::planner {

using namespace mlir;

namespace {

// A question of more unknowns may take long; so may more questions.
constexpr size_t mostUnknowns = 16, mostPairs = 64;

/// An access that every thread makes which the conditions around it let
/// through.
struct ThreadAccess {
  Operation *op;
  Value root;
  BufferId buffer;
  AffineForm address; ///< elements, within the buffer
  uint32_t bytes;     ///< of an element
  Value stored;       ///< what is written; none is read
  std::map<Terms, LineRange> conditions;
};

std::optional<ThreadAccess> accessOf(Operation *op, Region &body,
                                     KernelViews &views,
                                     AffineEvaluator &affine) {
  auto load = dyn_cast<memref::LoadOp>(op);
  auto store = dyn_cast<memref::StoreOp>(op);
  if (!load && !store)
    return std::nullopt;
  Value memref = load ? load.getMemRef() : store.getMemRef();
  const KernelView *view = views.of(memref);
  if (!view)
    return std::nullopt;
  const uint32_t bytes = mgpu::sizeBytes(
      *elementTypeOf(cast<MemRefType>(memref.getType()).getElementType()));
  ThreadAccess access{op, view->root, view->buffer, view->offset, bytes,
                      {}, {}};
  if (store)
    access.stored = store.getValue();
  const std::vector<int64_t> strides = view->strides;
  for (auto [k, index] :
       llvm::enumerate(load ? load.getIndices() : store.getIndices())) {
    auto form = affine.evaluate(index);
    if (!form || !affine.addScaled(access.address, *form, strides[k]))
      return std::nullopt;
  }
  Conditions conditions(affine);
  conditions.requireAround(*op->getParentRegion(), body);
  if (!conditions.isWhole() || conditions.share() == 0)
    return std::nullopt;
  access.conditions = conditions.lines();
  return access;
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

/// The unknowns of two accesses, and what holds of them.
class Question {
public:
  Question(const ThreadAccess &a, const ThreadAccess &b, Ids ids,
           const AffineEvaluator &affine)
      : first(unknownsOf(a, ids)), second(unknownsOf(b, ids)),
        relation(presburger::PresburgerSpace::getSetSpace(
            unsigned(first.size() + second.size()))) {
    if (!isSmall())
      return;
    auto bound = [&](const std::vector<uint32_t> &counters, unsigned base) {
      for (auto [k, counter] : llvm::enumerate(counters)) {
        relation.addBound(presburger::BoundType::LB, base + unsigned(k), 0);
        relation.addBound(presburger::BoundType::UB, base + unsigned(k),
                          affine.sizeOf(counter) - 1);
      }
    };
    bound(first, 0);
    bound(second, unsigned(first.size()));
    for (const auto &[access, isFirst] : {std::pair(&a, true), {&b, false}})
      for (const auto &[line, range] : access->conditions) {
        Row low = row(line, 1, isFirst), high = row(line, -1, isFirst);
        low.back() = -range.first;
        high.back() = range.last;
        relation.addInequality(low);
        relation.addInequality(high);
      }
    Row same = row(a.address.terms, 1, true);
    const Row other = row(b.address.terms, -1, false);
    for (size_t k = 0; k < same.size(); ++k)
      same[k] += other[k];
    same.back() = a.address.constant - b.address.constant;
    relation.addEquality(same);
  }

  bool isSmall() const { return first.size() + second.size() <= mostUnknowns; }

  /// Two threads whose `id` differs; the first has the smaller one, or the
  /// larger one. Each is given by its ids.
  struct Threads {
    std::array<int64_t, Ids().size()> first{}, second{};
    int64_t address = 0;
  };
  std::optional<Threads> differIn(uint32_t id, bool isFirstSmaller,
                                  const AffineForm &address) const {
    presburger::IntegerRelation with = relation;
    const Terms own{{id, isFirstSmaller ? -1 : 1}};
    const Terms its{{id, isFirstSmaller ? 1 : -1}};
    Row apart = row(own, 1, true);
    const Row other = row(its, 1, false);
    for (size_t k = 0; k < apart.size(); ++k)
      apart[k] += other[k];
    apart.back() = -1;
    with.addInequality(apart);
    if (!with.findIntegerSample())
      return std::nullopt;
    // The smallest, which is slower to find, reads best.
    const auto smallest = with.findIntegerLexMin();
    if (!smallest.isBounded())
      return std::nullopt;
    const auto &found = smallest.getBoundedOptimum();
    Threads threads;
    threads.address = address.constant;
    for (auto [k, counter] : llvm::enumerate(first)) {
      const int64_t value = llvm::int64fromDynamicAPInt(found[k]);
      if (counter < threads.first.size())
        threads.first[counter] = value;
      for (auto [term, coefficient] : address.terms)
        threads.address += term == counter ? coefficient * value : 0;
    }
    for (auto [k, counter] : llvm::enumerate(second))
      if (counter < threads.second.size())
        threads.second[counter] =
            llvm::int64fromDynamicAPInt(found[first.size() + k]);
    return threads;
  }

private:
  using Row = llvm::SmallVector<int64_t, 16>;

  static std::vector<uint32_t> unknownsOf(const ThreadAccess &access, Ids ids) {
    std::vector<uint32_t> counters;
    for (uint32_t k = 0; k < ids.size(); ++k)
      if (ids.test(k))
        counters.push_back(k);
    auto add = [&](uint32_t counter) {
      if (!llvm::is_contained(counters, counter))
        counters.push_back(counter);
    };
    for (auto [counter, coefficient] : access.address.terms)
      add(counter);
    for (const auto &[line, range] : access.conditions)
      for (auto [counter, coefficient] : line)
        add(counter);
    return counters;
  }

  /// Coefficients of all unknowns, and a last one for the constant.
  template <typename Form>
  Row row(const Form &terms, int64_t factor, bool isFirst) const {
    Row row(first.size() + second.size() + 1, 0);
    const std::vector<uint32_t> &counters = isFirst ? first : second;
    for (auto [counter, coefficient] : terms)
      row[size_t(llvm::find(counters, counter) - counters.begin()) +
          (isFirst ? 0 : first.size())] = coefficient * factor;
    return row;
  }

  std::vector<uint32_t> first, second; ///< counters
  presburger::IntegerRelation relation;
};

class LaunchRaces {
public:
  LaunchRaces(Region &body, KernelViews &views, AffineEvaluator &affine)
      : affine(affine) {
    body.walk([&](Operation *op) {
      if (auto access = accessOf(op, body, views, affine))
        accesses.push_back(std::move(*access));
    });
    for (uint32_t k = 0; k < ids.size(); ++k)
      ids.set(k, affine.sizeOf(k) > 1);
    if (exchangesWithinBlocks(body))
      apart = ids & blockIds();
    else
      apart = ids;
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

private:
  bool mayMeet(const ThreadAccess &a, const ThreadAccess &b) const {
    if ((!a.stored && !b.stored) || a.buffer != b.buffer || a.bytes != b.bytes)
      return false;
    const auto [aFirst, aLast] = affine.range(a.address);
    const auto [bFirst, bLast] = affine.range(b.address);
    if (aLast < bFirst || bLast < aFirst)
      return false;
    const bool isSame = a.address.constant == b.address.constant &&
                        a.address.terms == b.address.terms;
    return !isSame || !areDistinct(a.address, apart, affine);
  }

  void ask(const ThreadAccess &a, const ThreadAccess &b) {
    Ids differing = apart;
    if (a.stored && a.stored == b.stored)
      differing &= idsOf(a.stored);
    else if (a.stored && b.stored && areEqualConstants(a.stored, b.stored))
      return;
    const Question question(a, b, ids, affine);
    if (!question.isSmall())
      return;
    for (uint32_t id = 0; id < ids.size(); ++id)
      if (differing.test(id))
        for (bool isFirstSmaller : {true, false}) {
          if (!isFirstSmaller && a.op == b.op)
            continue; // the same two
          if (auto threads = question.differIn(id, isFirstSmaller, a.address)) {
            races.push_back({a.op, b.op, b.root, textOf(a, b, *threads)});
            return;
          }
        }
  }

  std::string nameOf(const std::array<int64_t, Ids().size()> &thread) const {
    auto each = [&](size_t base) {
      return ids.test(base + 1) || ids.test(base + 2)
                 ? fmt::format("({}, {}, {})", thread[base], thread[base + 1],
                               thread[base + 2])
                 : fmt::format("{}", thread[base]);
    };
    return fmt::format("thread {} of block {}", each(0), each(3));
  }

  std::string textOf(const ThreadAccess &a, const ThreadAccess &b,
                     const Question::Threads &threads) const {
    auto verb = [](const ThreadAccess &access) {
      return access.stored ? "writes" : "reads";
    };
    return fmt::format("{} {} element {}, which {} {}{}",
                       nameOf(threads.second), verb(b), threads.address,
                       nameOf(threads.first), verb(a),
                       a.stored && b.stored ? " too" : "");
  }

  AffineEvaluator &affine;
  std::vector<ThreadAccess> accesses;
  Ids ids;   ///< of which there is more than one value
  Ids apart; ///< threads that differ in one of these are not ordered
  std::vector<LaunchRace> races;
};

} // namespace

std::vector<LaunchRace> findLaunchRaces(Region &body, KernelViews &views,
                                        AffineEvaluator &affine) {
  if (mayOrderBlocks(body))
    return {};
  return LaunchRaces(body, views, affine).find();
}

} // namespace mgpu::planner
