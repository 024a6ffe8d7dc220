// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Values of random kernels, and who agrees on them.
#include "RandomKernelMaker.h"

#include <algorithm>
#include <bit>

namespace mgpu::kernels::random {

int Maker::value(Kind kind, Who who) {
  kernel.kinds.push_back(kind);
  together.push_back(who);
  return int(together.size()) - 1;
}

Maker::Who Maker::agreementOf(const Op &op) const {
  Who who = OfBlock;
  for (int operand : op.operands)
    who = std::min(who, together[operand]);
  switch (op.code) {
  case Op::Subgroup:
  case Op::FromLane:
  case Op::Reduce:
    return OfSubgroup;
  case Op::Load: // never relied upon for a block
    return std::min(who, OfSubgroup);
  case Op::Constant:
  case Op::BlockX:
  case Op::Arith:
  case Op::Compare:
  case Op::Select:
  case Op::ToFloat:
  case Op::ToBits:
  case Op::Cast:
    return who;
  default:
    return Nobody;
  }
}

int Maker::add(Op op, Kind kind) {
  const int result = value(kind, agreementOf(op));
  op.results = {result};
  visible.push_back(result);
  out->push_back(std::move(op));
  return result;
}

/// Results nobody agrees on.
void Maker::addWith(Op op, const std::vector<Kind> &kinds) {
  for (Kind kind : kinds)
    op.results.push_back(value(kind, Nobody));
  visible.insert(visible.end(), op.results.begin(), op.results.end());
  out->push_back(std::move(op));
}

int Maker::constant(Kind kind, uint64_t bits) {
  return add({Op::Constant, {}, "", kept(kind, bits)}, kind);
}

int Maker::arith(const char *name, int x, int y) {
  return add({Op::Arith, {x, y}, name}, kernel.kinds[x]);
}

int Maker::pick(Kind kind, Who least) {
  std::vector<int> found;
  for (int value : visible)
    if (kernel.kinds[value] == kind && together[value] >= least)
      found.push_back(value);
  if (least == OfSubgroup) // rather than what the block agrees on
    std::sort(found.begin(), found.end(), [&](int x, int y) {
      return std::pair(together[y], x) < std::pair(together[x], y);
    });
  if (!found.empty() && below(8) != 0) {
    const size_t late = below(3) ? std::min<size_t>(found.size(), 4) : 0;
    return late ? found[found.size() - 1 - below(uint32_t(late))]
                : found[below(uint32_t(found.size()))];
  }
  if (kind == Bool) {
    static const char *const predicates[] = {"slt", "sle", "sgt", "uge",
                                             "ult", "eq",  "ne",  "ugt"};
    const Kind of = integer();
    const int x = pick(of, least), y = pick(of, least);
    return add({Op::Compare, {x, y}, oneOf(predicates)}, Bool);
  }
  if (kind == F32)
    return constant(F32,
                    std::bit_cast<uint32_t>(float(int(below(64)) - 32) / 4));
  return constant(kind, below(6) ? below(40) - 8ull : random() >> below(64));
}

/// At most `mask`.
int Maker::picked(Kind kind, Who least, uint64_t mask) {
  const int x = pick(kind, least), limit = constant(kind, mask);
  return arith("andi", x, limit);
}

/// All values of `visible` from the one at `first` on in an I32.
int Maker::gather(size_t first) {
  int sum = constant(I32, 1);
  const int three = constant(I32, 3);
  for (size_t k = first, count = visible.size() - 2; k < count; ++k) {
    int v = visible[k];
    const Kind kind = kernel.kinds[v];
    if (kind == F32)
      v = add({Op::ToBits, {v}}, I32);
    else if (kind != I32)
      v = add({Op::Cast,
               {v},
               kind == I64     ? "trunci"
               : kind == Index ? "index_cast"
               : kind == Bool  ? "extui"
                               : "extsi"},
              I32);
    sum = arith("xori", arith("muli", sum, three), v);
  }
  return sum;
}

Kernel Maker::make() {
  static const Dim3 blocks[] = {{32},      {64}, {17},      {8, 6}, {16, 3},
                                {5, 4, 3}, {1},  {4, 1, 2}, {100},  {24, 4}};
  kernel.block = blocks[below(10)];
  left = 8 + below(12);
  meets = below(4) != 0;
  out = &kernel.body;
  for (uint64_t axis = 0; axis < 3; ++axis)
    add({Op::Thread, {}, "", axis}, Index);
  add({Op::BlockX}, Index);
  if (meets)
    add({Op::Subgroup}, Index);
  for (uint32_t k = 0, count = 1 + below(3); k < count; ++k)
    makeArray(0);
  for (uint32_t k = 0, count = 5 + below(5); k < count; ++k)
    addRandom(0, OfBlock);
  // The last operation is what the kernel computed.
  for (int array : arrays)
    for (uint32_t k = 0; k < kernel.arrays[array].size; ++k)
      take(Op::TakeAt, uint64_t(array), constant(Index, k));
  gather(0);
  return std::move(kernel);
}

Kernel Kernel::make(uint64_t seed) { return Maker(seed).make(); }

} // namespace mgpu::kernels::random
