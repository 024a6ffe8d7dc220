// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "RandomKernel.h"

#include <array>
#include <bit>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <random>

namespace mgpu::kernels::random {

namespace {

class Maker {
public:
  explicit Maker(uint64_t seed) : random(seed) {}
  Kernel make();

private:
  uint32_t below(uint32_t limit) { return uint32_t(random() % limit); }
  int value(Kind kind, bool uniform, bool alike) {
    kernel.kinds.push_back(kind);
    kernel.uniform.push_back(uniform);
    kernel.alike.push_back(alike);
    return int(kernel.kinds.size()) - 1;
  }
  /// Who surely goes through a body together.
  enum Who { Nobody, OfSubgroup, OfBlock };
  Who agreeOn(int value) const {
    return kernel.uniform[value] ? OfBlock
           : kernel.alike[value] ? OfSubgroup
                                 : Nobody;
  }
  int pick(Kind kind, Who least = Nobody);
  int add(Op op, Kind kind);
  void addRandom(int depth, Who who);
  void addOfSubgroup(Who who);
  void addControl(int depth, Who who);
  int fillBody(std::vector<Op> &body, Kind kind, int depth, Who who,
               const std::vector<int> &arguments);

  std::mt19937_64 random;
  Kernel kernel;
  std::vector<Op> *out = nullptr;
  std::vector<int> visible;
};

int Maker::add(Op op, Kind kind) {
  Who who = OfBlock;
  for (int operand : op.operands)
    who = std::min(who, agreeOn(operand));
  switch (op.code) {
  case Op::Thread:
  case Op::Exchange:
  case Op::Lane:
  case Op::Swap:
    who = Nobody;
    break;
  case Op::Subgroup:
  case Op::FromLane:
  case Op::Sum:
    who = OfSubgroup;
    break;
  case Op::Load: // never relied upon for a block
    who = std::min(who, OfSubgroup);
    break;
  case Op::If:
  case Op::For:
  case Op::While:
    who = Nobody;
    break;
  default:
    break;
  }
  op.result = value(kind, who == OfBlock, who != Nobody);
  visible.push_back(op.result);
  out->push_back(std::move(op));
  return visible.back();
}

int Maker::pick(Kind kind, Who least) {
  std::vector<int> found;
  for (int value : visible)
    if (kernel.kinds[value] == kind && agreeOn(value) >= least)
      found.push_back(value);
  if (!found.empty() && below(8) != 0)
    return found[below(uint32_t(found.size()))];
  if (kind == Bool) {
    static const char *const predicates[] = {"slt", "sle", "sgt", "uge",
                                             "ult", "eq",  "ne",  "ugt"};
    Kind of = Kind(std::array{I32, I64, Index}[below(3)]);
    int x = pick(of, least), y = pick(of, least);
    return add({Op::Compare, 0, {x, y}, predicates[below(8)]}, Bool);
  }
  uint64_t bits = below(40) - 8ull;
  if (kind == F32)
    bits = std::bit_cast<uint32_t>(float(int(below(64)) - 32) / 4);
  return add({Op::Constant, 0, {}, "", bits}, kind);
}

int Maker::fillBody(std::vector<Op> &body, Kind kind, int depth, Who who,
                    const std::vector<int> &arguments) {
  std::vector<Op> *outer = std::exchange(out, &body);
  size_t before = visible.size();
  visible.insert(visible.end(), arguments.begin(), arguments.end());
  for (uint32_t k = 0, count = 1 + below(5); k < count; ++k)
    addRandom(depth + 1, who);
  int result = pick(kind);
  visible.resize(before);
  out = outer;
  return result;
}

void Maker::addControl(int depth, Who who) {
  Kind kind = Kind(below(4));
  Op op{Op::If, 0, {}, ""};
  if (below(2)) {
    int condition = pick(Bool, Who(below(3)));
    op.operands = {condition};
    Who inside = std::min(who, agreeOn(condition));
    op.bodies.resize(2);
    for (std::vector<Op> &body : op.bodies)
      op.yields.push_back(fillBody(body, kind, depth, inside, {}));
  } else {
    op.code = below(2) ? Op::For : Op::While;
    int trips = pick(Index, Who(below(3))), init = pick(kind);
    op.operands = {trips, init};
    Who inside = std::min(who, agreeOn(trips));
    // A while's count goes through its arguments: taken to differ in a block.
    if (op.code == Op::While)
      inside = std::min(inside, OfSubgroup);
    op.arguments = {value(Index, inside == OfBlock, inside != Nobody),
                    value(kind, false, false)};
    op.bodies.resize(1);
    op.yields = {fillBody(op.bodies[0], kind, depth, inside, op.arguments)};
  }
  add(std::move(op), kind);
}

void Maker::addOfSubgroup(Who who) {
  switch (below(who == Nobody ? 2 : 5)) {
  case 0:
    add({Op::Lane, 0, {}}, Index);
    return;
  case 1:
    add({Op::Subgroup, 0, {}}, Index);
    return;
  case 2:
    add({Op::FromLane, 0, {pick(I32)}}, I32);
    return;
  case 3: {
    int x = pick(I32);
    add({Op::Swap, 0, {x}, "", 1ull << below(5)}, I32);
    return;
  }
  default:
    add({Op::Sum, 0, {pick(I32)}}, I32);
  }
}

void Maker::addRandom(int depth, Who who) {
  static const char *const integer[] = {"addi", "subi", "muli",  "andi",
                                        "ori",  "xori", "maxsi", "minui"};
  static const char *const floating[] = {"addf", "subf", "mulf"};
  Kind kind = Kind(below(4));
  auto binary = [&](Kind kind, const char *name) {
    int x = pick(kind), y = pick(kind);
    add({Op::Arith, 0, {x, y}, name}, kind);
  };
  switch (below(depth < 3 ? 14 : 10)) {
  case 0:
  case 1:
    return binary(kind, kind == F32 ? floating[below(3)] : integer[below(8)]);
  case 2:
    return binary(Bool, below(2) ? "andi" : "xori");
  case 3: {
    int c = pick(Bool), x = pick(kind), y = pick(kind);
    add({Op::Select, 0, {c, x, y}}, kind);
    return;
  }
  case 4:
    add({Op::Load, 0, {pick(Index)}}, I32);
    return;
  case 5:
    if (below(2))
      add({Op::ToFloat, 0, {pick(I32)}}, F32);
    else
      add({Op::ToBits, 0, {pick(F32)}}, I32);
    return;
  case 6: {
    struct {
      Kind from, to;
      const char *name;
    } static const casts[] = {
        {I32, I64, "extsi"},        {I64, I32, "trunci"},
        {I32, Index, "index_cast"}, {Index, I32, "index_cast"},
        {I64, Index, "index_cast"}, {Bool, I32, "extui"}};
    const auto &cast = casts[below(6)];
    add({Op::Cast, 0, {pick(cast.from)}, cast.name}, cast.to);
    return;
  }
  case 7:
    if (who == OfBlock) {
      int x = pick(I32), from = pick(Index);
      add({Op::Exchange, 0, {x, from}}, I32);
    }
    return;
  case 8:
  case 9:
    return addOfSubgroup(who);
  default:
    return addControl(depth, who);
  }
}

Kernel Maker::make() {
  static const Dim3 blocks[] = {{32},      {64}, {17},      {8, 4}, {16, 3},
                                {5, 2, 3}, {1},  {4, 1, 2}, {72},   {24, 4}};
  kernel.block = blocks[below(10)];
  out = &kernel.body;
  for (uint64_t k = 0; k < 3; ++k)
    add({Op::Thread, 0, {}, "", k}, Index);
  add({Op::BlockX, 0, {}}, Index);
  for (uint32_t k = 0, count = 6 + below(10); k < count; ++k)
    addRandom(0, OfBlock);
  // The last operation gathers what the kernel computed.
  int sum = pick(I32);
  for (size_t k = 0, count = visible.size(); k < count; ++k) {
    int v = visible[k];
    Kind kind = kernel.kinds[v];
    if (kind == F32)
      v = add({Op::ToBits, 0, {v}}, I32);
    else if (kind != I32)
      v = add({Op::Cast,
               0,
               {v},
               kind == I64     ? "trunci"
               : kind == Index ? "index_cast"
                               : "extui"},
              I32);
    int three = add({Op::Constant, 0, {}, "", 3}, I32);
    sum = add({Op::Arith, 0, {sum, three}, "muli"}, I32);
    sum = add({Op::Arith, 0, {sum, v}, "xori"}, I32);
  }
  return std::move(kernel);
}

} // namespace

static bool anyExchange(const std::vector<Op> &body) {
  for (const Op &op : body) {
    if (op.code >= Op::Exchange && op.code <= Op::Sum)
      return true;
    for (const std::vector<Op> &inner : op.bodies)
      if (anyExchange(inner))
        return true;
  }
  return false;
}
bool Kernel::exchanges() const { return anyExchange(body); }

Kernel Kernel::make(uint64_t seed) { return Maker(seed).make(); }

std::vector<int32_t> randomInput(const Kernel &kernel, uint64_t seed) {
  std::mt19937 random{uint32_t(seed)};
  std::vector<int32_t> input(kernel.block.volume() * kernel.blocks);
  for (int32_t &value : input)
    value = random() % 3 ? int32_t(random() % 100) - 50 : int32_t(random());
  return input;
}

void inBatches(uint64_t first, uint64_t count, size_t batch,
               const std::function<void(const Batch &)> &test) {
  std::map<std::array<uint32_t, 4>, Batch> waiting;
  for (uint64_t seed = first; seed < first + count; ++seed) {
    Kernel kernel = Kernel::make(seed);
    Dim3 block = kernel.block;
    Batch &same = waiting[{block.x, block.y, block.z, kernel.exchanges()}];
    same.seeds.push_back(seed);
    same.kernels.push_back(std::move(kernel));
    if (same.seeds.size() == batch)
      test(std::exchange(same, {}));
  }
  for (const auto &[block, rest] : waiting)
    if (!rest.seeds.empty())
      test(rest);
}

std::pair<uint64_t, uint64_t> seedRange(uint64_t first, uint64_t count) {
  if (const char *asked = std::getenv("MGPU_KERNEL_SEEDS"))
    std::sscanf(asked, "%lu:%lu", &first, &count);
  return {first, count};
}

} // namespace mgpu::kernels::random
