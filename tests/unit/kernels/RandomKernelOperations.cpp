// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The operations of random kernels but those with bodies.
#include "RandomKernelMaker.h"

namespace mgpu::kernels::random {

void Maker::addArith() {
  static const char *const integers[] = {"addi", "subi",  "muli",  "andi",
                                         "ori",  "xori",  "maxsi", "minui",
                                         "shli", "shrui", "shrsi"},
                           *const floats[] = {"addf", "subf", "mulf"};
  const Kind kind = number();
  if (kind == F32) {
    const int x = pick(F32), y = pick(F32);
    arith(oneOf(floats), x, y);
    return;
  }
  const std::string name = oneOf(integers);
  const int x = pick(kind),
            y = name.starts_with("sh") ? picked(kind, Nobody, 7) : pick(kind);
  arith(name.c_str(), x, y);
}

/// Divisors are positive by themselves or by the condition around.
void Maker::addDivision() {
  static const char *const names[] = {"divsi",     "divui",     "remsi",
                                      "remui",     "ceildivui", "ceildivsi",
                                      "floordivsi"};
  int divisor;
  if (!divisors.empty() && below(3)) {
    divisor = divisors[below(uint32_t(divisors.size()))];
  } else {
    const Kind kind = integer();
    const int few = picked(kind, Nobody, 7), one = constant(kind, 1);
    divisor = arith("ori", few, one);
  }
  const Kind kind = kernel.kinds[divisor];
  const int x = pick(kind);
  add({Op::Arith, {x, divisor}, oneOf(names), kind == Index && below(2)}, kind);
}

void Maker::addBool() {
  if (below(2)) {
    const int x = pick(Bool), y = pick(Bool);
    arith(below(2) ? "andi" : "xori", x, y);
    return;
  }
  const Kind kind = number();
  const int c = pick(Bool), x = pick(kind), y = pick(kind);
  add({Op::Select, {c, x, y}}, kind);
}

void Maker::addCast() {
  if (below(4) == 0) {
    const int x = pick(std::array{I8, I16, I32, I64}[below(4)]);
    add({Op::ToFloat, {x}}, F32);
    return;
  }
  if (below(6) == 0) {
    const int x = pick(F32);
    add({Op::ToBits, {x}}, I32);
    return;
  }
  Kind from = integer(), to = integer();
  if (below(6) == 0)
    from = Bool;
  while (from == to)
    to = integer();
  if (from != Bool && from != Index && below(8) == 0)
    to = Bool;
  const char *name =
      from == Index || to == Index ? (below(2) ? "index_cast" : "index_castui")
      : bitsOf(from) > bitsOf(to)  ? "trunci"
                                   : (below(2) ? "extsi" : "extui");
  const int x = pick(from);
  add({Op::Cast, {x}, name}, to);
}

void Maker::makeArray(int depth) {
  const Kind kind = number();
  const uint32_t size = below(4) ? 1 + below(8) : maxArraySize;
  Array array{kind, size, Array::Private, slots};
  switch (below(5)) {
  case 0:
    if (slots == numSlots)
      break;
    array.place = below(2) ? Array::Rows : Array::Columns;
    ++slots;
    break;
  case 1: // one, for there is little of it and many kernels are one function
    if (depth > 0 || !kernel.arrays.empty() || !meets)
      break;
    array.place = Array::Workgroup;
    array.size = 1 + below(4);
    break;
  default:
    break;
  }
  const int each = pick(kind);
  arrays.push_back(int(kernel.arrays.size()));
  out->push_back({Op::Array, {each}, "left", kernel.arrays.size()});
  kernel.arrays.push_back(array);
}

void Maker::put(Op::Code code, uint64_t array, int at) {
  const int each = pick(kernel.arrays[array].kind);
  out->push_back({code, {at, each}, below(2) ? "left" : "right", array});
}
void Maker::take(Op::Code code, uint64_t array, int at) {
  add({code, {at}, below(2) ? "left" : "right", array},
      kernel.arrays[array].kind);
}

/// Some accesses in a row, for it is their order that goes wrong.
void Maker::addOfArray(int depth) {
  if (kernel.arrays.size() < 6 && below(6) == 0)
    makeArray(depth);
  const uint64_t array = uint64_t(arrays[below(uint32_t(arrays.size()))]);
  auto place = [&] {
    return below(3) ? pick(Index, Who(below(3))) : constant(Index, below(8));
  };
  for (uint32_t k = 0, count = 1 + below(3); k < count; ++k)
    if (const uint32_t which = below(8); which == 0) // side by side
      for (uint32_t at = below(2); at < kernel.arrays[array].size; ++at)
        put(Op::PutAt, array, constant(Index, at));
    else if (which < 4)
      put(Op::Put, array, place());
    else
      take(Op::Take, array, place());
}

void Maker::addOfLanes(Who who) {
  const bool isFull = kernel.block.volume() % 32 == 0;
  switch (below(who == Nobody ? 2 : isFull ? 8 : 7)) {
  case 0:
    add({Op::Lane}, Index);
    return;
  case 1:
    add({Op::Subgroup}, Index);
    return;
  case 2: {
    const Kind kind = word();
    const int x = pick(kind);
    add({Op::FromLane, {x}}, kind);
    return;
  }
  case 3:
  case 4: {
    static const char *const modes[] = {"xor", "idx", "up", "down"};
    const Kind kind = word();
    const uint64_t width = std::array{32, 32, 16, 8}[below(4)];
    const int x = pick(kind);
    const int by =
        below(3)
            ? constant(I32, std::array{0, 1, 2, 3, 4, 7, 8, 16, 31}[below(9)])
            : picked(I32, Nobody, 31);
    addWith({Op::Shuffle, {x, by}, oneOf(modes), width}, {kind, Bool});
    return;
  }
  case 7: { // lanes that are not there have no say
    const Kind kind = word();
    const int x = pick(kind);
    addWith({Op::Rotate, {x}, "", 1 + below(31)}, {kind, Bool});
    return;
  }
  default: {
    static const char *const names[] = {"addi", "addi",  "muli",
                                        "xori", "maxsi", "minui"};
    const Kind kind = std::array{I32, I32, I8, I16, I64}[below(5)];
    const int x = pick(kind);
    add({Op::Reduce, {x}, oneOf(names)}, kind);
  }
  }
}

void Maker::addRandom(int depth, Who who) {
  left -= left > 0;
  switch (below(depth < 3 && left > 0 ? 18 : 13)) {
  case 0:
  case 1:
    return addArith();
  case 2:
    return addDivision();
  case 3:
    return addBool();
  case 4:
    return addCast();
  case 5: {
    const int at = pick(Index);
    add({Op::Load, {at}}, I32);
    return;
  }
  case 6: {
    const int by = pick(I32);
    if (below(2))
      out->push_back({Op::Count, {by}});
    return;
  }
  case 7:
    if (who == OfBlock && meets) {
      const int x = pick(I32), from = pick(Index);
      add({Op::Exchange, {x, from}}, I32);
      return;
    }
    [[fallthrough]];
  case 8:
  case 9:
  case 10:
    return addOfArray(depth);
  case 11:
  case 12:
    if (meets)
      return addOfLanes(who);
    return addOfArray(depth);
  default:
    return addControl(depth, who);
  }
}

} // namespace mgpu::kernels::random
