// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_KERNELS_PTX_ELEMENTS_H
#define MGPU_KERNELS_PTX_ELEMENTS_H

// Instructions that do the same in each lane: a struct says what one lane does,
// `of`, and these make it a Run. All 32 lanes are computed, and those of the
// mask are kept, so `of` must be defined for all values.

#include "kernels/ptx/Decoder.h"
#include "kernels/ptx/Machine.h"
#include "kernels/ptx/NarrowFloat.h"

namespace mgpu::kernels::ptx {

#if defined(__x86_64__)
#define MGPU_PTX_WIDE __attribute__((target("avx2,fma,f16c,bmi,bmi2")))
#else
#define MGPU_PTX_WIDE
#endif
#define MGPU_PTX_INLINE inline __attribute__((always_inline))

/// Whether this machine has what MGPU_PTX_WIDE is compiled for.
bool hasWideVectors();

/// A lane's register: the low bytes of a cell.
template <typename T>
using CellOf = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;

template <typename T>
MGPU_PTX_INLINE T fromCell(CellOf<T> cell) {
  if constexpr (sizeof(T) == sizeof(cell))
    return std::bit_cast<T>(cell);
  else if constexpr (sizeof(T) == 2)
    return std::bit_cast<T>(uint16_t(cell));
  else
    return std::bit_cast<T>(uint8_t(cell));
}
template <typename T>
MGPU_PTX_INLINE CellOf<T> toCell(T value) {
  if constexpr (sizeof(T) == sizeof(CellOf<T>))
    return std::bit_cast<CellOf<T>>(value);
  else if constexpr (sizeof(T) == 2)
    return std::bit_cast<uint16_t>(value);
  else
    return std::bit_cast<uint8_t>(value);
}

template <typename Cell>
MGPU_PTX_INLINE void keep(Warp &warp, uint32_t place, const Cell *values) {
  Cell *to = warp.cells<Cell>(place);
  if (warp.mask == allLanes) {
    std::memcpy(to, values, sizeof(Cell) * lanes);
    return;
  }
  for (uint32_t lane = 0; lane < lanes; ++lane)
    to[lane] = warp.mask >> lane & 1 ? values[lane] : to[lane];
}

template <typename Op, typename D, typename A>
struct One {
  static MGPU_PTX_INLINE void body(Warp &warp, const Instr &i) {
    const auto *a = warp.cells<CellOf<A>>(i.a);
    CellOf<D> out[lanes];
    for (uint32_t lane = 0; lane < lanes; ++lane)
      out[lane] = toCell<D>(Op::of(fromCell<A>(a[lane])));
    keep(warp, i.d, out);
  }
  static void plain(Warp &warp, const Instr &i) { body(warp, i); }
  MGPU_PTX_WIDE static void wide(Warp &warp, const Instr &i) { body(warp, i); }
};

template <typename Op, typename D, typename A, typename B>
struct Two {
  static MGPU_PTX_INLINE void body(Warp &warp, const Instr &i) {
    const auto *a = warp.cells<CellOf<A>>(i.a);
    const auto *b = warp.cells<CellOf<B>>(i.b);
    CellOf<D> out[lanes];
    for (uint32_t lane = 0; lane < lanes; ++lane)
      out[lane] = toCell<D>(Op::of(fromCell<A>(a[lane]), fromCell<B>(b[lane])));
    keep(warp, i.d, out);
  }
  static void plain(Warp &warp, const Instr &i) { body(warp, i); }
  MGPU_PTX_WIDE static void wide(Warp &warp, const Instr &i) { body(warp, i); }
};

template <typename Op, typename D, typename A, typename B, typename C>
struct Three {
  static MGPU_PTX_INLINE void body(Warp &warp, const Instr &i) {
    const auto *a = warp.cells<CellOf<A>>(i.a);
    const auto *b = warp.cells<CellOf<B>>(i.b);
    const auto *c = warp.cells<CellOf<C>>(i.c);
    CellOf<D> out[lanes];
    for (uint32_t lane = 0; lane < lanes; ++lane)
      out[lane] = toCell<D>(Op::of(fromCell<A>(a[lane]), fromCell<B>(b[lane]),
                                   fromCell<C>(c[lane])));
    keep(warp, i.d, out);
  }
  static void plain(Warp &warp, const Instr &i) { body(warp, i); }
  MGPU_PTX_WIDE static void wide(Warp &warp, const Instr &i) { body(warp, i); }
};

template <typename Shape>
Run pick() {
  return hasWideVectors() ? &Shape::wide : &Shape::plain;
}
template <typename Op, typename D, typename A = D>
Run one() {
  return pick<One<Op, D, A>>();
}
template <typename Op, typename D, typename A = D, typename B = A>
Run two() {
  return pick<Two<Op, D, A, B>>();
}
template <typename Op, typename D, typename A = D, typename B = A,
          typename C = A>
Run three() {
  return pick<Three<Op, D, A, B, C>>();
}

struct Same {
  template <typename T>
  static T of(T a) {
    return a;
  }
};

/// The C++ type of a PTX type; `matches` of the first of Ts that it is.
template <typename T>
bool matches(Scalar type) {
  using S = Scalar;
  if constexpr (std::is_same_v<T, uint8_t>)
    return type == S::U8 || type == S::B8;
  else if constexpr (std::is_same_v<T, int8_t>)
    return type == S::S8;
  else if constexpr (std::is_same_v<T, uint16_t>)
    return type == S::U16 || type == S::B16;
  else if constexpr (std::is_same_v<T, int16_t>)
    return type == S::S16;
  else if constexpr (std::is_same_v<T, uint32_t>)
    return type == S::U32 || type == S::B32;
  else if constexpr (std::is_same_v<T, int32_t>)
    return type == S::S32;
  else if constexpr (std::is_same_v<T, uint64_t>)
    return type == S::U64 || type == S::B64;
  else if constexpr (std::is_same_v<T, int64_t>)
    return type == S::S64;
  else if constexpr (std::is_same_v<T, float>)
    return type == S::F32;
  else if constexpr (std::is_same_v<T, double>)
    return type == S::F64;
  else if constexpr (std::is_same_v<T, Half>)
    return type == S::F16;
  else if constexpr (std::is_same_v<T, Bfloat>)
    return type == S::BF16;
  else if constexpr (std::is_same_v<T, Pair<Half>>)
    return type == S::F16x2;
  else if constexpr (std::is_same_v<T, Pair<Bfloat>>)
    return type == S::BF16x2;
  else if constexpr (std::is_same_v<T, Pair<float>>)
    return type == S::F32x2;
  else if constexpr (std::is_same_v<T, Pair<uint16_t>>)
    return type == S::U16x2;
  else if constexpr (std::is_same_v<T, Pair<int16_t>>)
    return type == S::S16x2;
}

/// `make` called with the one of Ts that `type` is; null where it is none.
template <typename... Ts, typename Make>
Run forType(Scalar type, Make make) {
  Run run = nullptr;
  ((matches<Ts>(type) ? void(run = make.template operator()<Ts>()) : void()),
   ...);
  return run;
}

} // namespace mgpu::kernels::ptx

#endif // MGPU_KERNELS_PTX_ELEMENTS_H
