// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "kernels/ptx/MatrixElements.h"
#include "kernels/ptx/Opcodes.h"

// Matrix products of a warp, and matrices from and to shared memory (ISA 9.0,
// sections 9.7.14.5.8 to 9.7.14.5.16). A product's sums are exact to a double's
// precision and rounded once; a GPU's order and rounding are not documented.

namespace mgpu::kernels::ptx {

namespace {

//===----------------------------------------------------------------------===//
// mma
//===----------------------------------------------------------------------===//

/// A product of m x k by k x 8. Lane 4g + t has the rows g and g + 8 of A, the
/// column g of B, and columns 2t and 2t + 1 of C; an element is of so many
/// bits, and each register has as many, one behind the other along k.
struct Product {
  uint32_t m, k;
  Scalar a, b, c, d;
};

/// Waits for lanes that are elsewhere. False: not all have come, or an error.
bool isWhole(Warp &warp, const Instr &i) {
  if (!warp.gather(allLanes, i))
    return false;
  if (warp.mask != allLanes)
    warp.fail("it is of a whole warp, and some of its lanes have ended");
  return warp.mask == allLanes;
}

/// `words[more..]`: a Product's five, and the places of D, A, B and C.
void multiply(Warp &warp, const Instr &i) {
  if (!isWhole(warp, i))
    return;
  const uint32_t *words = &warp.machine.program.words[i.more];
  const Product p{words[0],         words[1],         Scalar(words[2]),
                  Scalar(words[3]), Scalar(words[4]), Scalar(words[5])};
  const uint32_t rows = p.m / 8, eachD = perRegister(p.d),
                 eachA = perRegister(p.a), eachB = perRegister(p.b);
  const uint32_t *toD = words + 6, *ofA = toD + rows * 2 / eachD,
                 *ofB = ofA + rows * p.k / (4 * eachA),
                 *ofC = ofB + p.k / (4 * eachB);
  static thread_local double a[16][64], b[64][8], out[16][8];
  for (uint32_t lane = 0; lane < lanes; ++lane) {
    const uint32_t g = lane / 4, t = lane % 4;
    for (uint32_t at = 0; at < rows * p.k / 4; ++at) {
      const uint32_t r = at / eachA;
      const uint32_t k = r / rows * 4 * eachA + t * eachA + at % eachA;
      a[g + r % rows * 8][k] =
          elementOf(p.a, elementIn(warp, ofA, p.a, lane, at));
    }
    for (uint32_t at = 0; at < p.k / 4; ++at)
      b[at / eachB * 4 * eachB + t * eachB + at % eachB][g] =
          elementOf(p.b, elementIn(warp, ofB, p.b, lane, at));
    for (uint32_t at = 0; at < rows * 2; ++at)
      out[g + at / 2 * 8][t * 2 + at % 2] =
          elementOf(p.c, elementIn(warp, ofC, p.c, lane, at));
  }
  for (uint32_t row = 0; row < p.m; ++row)
    for (uint32_t column = 0; column < 8; ++column) {
      double sum = 0;
      for (uint32_t k = 0; k < p.k; ++k)
        sum += a[row][k] * b[k][column];
      out[row][column] += sum;
    }
  for (uint32_t lane = 0; lane < lanes; ++lane)
    for (uint32_t at = 0; at < rows * 2; at += eachD) {
      uint64_t cell = 0;
      for (uint32_t j = 0; j < eachD; ++j)
        cell |=
            resultOf(p.d,
                     out[lane / 4 + at / 2 * 8][lane % 4 * 2 + (at + j) % 2])
            << (j * bitsOfElement(p.d) % 64);
      const uint32_t place = toD[at / eachD];
      if (p.d == Scalar::F64)
        warp.cells<uint64_t>(place)[lane] = cell;
      else
        warp.cells<uint32_t>(place)[lane] = uint32_t(cell);
    }
}

void decodeMma(Decoder &d) {
  for (std::string_view word :
       {"sync", "aligned", "row", "col", "kind::f8f6f4"})
    d.has(word);
  struct Shape {
    std::string_view name;
    uint32_t m, k;
  };
  constexpr Shape shapes[] = {{"m8n8k4", 8, 4},     {"m8n8k16", 8, 16},
                              {"m16n8k4", 16, 4},   {"m16n8k8", 16, 8},
                              {"m16n8k16", 16, 16}, {"m16n8k32", 16, 32}};
  Product p{};
  for (const Shape &shape : shapes)
    if (d.has(shape.name))
      p.m = shape.m, p.k = shape.k;
  if (p.m == 0 || !takeTypes(d, {&p.d, &p.a, &p.b, &p.c}))
    return d.refuse("its shape or its types are not executed",
                    ErrorKind::Unsupported);
  const bool isDouble = p.a == Scalar::F64;
  const uint32_t bits = bitsOfElement(p.a);
  const bool isOdd = p.m == 8 && !(isDouble && p.k == 4) && bits != 8;
  auto isResult = [&](Scalar type) {
    return isDouble ? type == Scalar::F64
           : p.a == Scalar::S8 || p.a == Scalar::U8
               ? type == Scalar::S32
               : type == Scalar::F32 || type == Scalar::F16;
  };
  if (isOdd || p.k % (4 * perRegister(p.a)) || bitsOfElement(p.b) != bits ||
      !isResult(p.c) || !isResult(p.d) || p.c != p.d ||
      (bits == 32 && p.a != Scalar::TF32) || p.a == Scalar::B8)
    return d.refuse("its shape or its types are not executed",
                    ErrorKind::Unsupported);
  const uint32_t rows = p.m / 8;
  const uint32_t counts[] = {
      rows * 2 / perRegister(p.d), rows * p.k / (4 * perRegister(p.a)),
      p.k / (4 * perRegister(p.b)), rows * 2 / perRegister(p.c)};
  const Scalar types[] = {p.d, p.a, p.b, p.c};
  std::vector<uint32_t> words = {p.m,           p.k,           uint32_t(p.a),
                                 uint32_t(p.b), uint32_t(p.c), uint32_t(p.d)};
  for (size_t k = 0; k < 4; ++k) {
    const Operand *list = d.operand(k);
    if (!list)
      return;
    const bool isList = list->kind == Operand::Kind::List;
    if ((isList ? list->parts.size() : 1) != counts[k])
      return d.refuse(fmt::format("operand {} has {} registers, and {} are "
                                  "needed",
                                  k + 1, list->parts.size(), counts[k]));
    const Scalar type = types[k] == Scalar::F64   ? Scalar::F64
                        : types[k] == Scalar::F32 ? Scalar::F32
                                                  : Scalar::B32;
    for (uint32_t j = 0; j < counts[k]; ++j) {
      const Operand *part = isList ? &list->parts[j] : list;
      words.push_back(k == 0 ? d.targetOf(part, type) : d.sourceOf(part, type));
    }
  }
  d.instr.more = d.words(words);
  d.emit(multiply);
}

//===----------------------------------------------------------------------===//
// Matrices of 8 x 8 elements of 16 bits
//===----------------------------------------------------------------------===//

/// Lane 8k + r has the address of row r of matrix k. `words[more..]`: a
/// register for each matrix; `flags`: 1 transposed, 2 a store.
void moveMatrices(Warp &warp, const Instr &i) {
  if (!isWhole(warp, i))
    return;
  const uint32_t *places = &warp.machine.program.words[i.more];
  const bool isStore = i.flags & 2, isTransposed = i.flags & 1;
  uint64_t addresses[lanes];
  std::byte *at[lanes];
  uint16_t rows[lanes][8] = {};
  warp.addresses(i, addresses);
  for (uint32_t lane = 0; isStore && lane < i.count * 8u; ++lane)
    for (uint32_t column = 0; column < 8; ++column) {
      const uint32_t r = isTransposed ? column : lane % 8;
      const uint32_t c = isTransposed ? lane % 8 : column;
      rows[lane][column] =
          uint16_t(warp.cells<uint32_t>(places[lane / 8])[r * 4 + c / 2] >>
                   (c % 2 * 16));
    }
  // The other lanes' addresses are not read.
  warp.mask = i.count == 4 ? allLanes : (1u << (i.count * 8)) - 1;
  const bool isReached =
      warp.reach(i, addresses, 16, isStore ? Touch::Write : Touch::Read, at,
                 isStore ? reinterpret_cast<const std::byte *>(rows) : nullptr);
  for (uint32_t lane = 0; isReached && lane < i.count * 8u; ++lane)
    if (isStore)
      std::memcpy(at[lane], rows[lane], 16);
    else
      std::memcpy(rows[lane], at[lane], 16);
  warp.mask = allLanes;
  for (uint32_t k = 0; isReached && !isStore && k < i.count; ++k)
    for (uint32_t lane = 0; lane < lanes; ++lane) {
      const uint32_t g = lane / 4, t = lane % 4 * 2;
      const uint32_t low =
          isTransposed ? rows[k * 8 + t][g] : rows[k * 8 + g][t];
      const uint32_t high =
          isTransposed ? rows[k * 8 + t + 1][g] : rows[k * 8 + g][t + 1];
      warp.cells<uint32_t>(places[k])[lane] = low | high << 16;
    }
}

void decodeMatrices(Decoder &d, bool isStore) {
  for (std::string_view word : {"sync", "aligned", "m8n8"})
    d.has(word);
  const uint32_t count = d.has("x4") ? 4 : d.has("x2") ? 2 : 1;
  if (count == 1)
    d.has("x1");
  const bool isTransposed = d.has("trans");
  const Space space = d.space();
  if (d.type() != Scalar::B16)
    return d.refuse("its elements must be b16", ErrorKind::Unsupported);
  d.address(isStore ? 0 : 1, space);
  const Operand *list = d.operand(isStore ? 1 : 0);
  if (!list)
    return;
  const bool isList = list->kind == Operand::Kind::List;
  if ((isList ? list->parts.size() : 1) != count)
    return d.refuse("it has another number of registers than of matrices");
  std::vector<uint32_t> places;
  for (uint32_t k = 0; k < count; ++k) {
    const Operand *part = isList ? &list->parts[k] : list;
    places.push_back(isStore ? d.sourceOf(part, Scalar::B32)
                             : d.targetOf(part, Scalar::B32));
  }
  d.instr.more = d.words(places);
  d.instr.count = uint8_t(count);
  d.instr.flags |= (isTransposed ? 1 : 0) | (isStore ? 2 : 0);
  d.emit(moveMatrices);
}

/// A matrix in registers to its transposed one.
void transpose(Warp &warp, const Instr &i) {
  if (!isWhole(warp, i))
    return;
  const auto *a = warp.cells<uint32_t>(i.a);
  uint32_t out[lanes];
  auto element = [&](uint32_t row, uint32_t column) {
    return a[row * 4 + column / 2] >> (column % 2 * 16) & 0xffff;
  };
  for (uint32_t lane = 0; lane < lanes; ++lane) {
    const uint32_t g = lane / 4, t = lane % 4 * 2;
    out[lane] = element(t, g) | element(t + 1, g) << 16;
  }
  keep(warp, i.d, out);
}

} // namespace

std::span<const Operation> matrixOperations() {
  static const Operation rows[] = {
      {"mma", "9.7.14.5.14", decodeMma},
      {"ldmatrix", "9.7.14.5.15", [](Decoder &d) { decodeMatrices(d, false); }},
      {"stmatrix", "9.7.14.5.16", [](Decoder &d) { decodeMatrices(d, true); }},
      {"movmatrix", "9.7.14.5.17", [](Decoder &d) {
         for (std::string_view word : {"sync", "aligned", "m8n8", "trans"})
           d.has(word);
         d.type();
         d.instr.d = d.target(0, Scalar::B32);
         d.instr.a = d.source(1, Scalar::B32);
         d.emit(transpose);
       }}};
  return rows;
}

} // namespace mgpu::kernels::ptx
