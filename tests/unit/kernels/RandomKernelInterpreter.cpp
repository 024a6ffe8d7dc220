// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "RandomKernelNumbers.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <tuple>

namespace mgpu::kernels::random {

namespace {

constexpr uint32_t subgroup = 32;

class Interpreter {
public:
  Interpreter(const Kernel &kernel, const std::vector<int32_t> &input,
              uint32_t blockId, int32_t &count)
      : kernel(kernel), input(input), blockId(blockId), count(count),
        threads(uint32_t(kernel.block.volume())),
        values(kernel.kinds.size(), std::vector<uint64_t>(threads)),
        elements(kernel.arrays.size(),
                 std::vector<uint64_t>(threads * maxArraySize)) {}

  using Mask = std::vector<bool>;
  void run(const std::vector<Op> &ops, const Mask &mask);
  int32_t result(uint32_t thread) const {
    return int32_t(values[kernel.result()][thread]);
  }

private:
  uint64_t compute(const Op &op, uint32_t thread) const;
  std::pair<uint64_t, bool> handed(const Op &op, uint32_t thread) const;
  uint64_t &element(const Op &op, uint64_t at, uint32_t thread) {
    const uint64_t index = at % kernel.arrays[op.bits].size;
    return elements[op.bits][index * threads + thread];
  }
  /// At once: values may change places.
  void assign(const std::vector<int> &to, size_t skipped,
              const std::vector<int> &from, const Mask &mask);
  void runIf(const Op &op, const Mask &mask);
  void runFor(const Op &op, const Mask &mask);
  void runWhile(const Op &op, const Mask &mask);
  template <typename Do>
  void each(const Mask &mask, Do action) {
    for (uint32_t t = 0; t < threads; ++t)
      if (mask[t])
        action(t);
  }

