// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "kernels/ptx/WarpgroupProducts.h"

#include "kernels/ptx/MatrixElements.h"
#include "kernels/ptx/Opcodes.h"

#include <algorithm>

// Asynchronous products of warpgroups (ISA 9.0, section 9.7.15). Each warp
// computes its 16 rows when it waits for them, or when it asks (by
// LaunchOptions::isEarly or the seed). Sums are those of mma.

namespace mgpu::kernels::ptx {

namespace {

/// The instruction's words: those up to `d`, then the places of D and of A's
/// registers, if it is in such.
struct Shape {
  uint32_t n;
  Scalar a, b, d;
  uint32_t turnsA, turnsB; ///< M or N is the contiguous dimension
  uint32_t negatesA, negatesB;
  uint32_t saturates;
  uint32_t numD, numA;

  static constexpr uint32_t numWords = 11;
  static Shape of(const Warp &warp, const Instr &i) {
    const uint32_t *w = &warp.machine.program.words[i.more];
    return {w[0], Scalar(w[1]), Scalar(w[2]), Scalar(w[3]), w[4], w[5],
            w[6], w[7],         w[8],         w[9],         w[10]};
  }
  uint32_t k() const { return 256 / bitsOfElement(a); }
};
const uint32_t *placesOf(const Warp &warp, const Instr &i) {
  return &warp.machine.program.words[i.more + Shape::numWords];
}

enum RegisterUse : uint8_t { IsTouched = 1, Sums = 2, FactorA = 4 };

uint8_t &useOf(Warp &warp, uint32_t place) {
  return warp.productRegisters[warp.machine.program.productRegisters.at(place)];
}

void markUses(Warp &warp) {
  for (uint8_t &use : warp.productRegisters)
    use &= IsTouched;
  for (const WarpgroupProduct &each : warp.products) {
    const Instr &instr = warp.machine.program.code[each.pc];
    const Shape shape = Shape::of(warp, instr);
    const uint32_t *places = placesOf(warp, instr);
    for (uint32_t k = 0; k < shape.numD + shape.numA; ++k)
      useOf(warp, places[k]) |= k < shape.numD ? Sums : FactorA;
  }
}

//===----------------------------------------------------------------------===//
// Matrices in shared memory (sections 9.7.15.5.1.2 and 5.5.6)
//===----------------------------------------------------------------------===//

/// A matrix descriptor (section 9.7.15.5.1.2.2).
struct Matrix {
  uint32_t start, leading, stride, span;
  bool isPlain; ///< no fields that are not executed

  explicit Matrix(uint64_t bits) {
    auto field = [&](uint32_t first, uint32_t count) {
      return uint32_t(bits >> first & ((uint64_t(1) << count) - 1));
    };
    start = field(0, 14) << 4;
    leading = field(16, 14) << 4;
    stride = field(32, 14) << 4;
    const uint32_t mode = field(62, 2);
    span = mode == 0 ? 16 : 256 >> mode;
    isPlain = field(14, 2) == 0 && field(30, 2) == 0 && field(46, 16) == 0;
  }
  /// A swizzle's pattern is of 8 rows, and begins at a multiple of them.
  bool isAligned() const { return span == 16 || start % (8 * span) < span; }

