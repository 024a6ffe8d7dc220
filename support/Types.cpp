// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "support/Types.h"

#include "support/Assert.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <fmt/format.h>
#include <functional>
#include <numeric>
#include <utility>

namespace mgpu {

namespace {
struct ElementInfo {
  ElementType type;
  uint32_t bytes;
  std::string_view name;
};
constexpr std::array elementTable = {
    ElementInfo{ElementType::I1, 1, "i1"},
    ElementInfo{ElementType::I8, 1, "i8"},
    ElementInfo{ElementType::I16, 2, "i16"},
    ElementInfo{ElementType::I32, 4, "i32"},
    ElementInfo{ElementType::I64, 8, "i64"},
    ElementInfo{ElementType::Index, 8, "index"},
    ElementInfo{ElementType::F8E4M3FN, 1, "f8E4M3FN"},
    ElementInfo{ElementType::F8E5M2, 1, "f8E5M2"},
    ElementInfo{ElementType::F16, 2, "f16"},
    ElementInfo{ElementType::BF16, 2, "bf16"},
    ElementInfo{ElementType::F32, 4, "f32"},
    ElementInfo{ElementType::F64, 8, "f64"},
};
} // namespace

uint32_t sizeBytes(ElementType type) {
  return elementTable[size_t(type)].bytes;
}

std::string_view toString(ElementType type) {
  return elementTable[size_t(type)].name;
}

std::optional<ElementType> parseElementType(std::string_view text) {
  for (const ElementInfo &info : elementTable)
    if (info.name == text)
      return info.type;
  return std::nullopt;
}

std::string_view toString(ReductionKind kind) {
  constexpr std::string_view names[] = {"sum", "prod", "min", "max"};
  return names[size_t(kind)];
}

std::string_view toString(CollectiveKind kind) {
  constexpr std::string_view names[] = {
      "all_reduce", "all_gather", "reduce_scatter", "all_to_all",
      "permute",    "broadcast",  "send_recv"};
  return names[size_t(kind)];
}

int64_t Box::numElements() const {
  int64_t count = 1;
  for (int64_t size : sizes) {
    MGPU_ASSERT(size >= 0, "a box has no negative sizes once it is checked");
    count *= size;
  }
  return count;
}

std::pair<int64_t, int64_t> Box::byteRange() const {
  MGPU_ASSERT(sizes.size() == strides.size(),
              "a box has one stride for each size");
  int64_t low = offset, high = offset + elementBytes;
  for (size_t k = 0; k < sizes.size(); ++k) {
    if (sizes[k] == 0)
      return {offset, offset};
    int64_t reach = (sizes[k] - 1) * strides[k];
    (reach < 0 ? low : high) += reach;
  }
  return {low, high};
}

bool Box::isContiguous() const {
  MGPU_ASSERT(sizes.size() == strides.size(),
              "a box has one stride for each size");
  int64_t expected = elementBytes;
  for (size_t k = sizes.size(); k-- > 0;) {
    if (sizes[k] != 1 && strides[k] != expected)
      return false;
    expected *= sizes[k];
  }
  return true;
}

Result<void> checkBox(const Box &box) {
  if (box.sizes.size() != box.strides.size())
    return fail(ErrorKind::Invalid,
                fmt::format("a box has {} sizes but {} strides: give one "
                            "stride per size",
                            box.sizes.size(), box.strides.size()));
  if (box.elementBytes == 0)
    return fail(ErrorKind::Invalid,
                "a box has elements of 0 bytes: give the element's width");
  // Bytes of the elements and extent of the addresses both stay below 2^62,
  // so that sums of two never overflow.
  constexpr __int128 limit = __int128(1) << 62;
  __int128 bytes = box.elementBytes, low = box.offset, high = low;
  for (size_t k = 0; k < box.sizes.size(); ++k) {
    int64_t size = box.sizes[k];
    if (size < 0)
      return fail(
          ErrorKind::Invalid,
          fmt::format("a box has negative size {} in dimension {}", size, k));
    __int128 reach = size == 0 ? 0 : __int128(size - 1) * box.strides[k];
    (reach < 0 ? low : high) += reach;
    bytes *=
        std::max<int64_t>(size, 1); // an empty box multiplies its sizes too
    if (bytes >= limit || low <= -limit || high >= limit)
      return fail(ErrorKind::Invalid,
                  fmt::format("a box of {} dimensions spans more bytes than "
                              "any memory has (at dimension {})",
                              box.sizes.size(), k));
  }
  return {};
}

namespace {
/// A box as its non-trivial dimensions, strides positive, biggest first; the
/// bytes of an element are one more dimension of stride 1.
struct Lattice {
  int64_t offset;
  std::vector<std::pair<int64_t, int64_t>> dims; // (stride, size)
};

Lattice latticeOf(const Box &box) {
  Lattice lattice{box.offset, {}};
  for (size_t k = 0; k < box.sizes.size(); ++k) {
    if (box.sizes[k] <= 1 || box.strides[k] == 0)
      continue;
    int64_t stride = box.strides[k];
    if (stride < 0) {
      lattice.offset += stride * (box.sizes[k] - 1);
      stride = -stride;
    }
    lattice.dims.push_back({stride, box.sizes[k]});
  }
  std::sort(lattice.dims.begin(), lattice.dims.end(), std::greater<>());
  return lattice;
}

constexpr int searchLimit = 4096;

/// Whether some x in [0,sizes) makes  offset + sum(stride*x)  fall in
/// [low, high]; a depth-first search whose bounds are exact for nested boxes.
/// `budget` counts down; on 0 the answer is unknown (Maybe).
Overlap reaches(const std::vector<std::pair<int64_t, int64_t>> &low,
                size_t depth, int64_t target, int64_t width,
                const std::vector<int64_t> &reachDown,
                const std::vector<int64_t> &reachUp, int &budget) {
  if (--budget < 0)
    return Overlap::Maybe;
  if (depth == low.size())
    return target > -width && target < width ? Overlap::Yes : Overlap::None;
  auto [stride, size] = low[depth];
  // target + stride*x must stay within what later dimensions can cancel.
  int64_t down = reachDown[depth + 1], up = reachUp[depth + 1];
  auto floorDiv = [](int64_t a, int64_t b) {
    return a / b - ((a % b != 0) && ((a < 0) != (b < 0)));
  };
  int64_t step = stride < 0 ? -stride : stride;
  // solve -width - up < target + stride*x < width - down
  int64_t from = -width + 1 - up - target, to = width - 1 - down - target;
  int64_t first, last;
  if (stride > 0) {
    first = -floorDiv(-from, step);
    last = floorDiv(to, step);
  } else {
    first = -floorDiv(to, step);
    last = floorDiv(-from, step);
  }
  first = std::max<int64_t>(first, 0);
  last = std::min(last, size - 1);
  Overlap best = Overlap::None;
  for (int64_t x = first; x <= last; ++x) {
    Overlap found = reaches(low, depth + 1, target + stride * x, width,
                            reachDown, reachUp, budget);
    if (found == Overlap::Yes)
      return found;
    if (found == Overlap::Maybe)
      best = found;
    if (budget < 0)
      return Overlap::Maybe;
  }
  return best;
}
} // namespace

// Two boxes meet when  a.offset + sum(sa*x) - b.offset - sum(sb*y)  lies within
// an element's width of 0 for some x and y: an exact search over the strides,
// largest first, cut where the smaller strides can no longer make up for it.
Overlap overlap(const Box &a, const Box &b) {
  auto rangeA = a.byteRange(), rangeB = b.byteRange();
  if (rangeA.first >= rangeB.second || rangeB.first >= rangeA.second)
    return Overlap::None;
  if (a.isContiguous() && b.isContiguous())
    return Overlap::Yes;
  if (a.elementBytes != b.elementBytes) // widths differ: compare per byte
    return Overlap::Maybe;
  Lattice la = latticeOf(a), lb = latticeOf(b);
  std::vector<std::pair<int64_t, int64_t>> terms = la.dims;
  for (auto [stride, size] : lb.dims)
    terms.push_back({-stride, size});
  std::sort(terms.begin(), terms.end(), [](auto p, auto q) {
    return std::abs(p.first) > std::abs(q.first) ||
           (std::abs(p.first) == std::abs(q.first) && p.first > q.first);
  });
  std::vector<int64_t> down(terms.size() + 1, 0), up(terms.size() + 1, 0);
  for (size_t k = terms.size(); k-- > 0;) {
    int64_t reach = terms[k].first * (terms[k].second - 1);
    down[k] = down[k + 1] + std::min<int64_t>(reach, 0);
    up[k] = up[k + 1] + std::max<int64_t>(reach, 0);
  }
  int budget = searchLimit;
  return reaches(terms, 0, la.offset - lb.offset, a.elementBytes, down, up,
                 budget);
}

} // namespace mgpu
