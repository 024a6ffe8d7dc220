// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tuner/candidate/ProgramData.h"

#include "support/Array.h"
#include "support/Random.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fmt/format.h>

namespace mgpu::tuner {

namespace {

struct FloatFormat {
  int precision, leastExponent; ///< normal numbers have them
};

FloatFormat formatOf(ElementType type) {
  switch (type) {
  case ElementType::F8E4M3FN:
    return {4, -6};
  case ElementType::F8E5M2:
    return {3, -14};
  case ElementType::F16:
    return {11, -14};
  case ElementType::BF16:
    return {8, -126};
  case ElementType::F64:
    return {53, -1022};
  default:
    return {24, -126};
  }
}

} // namespace

bool isFloat(ElementType type) {
  switch (type) {
  case ElementType::F8E4M3FN:
  case ElementType::F8E5M2:
  case ElementType::F16:
  case ElementType::BF16:
  case ElementType::F32:
  case ElementType::F64:
    return true;
  default:
    return false;
  }
}

double ulpOf(ElementType type, double value) {
  const FloatFormat format = formatOf(type);
  int exponent = format.leastExponent;
  if (value != 0 && std::isfinite(value))
    exponent = std::max(exponent, std::ilogb(value));
  return std::ldexp(1, exponent - format.precision + 1);
}

void appendTolerances(ElementType type, std::span<const std::byte> exact,
                      std::span<const std::span<const std::byte>> trials,
                      std::span<const std::byte> reference, Tolerances &into) {
  auto arrayOf = [&](std::span<const std::byte> bytes) {
    return Array{type, {}, {bytes.begin(), bytes.end()}};
  };
  const Array middle = arrayOf(exact), known = arrayOf(reference);
  std::vector<Array> moved;
  for (std::span<const std::byte> trial : trials)
    moved.push_back(arrayOf(trial));
  const int64_t count = int64_t(exact.size() / sizeBytes(type));
  for (int64_t k = 0; k < count; ++k) {
    const double value = loadNumber(middle, k);
    double bound = 0;
    for (const Array &trial : moved) {
      const double off = std::abs(loadNumber(trial, k) - value);
      if (!(off <= bound) && !std::isnan(bound))
        bound = off; // NaN, too
    }
    if (bound > 0)
      bound += ulpOf(type, value);
    if (!std::isfinite(value) || !std::isfinite(bound) ||
        !(std::abs(loadNumber(known, k) - value) <= bound))
      bound = 0;
    into.exact.push_back(value);
    into.bound.push_back(bound);
  }
}

using namespace planner;

ProgramData::ProgramData(const Dag &dag, std::vector<ProgramInput> given)
    : dag(dag), inputs(std::move(given)) {
  std::vector<bool> writes(dag.buffers.size());
  for (const DagNode &node : dag.nodes)
    for (const BufferUse &use : node.uses)
      if (use.writes)
        writes[use.buffer.value] = true;
  for (uint32_t k = 0; k < dag.buffers.size(); ++k) {
    const Buffer &buffer = dag.buffers[k];
    if (isInArena(buffer) || buffer.role == BufferRole::Constant)
      continue;
    if (writes[k] && (buffer.role == BufferRole::Argument ||
                      buffer.role == BufferRole::Result)) {
      written.push_back({k});
      numOutputBytes += buffer.sizeBytes;
    }
    if (std::none_of(
            inputs.begin(), inputs.end(),
            [&](const ProgramInput &input) { return input.buffer.value == k; }))
      unbound.push_back({k});
  }
}

void ProgramData::bind(capture::Replayer &replayer, uint64_t seed) const {
  bind(
      [&](BufferId id, std::span<const std::byte> bytes) {
        return replayer.write(dag, id, bytes);
      },
      seed);
}

void ProgramData::bind(const Write &writeTo, uint64_t seed) const {
  // A target that is lost by it says so when the program is loaded.
  auto write = [&](BufferId id, std::vector<std::byte> bytes) {
    bytes.resize(dag.buffer(id).sizeBytes);
    (void)writeTo(id, bytes);
  };
  for (BufferId id : unbound)
    write(id,
          std::vector<std::byte>(dag.buffer(id).sizeBytes, std::byte(0xff)));
  for (const ProgramInput &input : inputs) {
    std::vector<std::byte> bytes = input.bytes;
    if (seed != 0 && isFloat(input.elementType)) {
      Random random(seed * 0x9e3779b97f4a7c15 + input.buffer.value);
      const size_t width = sizeBytes(input.elementType);
      for (size_t k = bytes.size() / width; k > 1; --k) {
        std::byte *last = &bytes[(k - 1) * width];
        std::byte *other = &bytes[random.below(k) * width];
        if (other != last)
          std::swap_ranges(last, last + width, other);
      }
    }
    write(input.buffer, std::move(bytes));
  }
}

std::vector<std::byte> ProgramData::outputs(capture::Replayer &replayer) const {
  return outputs([&](BufferId id, std::span<std::byte> bytes) {
    return replayer.read(dag, id, bytes);
  });
}

std::vector<std::byte> ProgramData::outputs(const Read &read) const {
  std::vector<std::byte> result(numOutputBytes);
  std::span<std::byte> rest = result;
  for (BufferId id : written) {
    const size_t bytes = dag.buffer(id).sizeBytes;
    (void)read(id, rest.first(bytes));
    rest = rest.subspan(bytes);
  }
  return result;
}

size_t ProgramData::numFloats() const {
  size_t count = 0;
  for (BufferId id : written)
    if (const Buffer &buffer = dag.buffer(id); isFloat(buffer.elementType))
      count += buffer.sizeBytes / sizeBytes(buffer.elementType);
  return count;
}

Tolerances
ProgramData::tolerances(std::span<const std::byte> exact,
                        std::span<const std::vector<std::byte>> trials,
                        std::span<const std::byte> expected) const {
  Tolerances made;
  uint64_t start = 0;
  for (BufferId id : written) {
    const Buffer &buffer = dag.buffer(id);
    auto part = [&](std::span<const std::byte> outputs) {
      return outputs.subspan(start, buffer.sizeBytes);
    };
    if (isFloat(buffer.elementType)) {
      std::vector<std::span<const std::byte>> moved;
      for (const std::vector<std::byte> &trial : trials)
        moved.push_back(part(trial));
      appendTolerances(buffer.elementType, part(exact), moved, part(expected),
                       made);
    }
    start += buffer.sizeBytes;
  }
  return made;
}

Outcome<Agreement> ProgramData::compare(std::span<const std::byte> found,
                                        std::span<const std::byte> expected,
                                        const Tolerances *tolerances) const {
  if (found.size() != numOutputBytes || expected.size() != numOutputBytes)
    return fault(FaultKind::WrongResult,
                 fmt::format("gave {} bytes of outputs where the program has "
                             "{}",
                             found.size(), numOutputBytes));
  Agreement agreement;
  uint64_t start = 0;
  size_t float0 = 0; // number of the buffer's first element among floats
  for (BufferId id : written) {
    const Buffer &buffer = dag.buffer(id);
    auto mine = found.subspan(start, buffer.sizeBytes);
    auto theirs = expected.subspan(start, buffer.sizeBytes);
    start += buffer.sizeBytes;
    const size_t width = sizeBytes(buffer.elementType);
    const size_t firstFloat = float0;
    if (isFloat(buffer.elementType))
      float0 += mine.size() / width;
    if (std::memcmp(mine.data(), theirs.data(), mine.size()) == 0)
      continue;
    auto number = [&](std::span<const std::byte> bytes, size_t k) {
      auto part = bytes.subspan(k * width, width);
      return loadNumber(
          Array{buffer.elementType, {}, {part.begin(), part.end()}}, 0);
    };
    /// Over what it may be: at most 1 where it is within.
    auto distance = [&](size_t k) -> double {
      if (!tolerances || !isFloat(buffer.elementType) ||
          !(tolerances->bound[firstFloat + k] > 0))
        return INFINITY;
      return std::abs(number(mine, k) - tolerances->exact[firstFloat + k]) /
             tolerances->bound[firstFloat + k];
    };
    size_t numWrong = 0, first = 0;
    for (size_t k = 0; (k + 1) * width <= mine.size(); ++k) {
      if (std::memcmp(&mine[k * width], &theirs[k * width], width) == 0)
        continue;
      if (isFloat(buffer.elementType) && std::isnan(number(mine, k)) &&
          std::isnan(number(theirs, k)))
        continue;
      const double share = distance(k);
      if (share <= 1) { // other bits than the reference's, so more than none
        agreement.add({std::max(share, 1e-6)});
        continue;
      }
      if (numWrong++ == 0)
        first = k;
    }
    if (numWrong == 0)
      continue;
    std::string far;
    if (const double share = distance(first); std::isfinite(share))
      far = fmt::format(", {:.3g} times as far from {} in f64 as rounding "
                        "explains",
                        share, tolerances->exact[firstFloat + first]);
    return fault(
        FaultKind::WrongResult,
        fmt::format("gives {} for element {} of '{}' where the reference "
                    "gives {}{} ({} of {} elements differ)",
                    number(mine, first), first, buffer.name,
                    number(theirs, first), far, numWrong, mine.size() / width));
  }
  return agreement;
}

} // namespace mgpu::tuner
