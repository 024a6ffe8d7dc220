// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/import/AccessSet.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

#include <algorithm>
#include <cstdlib>

namespace mgpu::planner {

using namespace mlir;
using presburger::BoundType, presburger::IntegerRelation,
    presburger::PresburgerSpace;

// A question of more unknowns may take long.
static constexpr unsigned mostUnknowns = 16;

/// A transfer of exactly the elements at its indices and after them.
template <typename Transfer>
static bool isPlain(Transfer op) {
  return !op.getMask() && op.getPermutationMap().isMinorIdentity() &&
         !op.hasOutOfBoundsDim() && isa<MemRefType>(op.getShapedType());
}

std::optional<MemoryAccess> memoryAccessOf(Operation *op) {
  if (auto load = dyn_cast<memref::LoadOp>(op))
    return MemoryAccess{op, load.getMemRef(), load.getIndices(), {}, {}};
  if (auto store = dyn_cast<memref::StoreOp>(op))
    return MemoryAccess{
        op, store.getMemRef(), store.getIndices(), {}, store.getValue()};
  if (auto atomic = dyn_cast<memref::AtomicRMWOp>(op))
    return MemoryAccess{op,  atomic.getMemref(), atomic.getIndices(), {}, {},
                        true};
  if (auto atomic = dyn_cast<memref::GenericAtomicRMWOp>(op))
    return MemoryAccess{op,  atomic.getMemref(), atomic.getIndices(), {}, {},
                        true};
  if (auto load = dyn_cast<vector::LoadOp>(op))
    return MemoryAccess{op,
                        load.getBase(),
                        load.getIndices(),
                        load.getVectorType().getShape(),
                        {}};
  if (auto store = dyn_cast<vector::StoreOp>(op))
    return MemoryAccess{op, store.getBase(), store.getIndices(),
                        store.getVectorType().getShape(),
                        store.getValueToStore()};
  if (auto read = dyn_cast<vector::TransferReadOp>(op); read && isPlain(read))
    return MemoryAccess{op,
                        read.getBase(),
                        read.getIndices(),
                        read.getVectorType().getShape(),
                        {}};
  if (auto write = dyn_cast<vector::TransferWriteOp>(op);
      write && isPlain(write))
    return MemoryAccess{op, write.getBase(), write.getIndices(),
                        write.getVectorType().getShape(),
                        write.getValueToStore()};
  return std::nullopt;
}

std::optional<AccessSet> accessSetOf(const MemoryAccess &access,
                                     const KernelView &view, Region &body,
                                     AffineEvaluator &affine, bool bounded) {
  auto memref = cast<MemRefType>(access.memref.getType());
  const auto type = elementTypeOf(memref.getElementType());
  const size_t rank = view.strides.size();
  if (!type || access.lanes.size() > rank || access.indices.size() != rank)
    return std::nullopt;
  AccessSet set;
  set.address = view.offset;
  set.bytes = mgpu::sizeBytes(*type);
  for (auto [k, index] : llvm::enumerate(access.indices)) {
    auto form = affine.evaluate(index);
    if (!form && bounded && !memref.isDynamicDim(k) && memref.getDimSize(k) > 0)
      form = AffineForm{0, {{affine.addCounter(memref.getDimSize(k)), 1}}};
    if (!form || !affine.addScaled(set.address, *form, view.strides[k]))
      return std::nullopt;
  }
  for (auto [k, lanes] : llvm::enumerate(access.lanes)) {
    AffineForm lane;
    if (lanes > 1)
      lane.terms.push_back({affine.addCounter(lanes), 1});
    if (!affine.addScaled(set.address, lane,
                          view.strides[rank - access.lanes.size() + k]))
      return std::nullopt;
  }
  Conditions conditions(affine);
  conditions.requireAround(*access.op->getParentRegion(), body);
  if (conditions.share() == 0)
    return std::nullopt;
  set.isSure = !bounded && conditions.isWhole();
  set.conditions = conditions.lines();
  return set;
}

TouchedSet touchedSet(const AccessSet &access, bool writes,
                      const AffineEvaluator &affine,
                      llvm::ArrayRef<uint32_t> first) {
  TouchedSet set;
  std::vector<uint32_t> counters(first.begin(), first.end());
  auto positionOf = [&](uint32_t counter) {
    auto at = llvm::find(counters, counter);
    if (at == counters.end())
      at = counters.insert(at, counter);
    return uint32_t(at - counters.begin());
  };
  auto termsOf = [&](const auto &terms, int64_t factor) {
    TouchedSet::Terms out;
    for (auto [counter, coefficient] : terms)
      out.push_back({positionOf(counter), coefficient * factor});
    llvm::sort(out);
    return out;
  };
  set.terms = termsOf(access.address.terms, access.bytes);
  set.constant = access.address.constant * access.bytes;
  set.elementBytes = access.bytes;
  for (const auto &[line, range] : access.conditions)
    set.conditions.push_back({termsOf(line, 1), range.first, range.last});
  // The facts that are known of quotients and remainders; they may have others
  // in them.
  for (size_t k = 0; k < counters.size(); ++k)
    if (const AffineForm *zero = affine.tieOf(counters[k])) {
      TouchedSet::Condition tie{termsOf(zero->terms, 1), -zero->constant,
                                -zero->constant};
      if (!llvm::is_contained(set.conditions, tie))
        set.conditions.push_back(std::move(tie));
    }
  for (uint32_t counter : counters)
    set.sizes.push_back(affine.sizeOf(counter));
  set.writes = writes;
  set.isSure = access.isSure;
  return set;
}

using Row = llvm::SmallVector<int64_t, 16>;

/// Adds factor * terms, whose unknowns begin at `base`.
static void addTerms(Row &row, const TouchedSet::Terms &terms, size_t base,
                     int64_t factor) {
  for (auto [position, coefficient] : terms)
    row[base + position] += factor * coefficient;
}

/// Adds that the unknowns of `set`, which begin at `base`, are of it.
static void addSet(IntegerRelation &relation, const TouchedSet &set,
                   size_t base) {
  for (auto [k, size] : llvm::enumerate(set.sizes)) {
    relation.addBound(BoundType::LB, unsigned(base + k), 0);
    relation.addBound(BoundType::UB, unsigned(base + k), size - 1);
  }
  for (const TouchedSet::Condition &condition : set.conditions) {
    Row low(relation.getNumCols(), 0), high = low;
    addTerms(low, condition.terms, base, 1);
    low.back() = -condition.first;
    if (condition.first == condition.last) {
      relation.addEquality(low);
      continue;
    }
    addTerms(high, condition.terms, base, -1);
    high.back() = condition.last;
    relation.addInequality(low);
    relation.addInequality(high);
  }
}

Meeting::Meeting(const TouchedSet &a, const TouchedSet &b)
    : meeting(PresburgerSpace::getSetSpace(
          unsigned(a.sizes.size() + b.sizes.size()))) {
  if (!isSmall())
    return;
  addSet(meeting, a, 0);
  addSet(meeting, b, a.sizes.size());
  Row apart(meeting.getNumCols(), 0);
  addTerms(apart, a.terms, 0, 1);
  addTerms(apart, b.terms, a.sizes.size(), -1);
  apart.back() = a.constant - b.constant;
  const int64_t bytes = a.elementBytes;
  if (a.elementBytes == b.elementBytes &&
      llvm::all_of(apart, [&](int64_t each) { return each % bytes == 0; })) {
    for (int64_t &each : apart)
      each /= bytes;
    meeting.addEquality(apart);
    return;
  }
  // a begins before b's end, and b before a's.
  Row before = apart, after = apart;
  for (int64_t &each : before)
    each = -each;
  before.back() += int64_t(b.elementBytes) - 1;
  after.back() += int64_t(a.elementBytes) - 1;
  meeting.addInequality(before);
  meeting.addInequality(after);
}

bool Meeting::isSmall() const { return meeting.getNumVars() <= mostUnknowns; }

Overlap meetSets(const TouchedSets &a, const TouchedSets &b) {
  Overlap worst = Overlap::None;
  for (const TouchedSet &first : a)
    for (const TouchedSet &second : b) {
      if (!first.writes && !second.writes)
        continue;
      const Meeting meeting(first, second);
      if (meeting.isSmall() && meeting.relation().isIntegerEmpty())
        continue;
      const bool isSure = meeting.isSmall() && first.isSure && second.isSure;
      worst = std::max(worst, isSure ? Overlap::Yes : Overlap::Maybe);
    }
  return worst;
}

std::optional<std::pair<unsigned, int64_t>>
AccessBoxes::blocksApart(const AffineForm &index) const {
  std::optional<std::pair<unsigned, int64_t>> found;
  int64_t blocks = 0;
  for (auto [counter, coefficient] : index.terms)
    if (auto axis = AffineEvaluator::blockAxisOf(counter)) {
      if (found || coefficient <= 0)
        return std::nullopt;
      found = {*axis, coefficient};
      blocks = affine.sizeOf(counter);
    }
  if (!found)
    return std::nullopt;
  auto [first, last] = affine.range(index);
  if (last - first - found->second * (blocks - 1) >= found->second)
    return std::nullopt;
  return found;
}

/// Whether every other counter of the address runs within one step of `counter`
/// or jumps past all of it, with a gap that keeps it a dimension of its own,
/// and none is a block id of `axis`.
static bool isNested(const AffineForm &address, uint32_t counter, unsigned axis,
                     const AffineEvaluator &affine) {
  int64_t step = 0, size = affine.sizeOf(counter);
  for (auto [other, coefficient] : address.terms)
    if (other == counter)
      step = coefficient;
  if (step <= 0)
    return false;
  for (auto [other, coefficient] : address.terms) {
    int64_t stride = std::abs(coefficient);
    if (other == counter)
      continue;
    if (AffineEvaluator::blockAxisOf(other) == axis ||
        (stride * affine.sizeOf(other) > step && stride <= step * size))
      return false;
  }
  return true;
}

/// One dimension for each counter, {stride, size}, the largest stride first;
/// neighbours that tile (block_id * block_dim + thread_id) become one.
static void addDims(Box &box, std::vector<std::pair<int64_t, int64_t>> dims) {
  std::sort(dims.begin(), dims.end(), std::greater<>());
  for (auto [stride, size] : dims) {
    if (!box.strides.empty() && box.strides.back() == stride * size) {
      box.strides.back() = stride;
      box.sizes.back() *= size;
      continue;
    }
    box.strides.push_back(stride);
    box.sizes.push_back(size);
  }
}

/// Puts factor * (values of a new counter) for the line in `form`, where it
/// has a multiple of the line, or nothing of it. False where it has another
/// part of it: the guard then says of pairs of indices what no box says.
static bool substitute(AffineForm &form, const Terms &line,
                       const LineValues &values, uint32_t counter) {
  std::optional<int64_t> factor;
  for (auto [each, coefficient] : line) {
    auto at = llvm::find_if(form.terms, [&, id = each](const auto &term) {
      return term.first == id;
    });
    const int64_t found = at == form.terms.end() ? 0 : at->second;
    if (found % coefficient != 0 || (factor && *factor != found / coefficient))
      return false;
    factor = found / coefficient;
  }
  if (factor.value_or(0) == 0)
    return true;
  llvm::erase_if(form.terms, [&](const auto &term) {
    return llvm::any_of(
        line, [&](const auto &each) { return each.first == term.first; });
  });
  form.constant += *factor * values.first;
  if (values.count > 1)
    form.terms.push_back({counter, *factor * values.step});
  return true;
}

std::optional<AccessBoxes::Guarded>
AccessBoxes::withinGuards(const Conditions &conditions, const KernelView &view,
                          ValueRange indices) {
  if (!conditions.isWhole())
    return std::nullopt;
  Guarded out;
  out.offset = view.offset;
  for (Value index : indices) {
    auto form = affine.evaluate(index);
    if (!form || !affine.isFree(*form))
      return std::nullopt;
    out.indices.push_back(std::move(*form));
  }
  if (!affine.isFree(out.offset))
    return std::nullopt;
  std::vector<uint32_t> taken;
  for (const auto &[line, range] : conditions.lines()) {
    for (auto [counter, coefficient] : line) {
      if (llvm::is_contained(taken, counter) || affine.tieOf(counter))
        return std::nullopt; // two guards of one id
      taken.push_back(counter);
    }
    auto all = valuesOf(line, affine);
    if (!all)
      return std::nullopt;
    const LineValues some = all->within(range);
    if (some.count == all->count)
      continue;
    const uint32_t counter = affine.addCounter(some.count);
    if (!substitute(out.offset, line, some, counter))
      return std::nullopt;
    for (AffineForm &index : out.indices)
      if (!substitute(index, line, some, counter))
        return std::nullopt;
    const AffineForm form{0, line};
    if (some.first == all->first && some.count > 1)
      if (auto apart = blocksApart(form))
        out.overhangs.push_back({counter, apart->first, apart->second});
  }
  return out;
}

Box AccessBoxes::boxOfAddress(const AffineForm &address,
                              const std::vector<Overhang> &overhangs,
                              uint32_t bytes,
                              std::array<int64_t, 3> &blockSteps) const {
  Box box;
  box.elementBytes = bytes;
  box.offset = address.constant * bytes;
  std::vector<std::pair<int64_t, int64_t>> dims; // stride, size
  for (auto [counter, coefficient] : address.terms) {
    int64_t stride = coefficient * int64_t(bytes),
            size = affine.sizeOf(counter);
    if (auto axis = AffineEvaluator::blockAxisOf(counter))
      blockSteps[*axis] = stride;
    if (stride < 0) {
      box.offset += stride * (size - 1);
      stride = -stride;
    }
    dims.push_back({stride, size});
    for (const Overhang &overhang : overhangs)
      if (overhang.counter == counter && blockSteps[overhang.axis] == 0 &&
          isNested(address, counter, overhang.axis, affine))
        blockSteps[overhang.axis] = overhang.step * stride;
  }
  addDims(box, std::move(dims));
  return box;
}

} // namespace mgpu::planner