  /// The 16 bytes of a row (of M or N) along k, or of a step of k along rows.
  uint32_t part(uint32_t row, uint32_t k, bool isTurned, uint32_t bits) const {
    const uint32_t along = (isTurned ? row : k) * bits / 8 / 16;
    const uint32_t across = isTurned ? k : row;
    uint32_t at = start + across % 8 * span;
    if (span == 16)
      at += isTurned ? along * stride + across / 8 * leading
                     : along * leading + across / 8 * stride;
    else
      at += along % (span / 16) * 16 + along / (span / 16) * leading +
            across / 8 * stride;
    return span == 16 ? at : at ^ (at >> 7 & (span / 16 - 1)) << 4;
  }
};

/// Calls `each(offset)` for the parts of rows `first` to `end`.
template <typename Each>
bool eachPart(const Matrix &matrix, uint32_t first, uint32_t end, uint32_t k,
              bool isTurned, uint32_t bits, Each each) {
  const uint32_t perPart = 128 / bits;
  for (uint32_t row = first; row < end; row += isTurned ? perPart : 1)
    for (uint32_t step = 0; step < k; step += isTurned ? 1 : perPart)
      if (!each(matrix.part(row, step, isTurned, bits), row, step))
        return false;
  return true;
}

bool reachMatrices(Warp &warp, const WarpgroupProduct &product,
                   const Shape &shape, bool isOver) {
  const uint32_t firstRow = warp.index % 4 * 16;
  auto reach = [&](uint32_t offset, uint32_t, uint32_t) {
    if (!warp.reachAsync(warp.block, offset, 16, false, 0, product.seen,
                         product.visible))
      return false;
    if (isOver)
      warp.noteAsyncRead(warp.block, offset, 16, 0);
    return true;
  };
  const uint32_t bits = bitsOfElement(shape.a);
  return (shape.numA || eachPart(Matrix(product.a), firstRow, firstRow + 16,
                                 shape.k(), shape.turnsA, bits, reach)) &&
         eachPart(Matrix(product.b), 0, shape.n, shape.k(), shape.turnsB, bits,
                  reach);
}

/// The elements as numbers; `at(row, k)` says where each goes.
template <typename At>
void readMatrix(const Warp &warp, const Matrix &matrix, uint32_t first,
                uint32_t end, uint32_t k, bool isTurned, Scalar type, At at) {
  const uint32_t bits = bitsOfElement(type), count = 128 / bits;
  eachPart(matrix, first, end, k, isTurned, bits,
           [&](uint32_t offset, uint32_t row, uint32_t step) {
             const std::byte *from = warp.block.shared.bytes.data() + offset;
             for (uint32_t e = 0; e < count; ++e) {
               uint32_t value = 0;
               std::memcpy(&value, from + e * bits / 8, bits / 8);
               at(row + (isTurned ? e : 0), step + (isTurned ? 0 : e)) =
                   elementOf(type, value);
             }
             return true;
           });
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

constexpr uint32_t mostColumns = 256, mostSteps = 32;

/// Lane 4g + t has rows g and g + 8 of the warp's, and columns 2t and 2t + 1 of
/// each 8 (section 9.7.15.5.1.1).
struct Fragment8 {
  uint32_t row, column;
  static Fragment8 of(uint32_t lane, uint32_t at) {
    return {lane / 4 + at / 2 % 2 * 8, at / 4 * 8 + lane % 4 * 2 + at % 2};
  }
};

void readA(const Warp &warp, const WarpgroupProduct &product,
           const Shape &shape, double (*a)[mostSteps]) {
  const uint32_t firstRow = warp.index % 4 * 16;
  if (shape.numA == 0)
    return readMatrix(warp, Matrix(product.a), firstRow, firstRow + 16,
                      shape.k(), shape.turnsA, shape.a,
                      [&](uint32_t row, uint32_t k) -> double & {
                        return a[row - firstRow][k];
                      });
  const uint32_t bits = bitsOfElement(shape.a), each = 32 / bits;
  for (uint32_t lane = 0; lane < lanes; ++lane)
    for (uint32_t at = 0; at < 4 * each; ++at) {
      const uint32_t r = at / each;
      const uint32_t cell = product.registers[lane * 4 + r];
      const uint32_t k = (r / 2 * 4 + lane % 4) * each + at % each;
      a[lane / 4 + r % 2 * 8][k] = elementOf(
          shape.a, cell >> (at % each * bits) & (~uint64_t(0) >> (64 - bits)));
    }
}

double sumOf(const Shape &shape, double sum) {
  constexpr double least = -2147483648.0, greatest = 2147483647.0;
  return shape.saturates ? std::clamp(sum, least, greatest) : sum;
}

void multiply(Warp &warp, const WarpgroupProduct &product) {
  const Instr &instr = warp.machine.program.code[product.pc];
  const Shape shape = Shape::of(warp, instr);
  static thread_local double a[16][mostSteps], b[mostSteps][mostColumns],
      out[16][mostColumns];
  readA(warp, product, shape, a);
  readMatrix(
      warp, Matrix(product.b), 0, shape.n, shape.k(), shape.turnsB, shape.b,
      [&](uint32_t column, uint32_t k) -> double & { return b[k][column]; });
  const double sign = shape.negatesA != shape.negatesB ? -1 : 1;
  for (uint32_t row = 0; row < 16; ++row) {
    std::fill_n(out[row], shape.n, 0.0);
    for (uint32_t k = 0; k < shape.k(); ++k) {
      const double factor = sign * a[row][k];
      for (uint32_t column = 0; column < shape.n; ++column)
        out[row][column] += factor * b[k][column];
    }
  }
  const uint32_t *places = placesOf(warp, instr);
  const uint32_t each = perRegister(shape.d), bits = bitsOfElement(shape.d);
  for (uint32_t lane = 0; lane < lanes; ++lane)
    for (uint32_t r = 0; r < shape.numD; ++r) {
      uint32_t &cell = warp.cells<uint32_t>(places[r])[lane];
      uint32_t made = 0;
      for (uint32_t e = 0; e < each; ++e) {
        const auto [row, column] = Fragment8::of(lane, r * each + e);
        const double old =
            product.adds ? elementOf(shape.d, elementIn(warp, places, shape.d,
                                                        lane, r * each + e))
                         : 0;
        made |=
            uint32_t(resultOf(shape.d, sumOf(shape, old + out[row][column])))
            << (e * bits % 32);
      }
      cell = made;
    }
}

/// Waits for lanes that are elsewhere. False: not all have come, or an error.
bool isWhole(Warp &warp, const Instr &i) {
  if (!warp.gather(allLanes, i))
    return false;
  if (warp.mask == allLanes && warp.index / 4 * 4 + 3 < warp.block.warps.size())
    return true;
  warp.fail("it is of a whole warpgroup, four warps whose lanes all execute "
            "it");
  return false;
}

/// The registers are the product's from now on.
bool takeRegisters(Warp &warp, const Instr &i, const Shape &shape) {
  const uint32_t *places = placesOf(warp, i);
  for (uint32_t k = 0; k < shape.numD + shape.numA; ++k) {
    const uint8_t use = useOf(warp, places[k]);
    const bool isOfA = k >= shape.numD;
    if (!warp.hasProductFence || (use & IsTouched)) {
      warp.fail(fmt::format("register {} of {} was touched since the last "
                            "wgmma.fence",
                            isOfA ? k - shape.numD : k, isOfA ? "A" : "D"));
      return false;
    }
    if (isOfA ? use & Sums : use & FactorA) {
      warp.fail("a register of a product is one of another product that goes "
                "on");
      return false;
    }
  }
  // Products of one shape add to the same sums one after the other.
  for (const WarpgroupProduct &each : warp.products) {
    const Instr &other = warp.machine.program.code[each.pc];
    const Shape second = Shape::of(warp, other);
    const uint32_t *theirs = placesOf(warp, other);
    const bool isShared =
        std::find_first_of(places, places + shape.numD, theirs,
                           theirs + second.numD) != places + shape.numD;
    if (isShared && !(shape.numD == second.numD && shape.d == second.d &&
                      std::equal(places, places + shape.numD, theirs))) {
      warp.fail("two products of other shapes have the same sums without a "
                "wait between them");
      return false;
    }
  }
  return true;
}

bool isSameInAll(Warp &warp, const WarpgroupProduct &product, bool hasA) {
  const Instr &i = warp.machine.program.code[product.pc];
  for (uint32_t lane = 1; lane < lanes; ++lane)
    if ((hasA && warp.cells<uint64_t>(i.a)[lane] != product.a) ||
        warp.cells<uint64_t>(i.b)[lane] != product.b) {
      warp.fail("the lanes of a warp have different descriptors", int(lane));
      return false;
    }
  auto &all = warp.block.multiplied[warp.index / 4];
  const std::array<uint64_t, 3> own{product.pc, product.a, product.b};
  if (warp.productCount == all.size())
    all.push_back(own);
  if (all[warp.productCount++] == own)
    return true;
  warp.fail("the warps of a warpgroup do not multiply the same matrices");
  return false;
}

bool isExecuted(Warp &warp, const Matrix &matrix) {
  if (!matrix.isPlain) {
    warp.fail("a descriptor with a base offset, or with bits that mean nothing",
              -1, ErrorKind::Unsupported);
    return false;
  }
  if (!matrix.isAligned()) {
    warp.fail(fmt::format("a matrix begins at {:#x} of shared memory, within "
                          "the pattern of its swizzle of {} bytes",
                          matrix.start, matrix.span));
    return false;
  }
  return true;
}

/// `a`, `b`: the descriptors; `c`: a predicate, whether D is added to, which
/// `flags` negates.
void ask(Warp &warp, const Instr &i) {
  const Shape shape = Shape::of(warp, i);
  WarpgroupProduct product;
  product.pc = warp.pc;
  product.group = openGroup;
  if (!isWhole(warp, i) || !takeRegisters(warp, i, shape))
    return;
  const uint32_t adds = warp.predicate(i.c) ^ (i.flags ? allLanes : 0);
  product.adds = adds != 0;
  if (adds != 0 && adds != allLanes)
    return warp.fail("some lanes add to D, and others do not");
  product.a = shape.numA ? 0 : warp.cells<uint64_t>(i.a)[0];
  product.b = warp.cells<uint64_t>(i.b)[0];
  const uint32_t *places = placesOf(warp, i) + shape.numD;
  for (uint32_t lane = 0; shape.numA && lane < lanes; ++lane)
    for (uint32_t k = 0; k < shape.numA; ++k)
      product.registers.push_back(warp.cells<uint32_t>(places[k])[lane]);
  product.seen = warp.clocks;
  product.visible = warp.fenced;
  if (!isSameInAll(warp, product, !shape.numA) ||
      (!shape.numA && !isExecuted(warp, Matrix(product.a))) ||
      !isExecuted(warp, Matrix(product.b)) ||
      !reachMatrices(warp, product, shape, false))
    return;
  Machine &machine = warp.machine;
  product.isEarly = (machine.options.isEarly ||
                     (machine.options.seed && (machine.random() & 1))) &&
                    (warp.products.empty() || warp.products.back().isEarly);
  if (product.isEarly)
    multiply(warp, product);
  warp.products.push_back(std::move(product));
  markUses(warp);
}

void fence(Warp &warp, const Instr &i) {
  if (!isWhole(warp, i))
    return;
  warp.hasProductFence = true;
  for (uint8_t &use : warp.productRegisters)
    use &= uint8_t(~IsTouched);
}

void commit(Warp &warp, const Instr &i) {
  if (!isWhole(warp, i))
    return;
  for (WarpgroupProduct &each : warp.products)
    each.group = std::min(each.group, warp.productGroups);
  ++warp.productGroups;
}

/// `offset`: how many of the last groups may go on.
void await(Warp &warp, const Instr &i) {
  if (!isWhole(warp, i))
    return;
  const uint32_t open = std::min(warp.productGroups, uint32_t(i.offset));
  size_t done = 0;
  for (; done < warp.products.size() &&
         warp.products[done].group < warp.productGroups - open;
       ++done) {
    const WarpgroupProduct &each = warp.products[done];
    const Shape shape = Shape::of(warp, warp.machine.program.code[each.pc]);
    if (!reachMatrices(warp, each, shape, true))
      return;
    if (!each.isEarly)
      multiply(warp, each);
  }
  warp.products.erase(warp.products.begin(),
                      warp.products.begin() + ptrdiff_t(done));
  markUses(warp);
}

//===----------------------------------------------------------------------===//
// Decoding
//===----------------------------------------------------------------------===//

/// The types of section 9.7.15.2, and which have what modifiers.
bool isAllowed(const Shape &shape) {
  const uint32_t bits = bitsOfElement(shape.a);
  const bool isInteger = shape.a == Scalar::S8 || shape.a == Scalar::U8;
  const bool isSmall = shape.a == Scalar::E4M3x2 || shape.a == Scalar::E5M2x2;
  const bool isSame = shape.a == shape.b;
  const bool isPair =
      isSame ||
      (isInteger && (shape.b == Scalar::S8 || shape.b == Scalar::U8)) ||
      (isSmall && (shape.b == Scalar::E4M3x2 || shape.b == Scalar::E5M2x2));
  const bool isResult = isInteger ? shape.d == Scalar::S32
                                  : shape.d == Scalar::F32 ||
                                        (shape.d == Scalar::F16 &&
                                         (isSmall || shape.a == Scalar::F16));
  const bool isOther = shape.a == Scalar::F16 || shape.a == Scalar::BF16 ||
                       shape.a == Scalar::TF32 || isInteger || isSmall;
  return isPair && isResult && isOther &&
         (bits == 16 || (!shape.turnsA && !shape.turnsB)) &&
         (!isInteger || shape.n % 16 == 0 || shape.n < 32) && shape.n >= 8 &&
         shape.n <= mostColumns && shape.n % 8 == 0;
}

/// "m64n128k16"; 0 where it is none.
uint32_t columnsOf(Decoder &d, uint32_t &steps) {
  for (uint32_t k : {8u, 16u, 32u})
    for (uint32_t n = 8; n <= mostColumns; n += 8)
      if (d.has(fmt::format("m64n{}k{}", n, k))) {
        steps = k;
        return n;
      }
  return 0;
}

/// A constant of an operand that may be left out: 1 or -1, 0 or 1.
bool takeFlag(Decoder &d, size_t k, int64_t least, bool &isOn) {
  const auto value = int64_t(d.integer(k));
  isOn = least < 0 ? value == -1 : value == 1;
  if (value == 1 || value == least)
    return true;
  d.refuse("a constant operand is out of its range");
  return false;
}

void takeFlags(Decoder &d, Shape &shape) {
  bool negatesA = false, negatesB = false, turnsA = false, turnsB = false;
  const size_t count = d.numOperands();
  const size_t first = 4;
  if (count > first && (!takeFlag(d, first, -1, negatesA) ||
                        !takeFlag(d, first + 1, -1, negatesB)))
    return;
  size_t next = first + 2;
  if (count > next && shape.numA == 0 && !takeFlag(d, next++, 0, turnsA))
    return;
  if (count > next && !takeFlag(d, next, 0, turnsB))
    return;
  shape.negatesA = negatesA;
  shape.negatesB = negatesB;
  shape.turnsA = turnsA;
  shape.turnsB = turnsB;
}

bool takeList(Decoder &d, size_t k, size_t count, Scalar type,
              std::vector<uint32_t> &words) {
  const Operand *list = d.operand(k);
  if (!list || list->kind != Operand::Kind::List ||
      list->parts.size() != count) {
    d.refuse(fmt::format("operand {} must have {} registers", k + 1, count));
    return false;
  }
  for (const Operand &part : list->parts) {
    words.push_back(k == 0 ? d.targetOf(&part, type) : d.sourceOf(&part, type));
    auto &numbers = d.program.productRegisters;
    numbers.try_emplace(words.back(), uint32_t(numbers.size()));
  }
  return true;
}

void decodeProduct(Decoder &d) {
  Shape shape{};
  uint32_t steps = 0;
  shape.n = columnsOf(d, steps);
  shape.saturates = d.has("satfinite");
  if (!takeTypes(d, {&shape.d, &shape.a, &shape.b}))
    return d.refuse("its types are not executed", ErrorKind::Unsupported);
  const Operand *a = d.operand(1);
  if (!a)
    return;
  shape.numD = shape.n / 2 / perRegister(shape.d);
  shape.numA = a->kind == Operand::Kind::List ? 4 : 0;
  takeFlags(d, shape);
  if (d.isWrong())
    return;
  if (!isAllowed(shape) || steps != shape.k())
    return d.refuse("its shape or its types are not executed",
                    ErrorKind::Unsupported);
  std::vector<uint32_t> places;
  const Scalar type = shape.d == Scalar::F16 ? Scalar::B32 : shape.d;
  if (!takeList(d, 0, shape.numD, type, places) ||
      (shape.numA && !takeList(d, 1, shape.numA, Scalar::B32, places)))
    return;
  if (!shape.numA)
    d.instr.a = d.source(1, Scalar::B64);
  d.instr.b = d.source(2, Scalar::B64);
  bool isNegated = false;
  d.instr.c = d.predicate(d.operand(3), isNegated);
  d.instr.flags = isNegated;
  d.instr.more =
      d.words({shape.n, uint32_t(shape.a), uint32_t(shape.b), uint32_t(shape.d),
               shape.turnsA, shape.turnsB, shape.negatesA, shape.negatesB,
               shape.saturates, shape.numD, shape.numA});
  d.words(places);
  d.emit(ask);
}

void decodeWgmma(Decoder &d) {
  d.has("sync");
  d.has("aligned");
  if (d.has("mma_async"))
    return decodeProduct(d);
  if (d.has("fence"))
    return d.emit(fence);
  if (d.has("commit_group"))
    return d.emit(commit);
  d.oneOf({"wait_group"}, false);
  d.instr.offset = int64_t(std::min<uint64_t>(d.integer(0), 1 << 20));
  d.emit(await);
}

} // namespace

bool isProduct(Run run) { return run == ask; }

void touchWatched(Warp &warp, const Instr &instr) {
  const Watched &watch = warp.machine.program.watched.at(warp.pcOf(instr));
  auto uses = [&](const std::vector<uint32_t> &numbers, uint8_t use) {
    return std::any_of(numbers.begin(), numbers.end(), [&](uint32_t number) {
      return warp.productRegisters[number] & use;
    });
  };
  if (uses(watch.touched, Sums) || uses(watch.written, FactorA))
    return warp.fail("a register of a product of a warpgroup is touched before "
                     "wgmma.wait_group");
  for (uint32_t number : watch.touched)
    warp.productRegisters[number] |= IsTouched;
  watch.run(warp, instr);
}

void leaveProducts(Warp &warp) {
  if (!warp.block.isDone())
    return;
  for (const auto &each : warp.block.warps)
    if (each->productCount != warp.block.multiplied[each->index / 4].size())
      each->fail("the warps of a warpgroup have ended after different "
                 "products");
}

std::span<const Operation> warpgroupOperations() {
  static const Operation rows[] = {
      {"wgmma", "9.7.15.5, 9.7.15.7", decodeWgmma}};
  return rows;
}

} // namespace mgpu::kernels::ptx
