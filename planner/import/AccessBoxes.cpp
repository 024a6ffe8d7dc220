// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/import/AccessBoxes.h"

#include <algorithm>
#include <cstdlib>

namespace mgpu::planner {

using namespace mlir;

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