  const Kernel &kernel;
  const std::vector<int32_t> &input;
  uint32_t blockId;
  int32_t &count;
  uint32_t threads;
  std::vector<std::vector<uint64_t>> values, elements;
};

/// What a lane gets from another, and whether that is there.
std::pair<uint64_t, bool> Interpreter::handed(const Op &op,
                                              uint32_t thread) const {
  const std::vector<uint64_t> &given = values[op.operands[0]];
  const uint32_t lane = thread % subgroup;
  if (op.code == Op::Rotate)
    return {given[thread - lane + (lane + op.bits) % subgroup], true};
  const int32_t by = int32_t(values[op.operands[1]][thread]);
  const int32_t from = op.name == "xor"   ? int32_t(lane) ^ by
                       : op.name == "idx" ? by
                       : op.name == "up"  ? int32_t(lane) - by
                                          : int32_t(lane) + by;
  const bool isThere = from >= 0 && uint32_t(from) < op.bits &&
                       lane < op.bits && thread - lane + from < threads;
  return {given[isThere ? thread - lane + from : thread], isThere};
}

uint64_t Interpreter::compute(const Op &op, uint32_t thread) const {
  auto operand = [&](int k) { return values[op.operands[k]][thread]; };
  const Kind kind = kernel.kinds[op.results[0]];
  const uint32_t first = thread / subgroup * subgroup;
  switch (op.code) {
  case Op::Constant:
    return op.bits;
  case Op::Thread:
    return op.bits == 0   ? thread % kernel.block.x
           : op.bits == 1 ? thread / kernel.block.x % kernel.block.y
                          : thread / kernel.block.x / kernel.block.y;
  case Op::BlockX:
    return blockId;
  case Op::Arith:
    return arithOf(op.name, kind, operand(0), operand(1));
  case Op::Compare:
    return holds(op.name, operand(0), operand(1));
  case Op::Select:
    return operand(0) ? operand(1) : operand(2);
  case Op::ToFloat:
    return std::bit_cast<uint32_t>(float(int64_t(operand(0))));
  case Op::ToBits:
    return std::isnan(std::bit_cast<float>(uint32_t(operand(0)))) ? 0
                                                                  : operand(0);
  case Op::Cast:
    return castOf(op.name, kernel.kinds[op.operands[0]], operand(0));
  case Op::Load:
    return uint64_t(int64_t(input[operand(0) % input.size()]));
  case Op::Exchange:
    return values[op.operands[0]][operand(1) % threads];
  case Op::Lane:
    return thread % subgroup;
  case Op::Subgroup:
    return thread / subgroup;
  case Op::FromLane:
    return values[op.operands[0]][first];
  case Op::Reduce: {
    uint64_t all = values[op.operands[0]][first];
    for (uint32_t t = first + 1; t < std::min(first + subgroup, threads); ++t)
      all = kept(kind, arithOf(op.name, kind, all, values[op.operands[0]][t]));
    return all;
  }
  default:
    return 0;
  }
}

void Interpreter::assign(const std::vector<int> &to, size_t skipped,
                         const std::vector<int> &from, const Mask &mask) {
  std::vector<std::vector<uint64_t>> given;
  for (int value : from)
    given.push_back(values[value]);
  for (size_t k = 0; k < from.size(); ++k)
    each(mask, [&](uint32_t t) { values[to[skipped + k]][t] = given[k][t]; });
}

void Interpreter::runIf(const Op &op, const Mask &mask) {
  const std::vector<uint64_t> condition = values[op.operands[0]];
  for (size_t side = 0; side < op.bodies.size(); ++side) {
    Mask inside = mask;
    each(mask, [&](uint32_t t) { inside[t] = (condition[t] != 0) != side; });
    run(op.bodies[side].ops, inside);
    assign(op.results, 0, op.bodies[side].yields, inside);
  }
}

void Interpreter::runFor(const Op &op, const Mask &mask) {
  const Body &body = op.bodies[0];
  std::vector<uint64_t> at = values[op.operands[0]],
                        end = values[op.operands[1]];
  assign(body.arguments, 1, {op.operands.begin() + 2, op.operands.end()}, mask);
  for (Mask inside = mask;;) {
    each(mask, [&](uint32_t t) {
      inside[t] = int64_t(at[t]) < int64_t(end[t]);
      values[body.arguments[0]][t] = at[t];
      at[t] += op.bits;
    });
    if (std::find(inside.begin(), inside.end(), true) == inside.end())
      break;
    run(body.ops, inside);
    assign(body.arguments, 1, body.yields, inside);
  }
  assign(op.results, 0, {body.arguments.begin() + 1, body.arguments.end()},
         mask);
}

void Interpreter::runWhile(const Op &op, const Mask &mask) {
  const Body &before = op.bodies[0], &after = op.bodies[1];
  const std::vector<uint64_t> end = values[op.operands[0]];
  assign(before.arguments, 1, {op.operands.begin() + 1, op.operands.end()},
         mask);
  Mask inside = mask;
  for (uint64_t trip = 0;
       std::find(inside.begin(), inside.end(), true) != inside.end(); ++trip) {
    each(inside, [&](uint32_t t) { values[before.arguments[0]][t] = trip; });
    run(before.ops, inside);
    each(inside, [&](uint32_t t) { values[op.results[0]][t] = trip; });
    assign(op.results, 1, before.yields, inside);
    each(inside, [&](uint32_t t) {
      inside[t] = trip < end[t];
      values[after.arguments[0]][t] = trip;
    });
    assign(after.arguments, 1, before.yields, inside);
    run(after.ops, inside);
    assign(before.arguments, 1, after.yields, inside);
  }
}

void Interpreter::run(const std::vector<Op> &ops, const Mask &mask) {
  auto operand = [&](const Op &op, int k, uint32_t t) {
    return values[op.operands[k]][t];
  };
  for (const Op &op : ops)
    switch (op.code) {
    case Op::Count:
      each(mask, [&](uint32_t t) {
        count = int32_t(uint32_t(count) + uint32_t(operand(op, 0, t)));
      });
      break;
    case Op::Array:
      for (uint32_t k = 0; k < kernel.arrays[op.bits].size; ++k)
        each(mask, [&](uint32_t t) { element(op, k, t) = operand(op, 0, t); });
      break;
    case Op::Put:
    case Op::PutAt:
      each(mask, [&](uint32_t t) {
        element(op, operand(op, 0, t), t) = operand(op, 1, t);
      });
      break;
    case Op::Take:
    case Op::TakeAt:
      each(mask, [&](uint32_t t) {
        values[op.results[0]][t] = element(op, operand(op, 0, t), t);
      });
      break;
    case Op::Shuffle:
    case Op::Rotate:
      each(mask, [&](uint32_t t) {
        std::tie(values[op.results[0]][t], values[op.results[1]][t]) =
            handed(op, t);
      });
      break;
    case Op::If:
      runIf(op, mask);
      break;
    case Op::For:
      runFor(op, mask);
      break;
    case Op::While:
      runWhile(op, mask);
      break;
    default:
      each(mask, [&](uint32_t t) {
        values[op.results[0]][t] =
            kept(kernel.kinds[op.results[0]], compute(op, t));
      });
    }
}

} // namespace

std::vector<int32_t>
Kernel::interpret(const std::vector<int32_t> &input) const {
  std::vector<int32_t> output;
  int32_t count = 0;
  for (uint32_t id = 0; id < blocks; ++id) {
    Interpreter interpreter(*this, input, id, count);
    interpreter.run(body, Interpreter::Mask(block.volume(), true));
    for (uint32_t t = 0; t < block.volume(); ++t)
      output.push_back(interpreter.result(t));
  }
  output.push_back(count);
  return output;
}

} // namespace mgpu::kernels::random
