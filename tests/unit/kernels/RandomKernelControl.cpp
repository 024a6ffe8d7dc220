// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The control of random kernels.
#include "RandomKernelMaker.h"

namespace mgpu::kernels::random {

std::vector<Kind> Maker::someKinds() {
  std::vector<Kind> kinds(below(3));
  for (Kind &kind : kinds)
    kind = number();
  if (below(3))
    kinds.insert(kinds.begin(), I32);
  return kinds;
}

void Maker::fill(Body &body, const std::vector<Kind> &yields, int depth,
                 Who who, const First &first) {
  std::vector<Op> *outer = std::exchange(out, &body.ops);
  const size_t values = visible.size(), memories = arrays.size(),
               positives = divisors.size();
  visible.insert(visible.end(), body.arguments.begin(), body.arguments.end());
  if (first)
    first(body);
  if (who == OfSubgroup && meets && below(2))
    addOfLanes(who);
  for (uint32_t k = 0, count = first ? below(3) : 1 + below(4); k < count; ++k)
    addRandom(depth + 1, who);
  // Mostly what a body computes is of use to somebody.
  for (Kind kind : yields)
    body.yields.push_back(kind == I32 && body.yields.empty() ? gather(values)
                                                             : pick(kind));
  visible.resize(values);
  arrays.resize(memories);
  divisors.resize(positives);
  out = outer;
}

void Maker::addControl(int depth, Who who) {
  switch (below(5)) {
  case 0:
    return addFor(depth, who);
  case 1:
    return addSweep(depth, who);
  case 2:
    return addWhile(depth, who);
  default:
    return addIf(depth, who);
  }
}

void Maker::addIf(int depth, Who who) {
  const Who least = Who(below(3));
  int condition, positive = -1;
  if (below(2)) {
    condition = pick(Bool, least);
  } else {
    const Kind kind = below(2) ? Index : integer();
    positive = below(2) ? pick(kind, least) : picked(kind, least, 1 + below(3));
    const int none = constant(kind, 0);
    condition = add({Op::Compare, {positive, none}, "sgt"}, Bool);
  }
  const Who inside = std::min(who, together[condition]);
  const std::vector<Kind> kinds = someKinds();
  Op op{Op::If, {condition}};
  op.bodies.resize(kinds.empty() && below(2) ? 1 : 2);
  const First divide = [&](const Body &) {
    divisors.push_back(positive);
    addDivision();
  };
  for (Body &body : op.bodies)
    fill(body, kinds, depth, inside,
         positive >= 0 && &body == &op.bodies[0] ? divide : First());
  addWith(std::move(op), kinds);
}

void Maker::addLoop(int low, int high, uint64_t step, int depth, Who inside,
                    const First &first) {
  Op op{Op::For, {low, high}, "", step};
  const std::vector<Kind> kinds = someKinds();
  Body body;
  body.arguments = {value(kernel.kinds[low], std::min(inside, together[low]))};
  for (Kind each : kinds) {
    op.operands.push_back(pick(each));
    body.arguments.push_back(value(each, Nobody));
  }
  fill(body, kinds, depth, inside, first);
  op.bodies = {std::move(body)};
  addWith(std::move(op), kinds);
}

void Maker::addFor(int depth, Who who) {
  const Kind kind = integer();
  const Who least = Who(below(3));
  // Bounds may differ though as many trips lie between them.
  const int low = below(2) ? constant(kind, 0) : picked(kind, Nobody, 63);
  const int trips = below(2) ? constant(kind, 1 + below(4))
                             : picked(kind, least, depth == 0 ? 7 : 3);
  const int high = arith("addi", low, trips);
  Who inside = std::min(who, together[trips]);
  if (together[low] != OfBlock)
    inside = std::min(inside, OfSubgroup);
  const uint64_t step = 1 + below(3);
  addLoop(low, high, step, depth, inside);
}

/// Goes over an array by lines with gaps, in a loop or in one of a loop.
void Maker::addSweep(int depth, Who who) {
  const uint64_t array = uint64_t(arrays[below(uint32_t(arrays.size()))]);
  const uint32_t last = kernel.arrays[array].size - 1, far = 1 + below(4),
                 near = 1 + below(3), most = std::min(last, below(4));
  // The greatest place is far * outer + near * inner + most.
  const uint32_t outer = std::min((last - most) / far, below(4)),
                 inner = (last - most - far * outer) / near;
  auto accesses = [&](int line) {
    for (uint32_t k = 0, count = 2 + below(3); k < count; ++k) {
      const int more = constant(Index, below(most + 1)),
                at = arith("addi", line, more);
      if (below(2))
        put(Op::PutAt, array, at);
      else
        take(Op::TakeAt, array, at);
    }
  };
  auto loop = [&](uint32_t end, int at, Who who, const First &first) {
    const int low = constant(Index, 0), high = constant(Index, end + 1);
    addLoop(low, high, 1, at, who, first);
  };
  auto times = [&](int value, uint32_t by) {
    const int factor = constant(Index, by);
    return arith("muli", value, factor);
  };
  loop(outer, depth, who, [&](const Body &rows) {
    const int row = times(rows.arguments[0], far);
    loop(inner, depth + 1, who, [&](const Body &line) {
      const int step = times(line.arguments[0], near);
      accesses(arith("addi", row, step));
    });
    if (below(2))
      accesses(row);
  });
}

void Maker::addWhile(int depth, Who who) {
  const Kind kind = integer();
  const int trips = picked(kind, Who(below(3)), depth == 0 ? 7 : 3);
  // The count goes through arguments: taken to differ in a block.
  const Who inside = std::min({who, together[trips], OfSubgroup});
  const std::vector<Kind> carried = someKinds(), passed = someKinds();
  Op op{Op::While, {trips}};
  op.bodies.resize(2);
  auto argumentsOf = [&](Body &body, const std::vector<Kind> &kinds) {
    body.arguments = {value(kind, inside)};
    for (Kind each : kinds)
      body.arguments.push_back(value(each, Nobody));
  };
  for (Kind each : carried)
    op.operands.push_back(pick(each));
  argumentsOf(op.bodies[0], carried);
  fill(op.bodies[0], passed, depth, inside);
  argumentsOf(op.bodies[1], passed);
  fill(op.bodies[1], carried, depth, inside);
  const int count = value(kind, inside);
  op.results = {count};
  visible.push_back(count);
  addWith(std::move(op), passed);
}

} // namespace mgpu::kernels::random
