// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "kernels/ptx/Elements.h"
#include "kernels/ptx/Opcodes.h"

// Comparisons and selections (ISA 9.0, sections 9.3.1, 9.7.3.1, 9.7.6
// and 9.7.7).

namespace mgpu::kernels::ptx {

namespace {

enum class Test : uint8_t { Eq, Ne, Lt, Le, Gt, Ge, Num, Nan };

/// A comparison in one of its cases: of two equal, less, greater, unordered.
constexpr uint8_t casesOf(Test test, bool orUnordered) {
  constexpr uint8_t equal = 1, less = 2, greater = 4, unordered = 8;
  constexpr uint8_t cases[] = {
      equal,           less | greater,         less,     less | equal, greater,
      greater | equal, equal | less | greater, unordered};
  return uint8_t(cases[size_t(test)] | (orUnordered ? unordered : 0));
}

template <typename T>
MGPU_PTX_INLINE uint32_t caseOf(T a, T b) {
  return (a == b ? 1u : 0u) | (a < b ? 2u : 0u) | (a > b ? 4u : 0u);
}

/// `flags`: the cases, flush of f32 (bit 8), the Boolean operator (bits 9, 10)
/// with its operand `c`, negated (bit 11), and for set what `true` is (12, 13).
/// `more`: of setp the second result.
template <typename T>
uint32_t compared(Warp &warp, const Instr &i, uint32_t second = 0,
                  bool isPair = false) {
  const auto *a = warp.cells<CellOf<T>>(i.a), *b = warp.cells<CellOf<T>>(i.b);
  const uint32_t cases = i.flags & 15;
  uint32_t bits = 0;
  for (uint32_t lane = 0; lane < lanes; ++lane) {
    uint32_t found;
    if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, Bfloat>) {
      const uint32_t shift = isPair && second ? 16 : 0;
      found = caseOf(toFloat(T{uint16_t(a[lane] >> shift)}),
                     toFloat(T{uint16_t(b[lane] >> shift)}));
    } else if constexpr (std::is_same_v<T, float>) {
      float x = fromCell<T>(a[lane]), y = fromCell<T>(b[lane]);
      if (i.flags & 256) {
        x = std::fabs(x) < 0x1p-126f ? 0 : x;
        y = std::fabs(y) < 0x1p-126f ? 0 : y;
      }
      found = caseOf(x, y);
    } else {
      found = caseOf(fromCell<T>(a[lane]), fromCell<T>(b[lane]));
    }
    found |= found == 0 ? 8 : 0;
    bits |= uint32_t((found & cases) != 0) << lane;
  }
  return bits;
}

uint32_t combined(Warp &warp, const Instr &i, uint32_t bits) {
  const uint32_t operation = i.flags >> 9 & 3;
  if (operation == 0)
    return bits;
  const uint32_t c = warp.predicate(i.c) ^ (i.flags >> 11 & 1 ? ~0u : 0);
  return operation == 1 ? bits & c : operation == 2 ? bits | c : bits ^ c;
}

template <typename T>
struct Setp {
  static void run(Warp &warp, const Instr &i) {
    const uint32_t bits = compared<T>(warp, i);
    const uint32_t first = combined(warp, i, bits);
    const uint32_t second = i.more ? combined(warp, i, ~bits) : 0;
    warp.setPredicate(i.d, first);
    if (i.more)
      warp.setPredicate(i.more - 1, second);
  }
  /// A pair of f16 or bf16 gives a predicate for each half.
  static void pair(Warp &warp, const Instr &i) {
    const uint32_t low = combined(warp, i, compared<T>(warp, i, 0, true));
    const uint32_t high = combined(warp, i, compared<T>(warp, i, 1, true));
    warp.setPredicate(i.d, low);
    if (i.more)
      warp.setPredicate(i.more - 1, high);
  }
};

template <typename T>
struct Set {
  static void run(Warp &warp, const Instr &i) {
    const uint32_t bits = combined(warp, i, compared<T>(warp, i));
    constexpr uint32_t trues[] = {~0u, 0x3f800000, 0x3c00, 0x3f80};
    for (uint32_t lane = 0; lane < lanes; ++lane)
      if (warp.mask >> lane & 1)
        warp.cells<uint32_t>(i.d)[lane] =
            bits >> lane & 1 ? trues[i.flags >> 12 & 3] : 0;
  }
  static void pair(Warp &warp, const Instr &i) {
    const uint32_t low = combined(warp, i, compared<T>(warp, i, 0, true));
    const uint32_t high = combined(warp, i, compared<T>(warp, i, 1, true));
    constexpr uint32_t trues[] = {0xffff, 0, 0x3c00, 0x3f80};
    const uint32_t one = trues[i.flags >> 12 & 3];
    for (uint32_t lane = 0; lane < lanes; ++lane)
      if (warp.mask >> lane & 1)
        warp.cells<uint32_t>(i.d)[lane] =
            (low >> lane & 1 ? one : 0) | (high >> lane & 1 ? one << 16 : 0);
  }
};

/// The test and the Boolean operator among the modifiers.
void takeTest(Decoder &d) {
  struct Row {
    std::string_view name;
    Test test;
    bool orUnordered;
  };
  constexpr Row rows[] = {{"eq", Test::Eq, false},   {"ne", Test::Ne, false},
                          {"lt", Test::Lt, false},   {"le", Test::Le, false},
                          {"gt", Test::Gt, false},   {"ge", Test::Ge, false},
                          {"lo", Test::Lt, false},   {"ls", Test::Le, false},
                          {"hi", Test::Gt, false},   {"hs", Test::Ge, false},
                          {"equ", Test::Eq, true},   {"neu", Test::Ne, true},
                          {"ltu", Test::Lt, true},   {"leu", Test::Le, true},
                          {"gtu", Test::Gt, true},   {"geu", Test::Ge, true},
                          {"num", Test::Num, false}, {"nan", Test::Nan, false}};
  bool isFound = false;
  for (const Row &row : rows)
    if (!isFound && d.has(row.name)) {
      d.instr.flags = casesOf(row.test, row.orUnordered);
      isFound = true;
    }
  if (!isFound)
    d.refuse("it has no comparison");
  constexpr std::string_view operators[] = {"and", "or", "xor"};
  for (uint32_t k = 0; k < 3; ++k)
    if (d.has(operators[k])) {
      bool isNegated = false;
      d.instr.c = d.predicate(d.operand(3), isNegated);
      d.instr.flags |= (k + 1) << 9 | uint32_t(isNegated) << 11;
    }
  if (d.has("ftz"))
    d.instr.flags |= 256;
}

template <template <typename> class Op>
void emitCompare(Decoder &d, Scalar type) {
  if (type == Scalar::F16x2)
    return d.emit(Op<Half>::pair);
  if (type == Scalar::BF16x2)
    return d.emit(Op<Bfloat>::pair);
  d.emit(forType<uint16_t, int16_t, uint32_t, int32_t, uint64_t, int64_t, float,
                 double, Half, Bfloat>(
      type, []<typename T>() { return &Op<T>::run; }));
}

void decodeSetp(Decoder &d) {
  takeTest(d);
  const Scalar type = d.type();
  const Operand *result = d.operand(0);
  if (!result)
    return;
  d.instr.d = d.targetOf(result, Scalar::Pred);
  if (!result->parts.empty())
    d.instr.more = d.targetOf(&result->parts[0], Scalar::Pred) + 1;
  d.instr.a = d.source(1, type);
  d.instr.b = d.source(2, type);
  emitCompare<Setp>(d, type);
}

void decodeSet(Decoder &d) {
  takeTest(d);
  const Scalar result = d.type(), type = d.type();
  using S = Scalar;
  const bool isSmall = result == S::U16 || result == S::S16;
  const uint32_t kind = result == S::F32                           ? 1
                        : result == S::F16 || result == S::F16x2   ? 2
                        : result == S::BF16 || result == S::BF16x2 ? 3
                                                                   : 0;
  if (bytesOf(result) > 4 || isSmall)
    return d.refuse("it has no such result", ErrorKind::Unsupported);
  d.instr.flags |= kind << 12;
  d.instr.d = d.target(0, result);
  d.instr.a = d.source(1, type);
  d.instr.b = d.source(2, type);
  emitCompare<Set>(d, type);
}

template <typename Cell>
void select(Warp &warp, const Instr &i) {
  const auto *a = warp.cells<Cell>(i.a), *b = warp.cells<Cell>(i.b);
  const uint32_t bits = warp.predicate(i.c) ^ i.flags;
  Cell out[lanes];
  for (uint32_t lane = 0; lane < lanes; ++lane)
    out[lane] = bits >> lane & 1 ? a[lane] : b[lane];
  keep(warp, i.d, out);
}

void decodeSelp(Decoder &d) {
  const Scalar type = d.type();
  d.instr.d = d.target(0, type);
  d.instr.a = d.source(1, type);
  d.instr.b = d.source(2, type);
  bool isNegated = false;
  d.instr.c = d.predicate(d.operand(3), isNegated);
  d.instr.flags = isNegated ? ~0u : 0;
  d.emit(cellBytes(type) == 8   ? select<uint64_t>
         : cellBytes(type) == 4 ? select<uint32_t>
                                : nullptr);
}

struct Slct {
  template <typename T, typename C>
  static T of(T a, T b, C c) {
    return c >= 0 ? a : b;
  }
};

void decodeSlct(Decoder &d) {
  d.has("ftz");
  const Scalar type = d.type(), by = d.type();
  d.instr.d = d.target(0, type);
  d.instr.a = d.source(1, type);
  d.instr.b = d.source(2, type);
  d.instr.c = d.source(3, by);
  const bool isWide = cellBytes(type) == 8;
  if (by == Scalar::S32)
    return d.emit(isWide
                      ? three<Slct, uint64_t, uint64_t, uint64_t, int32_t>()
                      : three<Slct, uint32_t, uint32_t, uint32_t, int32_t>());
  d.emit(by != Scalar::F32 ? nullptr
         : isWide          ? three<Slct, uint64_t, uint64_t, uint64_t, float>()
                  : three<Slct, uint32_t, uint32_t, uint32_t, float>());
}

/// `flags`: which of the classes (testp).
template <typename T>
void testp(Warp &warp, const Instr &i) {
  uint32_t bits = 0;
  for (uint32_t lane = 0; lane < lanes; ++lane) {
    const T value = warp.cells<T>(i.a)[lane];
    const int kind = std::fpclassify(value);
    const bool is[] = {std::isfinite(value), kind == FP_INFINITE,
                       !std::isnan(value),   kind == FP_NAN,
                       kind == FP_NORMAL,    kind == FP_SUBNORMAL};
    bits |= uint32_t(is[i.flags]) << lane;
  }
  warp.setPredicate(i.d, bits);
}

void decodeTestp(Decoder &d) {
  constexpr std::string_view names[] = {"finite",     "infinite", "number",
                                        "notanumber", "normal",   "subnormal"};
  bool isFound = false;
  for (uint32_t k = 0; k < 6; ++k)
    if (d.has(names[k])) {
      d.instr.flags = k;
      isFound = true;
    }
  if (!isFound)
    d.refuse("it has no class of numbers");
  const Scalar type = d.type();
  d.instr.d = d.target(0, Scalar::Pred);
  d.instr.a = d.source(1, type);
  d.emit(type == Scalar::F32   ? testp<float>
         : type == Scalar::F64 ? testp<double>
                               : nullptr);
}

} // namespace

std::span<const Operation> compareOperations() {
  static const Operation rows[] = {{"testp", "9.7.3.1", decodeTestp},
                                   {"set", "9.7.6.1, 9.7.7.1", decodeSet},
                                   {"setp", "9.7.6.2, 9.7.7.2", decodeSetp},
                                   {"selp", "9.7.6.3", decodeSelp},
                                   {"slct", "9.7.6.4", decodeSlct}};
  return rows;
}

} // namespace mgpu::kernels::ptx
