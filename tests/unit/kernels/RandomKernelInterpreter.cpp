// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "RandomKernel.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace mgpu::kernels::random {

namespace {

class Interpreter {
public:
  Interpreter(const Kernel &kernel, const std::vector<int32_t> &input,
              uint32_t blockId)
      : kernel(kernel), input(input), blockId(blockId),
        threads(uint32_t(kernel.block.volume())),
        values(kernel.kinds.size(), std::vector<uint64_t>(threads)) {}

  using Mask = std::vector<bool>;
  void run(const std::vector<Op> &body, const Mask &mask);
  int32_t result(uint32_t thread) const {
    return int32_t(values[kernel.body.back().result][thread]);
  }

private:
  uint64_t compute(const Op &op, uint32_t thread) const;
  static uint64_t arith(const std::string &name, Kind kind, uint64_t x,
                        uint64_t y);

  const Kernel &kernel;
  const std::vector<int32_t> &input;
  uint32_t blockId, threads;
  std::vector<std::vector<uint64_t>> values; ///< integers sign-extended
};

/// The bits of a value of `kind` as they are kept.
uint64_t kept(Kind kind, uint64_t bits) {
  return kind == I32    ? uint64_t(int64_t(int32_t(bits)))
         : kind == F32  ? uint32_t(bits)
         : kind == Bool ? bits & 1
                        : bits;
}

uint64_t Interpreter::arith(const std::string &name, Kind kind, uint64_t x,
                            uint64_t y) {
  if (kind == F32) {
    float a = std::bit_cast<float>(uint32_t(x)),
          b = std::bit_cast<float>(uint32_t(y));
    volatile float result = name == "addf"   ? a + b
                            : name == "subf" ? a - b
                                             : a * b;
    return std::bit_cast<uint32_t>(float(result));
  }
  if (name == "addi")
    return x + y;
  if (name == "subi")
    return x - y;
  if (name == "muli")
    return x * y;
  if (name == "andi")
    return x & y;
  if (name == "ori")
    return x | y;
  if (name == "xori")
    return x ^ y;
  if (name == "maxsi")
    return uint64_t(std::max(int64_t(x), int64_t(y)));
  return std::min(x, y); // minui: sign extension keeps the unsigned order
}

bool holds(const std::string &predicate, uint64_t x, uint64_t y) {
  int64_t a = int64_t(x), b = int64_t(y);
  return predicate == "slt"   ? a < b
         : predicate == "sle" ? a <= b
         : predicate == "sgt" ? a > b
         : predicate == "uge" ? x >= y
         : predicate == "ult" ? x < y
         : predicate == "ugt" ? x > y
         : predicate == "eq"  ? x == y
                              : x != y;
}

uint64_t Interpreter::compute(const Op &op, uint32_t thread) const {
  auto operand = [&](int k) { return values[op.operands[k]][thread]; };
  Kind kind = kernel.kinds[op.result];
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
    return arith(op.name, kind, operand(0), operand(1));
  case Op::Compare:
    return holds(op.name, operand(0), operand(1));
  case Op::Select:
    return operand(0) ? operand(1) : operand(2);
  case Op::ToFloat:
    return std::bit_cast<uint32_t>(float(int32_t(operand(0))));
  case Op::ToBits:
    return std::isnan(std::bit_cast<float>(uint32_t(operand(0)))) ? 0
                                                                  : operand(0);
  case Op::Cast:
    return operand(0);
  case Op::Load:
    return uint64_t(int64_t(input[operand(0) % input.size()]));
  case Op::Exchange:
    return values[op.operands[0]][operand(1) % threads];
  case Op::Lane:
    return thread % 32;
  case Op::Subgroup:
    return thread / 32;
  case Op::FromLane:
    return values[op.operands[0]][thread / 32 * 32];
  case Op::Swap: {
    const uint32_t from = thread ^ uint32_t(op.bits);
    return values[op.operands[0]][from < threads ? from : thread];
  }
  case Op::Sum: {
    uint64_t sum = 0;
    for (uint32_t t = thread / 32 * 32;
         t < std::min(thread / 32 * 32 + 32, threads); ++t)
      sum += values[op.operands[0]][t];
    return sum;
  }
  case Op::If:
  case Op::For:
  case Op::While:
    break;
  }
  return 0;
}

void Interpreter::run(const std::vector<Op> &body, const Mask &mask) {
  for (const Op &op : body) {
    Kind kind = kernel.kinds[op.result];
    auto assign = [&](int to, int from, const Mask &where) {
      for (uint32_t t = 0; t < threads; ++t)
        if (where[t])
          values[to][t] = values[from][t];
    };
    if (op.code == Op::If) {
      for (int side = 0; side < 2; ++side) {
        Mask inside = mask;
        for (uint32_t t = 0; t < threads; ++t)
          inside[t] =
              mask[t] && (values[op.operands[0]][t] != 0) == (side == 0);
        run(op.bodies[side], inside);
        assign(op.result, op.yields[side], inside);
      }
      continue;
    }
    if (op.code == Op::For || op.code == Op::While) {
      uint64_t modulus = op.code == Op::For ? 4 : 8;
      assign(op.arguments[1], op.operands[1], mask);
      std::vector<uint64_t> trips = values[op.operands[0]];
      for (uint64_t trip = 0; trip < modulus; ++trip) {
        Mask inside = mask;
        for (uint32_t t = 0; t < threads; ++t) {
          uint64_t count = trips[t] % modulus;
          inside[t] = mask[t] && trip < count;
          if (inside[t])
            values[op.arguments[0]][t] =
                op.code == Op::For ? trip : count - trip;
        }
        run(op.bodies[0], inside);
        assign(op.arguments[1], op.yields[0], inside);
      }
      assign(op.result, op.arguments[1], mask);
      continue;
    }
    std::vector<uint64_t> results(threads);
    for (uint32_t t = 0; t < threads; ++t)
      results[t] = kept(kind, compute(op, t));
    for (uint32_t t = 0; t < threads; ++t)
      if (mask[t])
        values[op.result][t] = results[t];
  }
}

} // namespace

std::vector<int32_t>
Kernel::interpret(const std::vector<int32_t> &input) const {
  std::vector<int32_t> output;
  for (uint32_t id = 0; id < blocks; ++id) {
    Interpreter interpreter(*this, input, id);
    interpreter.run(body, Interpreter::Mask(block.volume(), true));
    for (uint32_t t = 0; t < block.volume(); ++t)
      output.push_back(interpreter.result(t));
  }
  return output;
}

} // namespace mgpu::kernels::random
