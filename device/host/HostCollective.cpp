// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "device/host/HostCollective.h"

#include "device/host/SmallFloat.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fmt/format.h>
#include <new>
#include <type_traits>

namespace mgpu::device {

namespace {

/// Stored form of an i1.
struct Bool {
  uint8_t byte = 0;
};

template <ReductionKind Kind, typename T>
T combineFloat(T a, T b) {
  if constexpr (Kind == ReductionKind::Sum)
    return a + b;
  else if constexpr (Kind == ReductionKind::Prod)
    return a * b;
  else if (a != a)
    return a;
  else if (b != b)
    return b;
  else if (a == b) // the zeros differ only in sign
    return std::signbit(a) == (Kind == ReductionKind::Min) ? a : b;
  else if constexpr (Kind == ReductionKind::Min)
    return a < b ? a : b;
  else
    return a > b ? a : b;
}

template <ReductionKind Kind, typename T>
T combineInteger(T a, T b) {
  // 64-bit unsigned: wraps without overflow, and no promotion to int.
  if constexpr (Kind == ReductionKind::Sum)
    return T(uint64_t(a) + uint64_t(b));
  else if constexpr (Kind == ReductionKind::Prod)
    return T(uint64_t(a) * uint64_t(b));
  else if constexpr (Kind == ReductionKind::Min)
    return a < b ? a : b;
  else
    return a > b ? a : b;
}

template <ReductionKind Kind, typename T>
T combine(T a, T b) {
  if constexpr (std::is_same_v<T, Bool>) {
    bool x = a.byte != 0, y = b.byte != 0;
    bool isOr = Kind == ReductionKind::Sum || Kind == ReductionKind::Max;
    return {uint8_t(isOr ? x || y : x && y)};
  } else if constexpr (std::is_integral_v<T>) {
    return combineInteger<Kind>(a, b);
  } else if constexpr (std::is_floating_point_v<T>) {
    return combineFloat<Kind>(a, b);
  } else {
    return T::fromFloat(combineFloat<Kind>(T::toFloat(a), T::toFloat(b)));
  }
}

template <ReductionKind Kind, typename T>
void reduce(std::byte *accumulator, const std::byte *input, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    T a, b;
    std::memcpy(&a, accumulator + i * sizeof(T), sizeof(T));
    std::memcpy(&b, input + i * sizeof(T), sizeof(T));
    a = combine<Kind>(a, b);
    std::memcpy(accumulator + i * sizeof(T), &a, sizeof(T));
  }
}

template <typename T>
ReduceFunction ofKind(ReductionKind kind) {
  switch (kind) {
  case ReductionKind::Sum:
    return reduce<ReductionKind::Sum, T>;
  case ReductionKind::Prod:
    return reduce<ReductionKind::Prod, T>;
  case ReductionKind::Min:
    return reduce<ReductionKind::Min, T>;
  case ReductionKind::Max:
    break;
  }
  return reduce<ReductionKind::Max, T>;
}

} // namespace

ReduceFunction reduceFunction(ElementType type, ReductionKind kind) {
  switch (type) {
  case ElementType::I1:
    return ofKind<Bool>(kind);
  case ElementType::I8:
    return ofKind<int8_t>(kind);
  case ElementType::I16:
    return ofKind<int16_t>(kind);
  case ElementType::I32:
    return ofKind<int32_t>(kind);
  case ElementType::I64:
  case ElementType::Index:
    return ofKind<int64_t>(kind);
  case ElementType::F8E4M3FN:
    return ofKind<Float8E4M3FN>(kind);
  case ElementType::F8E5M2:
    return ofKind<Float8E5M2>(kind);
  case ElementType::F16:
    return ofKind<Half>(kind);
  case ElementType::BF16:
    return ofKind<BFloat16>(kind);
  case ElementType::F32:
    return ofKind<float>(kind);
  case ElementType::F64:
    break;
  }
  return ofKind<double>(kind);
}

/// Half of a level-one cache holds the accumulator and one input.
static constexpr size_t chunkBytes = 16384;

const std::byte Collective::zeros[8] = {};

static Result<std::vector<StridedCopy>>
copiesOf(const std::vector<BoxMove> &moves) {
  std::vector<StridedCopy> copies;
  for (const BoxMove &move : moves) {
    MGPU_TRY_ASSIGN(StridedCopy copy,
                    StridedCopy::create(move.destination, move.destinationBox,
                                        move.source, move.sourceBox));
    copies.push_back(std::move(copy));
  }
  return copies;
}

Result<std::byte *> Collective::stage(uint64_t bytes) {
  std::unique_ptr<std::byte[]> memory(
      new (std::nothrow) std::byte[std::max<uint64_t>(bytes, 1)]);
  if (!memory)
    return fail(ErrorKind::Absent,
                fmt::format("no memory for the {} bytes that a collective must "
                            "keep while it runs",
                            bytes));
  staging.push_back(std::move(memory));
  return staging.back().get();
}

Result<void> Collective::take(CollectiveSteps steps) {
  MGPU_TRY_ASSIGN(stageIn, copiesOf(steps.stageIn));
  MGPU_TRY_ASSIGN(moves, copiesOf(steps.moves));
  reductions = std::move(steps.reductions);
  if (!reductions.empty())
    accumulator = std::make_unique<std::byte[]>(chunkBytes);
  return {};
}

Result<std::unique_ptr<Collective>>
Collective::create(const CollectiveNodeParams &params) {
  auto out = std::make_unique<Collective>();
  auto stage = [&](uint64_t bytes) { return out->stage(bytes); };
  MGPU_TRY_ASSIGN(CollectiveSteps steps,
                  collectiveSteps(params, {stage, zeros, false}));
  out->elementBytes = sizeBytes(params.elementType);
  out->function = reduceFunction(params.elementType, params.reduction);
  MGPU_TRY(out->take(std::move(steps)));
  return out;
}

Result<std::unique_ptr<Collective>>
Collective::create(std::vector<BoxMove> moves) {
  auto out = std::make_unique<Collective>();
  auto stage = [&](uint64_t bytes) { return out->stage(bytes); };
  MGPU_TRY_ASSIGN(CollectiveSteps steps,
                  stepsOf(std::move(moves), {stage, zeros, false}));
  MGPU_TRY(out->take(std::move(steps)));
  return out;
}

void Collective::reduce(const ElementwiseReduction &reduction) {
  size_t chunk = chunkBytes / elementBytes;
  for (size_t first = 0; first < reduction.count; first += chunk) {
    size_t count = std::min(chunk, reduction.count - first);
    size_t offset = first * elementBytes, bytes = count * elementBytes;
    std::memcpy(accumulator.get(), reduction.inputs[0] + offset, bytes);
    for (size_t r = 1; r < reduction.inputs.size(); ++r)
      function(accumulator.get(), reduction.inputs[r] + offset, count);
    for (std::byte *output : reduction.outputs)
      std::memcpy(output + offset, accumulator.get(), bytes);
  }
}

void Collective::run() {
  for (StridedCopy &copy : stageIn)
    copy.run();
  for (const ElementwiseReduction &reduction : reductions)
    reduce(reduction);
  for (StridedCopy &copy : moves)
    copy.run();
}

} // namespace mgpu::device
