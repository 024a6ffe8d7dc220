// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "kernels/cuda/CudaHelpers.h"

namespace mgpu::kernels::cuda {

// Each before those that use it. Fragments are those of the PTX ISA.
static const Helper matrixTable[] = {
    {"mmaF16", "",
     R"(// By a whole subgroup, on its tensor cores: d += a * b, m16n8k16. At least sm_80.
#ifndef MGPU_MMA
__device__ __forceinline__ void mmaF16(float *d, const unsigned *a, const unsigned *b) {
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
#endif
)"},
    {"mmaF16Half", "",
     R"(// The same with sums, two to a register, in half precision.
#ifndef MGPU_MMA
__device__ __forceinline__ void mmaF16Half(unsigned *d, const unsigned *a, const unsigned *b) {
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 {%0, %1}, {%2, %3, %4, %5}, {%6, %7}, {%0, %1};"
      : "+r"(d[0]), "+r"(d[1]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
#endif
)"},
    {"mmaBf16", "",
     R"(// By a whole subgroup, on its tensor cores: d += a * b, m16n8k16. At least sm_80.
#ifndef MGPU_MMA
__device__ __forceinline__ void mmaBf16(float *d, const unsigned *a, const unsigned *b) {
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
#endif
)"},
    {"mmaTf32", "",
     R"(// d += a * b, m16n8k8, of floats rounded to tf32: to nearest, ties away from zero.
#ifndef MGPU_MMA
__device__ __forceinline__ unsigned toTf32(float x) {
  unsigned bits;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(x));
  return bits;
}
__device__ __forceinline__ void mmaTf32(float *d, const unsigned *a, const unsigned *b) {
  asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
#endif
)"},
    {"mmaS8", "",
     R"(// d += a * b modulo 2^32, m16n8k16, of signed bytes.
#ifndef MGPU_MMA
__device__ __forceinline__ void mmaS8(int *d, const unsigned *a, unsigned b) {
  asm volatile("mma.sync.aligned.m16n8k16.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
      : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3]) : "r"(a[0]), "r"(a[1]), "r"(b));
}
#endif
)"},
    {"mmaU8", "",
     R"(// d += a * b modulo 2^32, m16n8k16, of unsigned bytes.
#ifndef MGPU_MMA
__device__ __forceinline__ void mmaU8(int *d, const unsigned *a, unsigned b) {
  asm volatile("mma.sync.aligned.m16n8k16.row.col.s32.u8.u8.s32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
      : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3]) : "r"(a[0]), "r"(a[1]), "r"(b));
}
#endif
)"},
    {"mmaF64", "",
     R"(// d += a * b, m8n8k4.
#ifndef MGPU_MMA
__device__ __forceinline__ void mmaF64(double *d, double a, double b) {
  asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%0, %1};"
      : "+d"(d[0]), "+d"(d[1]) : "d"(a), "d"(b));
}
#endif
)"},
    {"copyAsync", "",
     R"(// Copies to shared memory that do not wait: 16 bytes, both sides aligned, of which
// those from `bytes` on are zeros; in groups, of which the oldest are waited for.
#ifndef MGPU_MMA
__device__ __forceinline__ unsigned sharedAddress(const void *at) {
  unsigned address;
  asm("{ .reg .u64 whole; cvta.to.shared.u64 whole, %1; cvt.u32.u64 %0, whole; }" : "=r"(address) : "l"(at));
  return address;
}
__device__ __forceinline__ void copyAsync(void *to, const void *from, int bytes) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" : : "r"(sharedAddress(to)), "l"(from), "r"(bytes) : "memory");
}
__device__ __forceinline__ void closeCopies() { asm volatile("cp.async.commit_group;" : : : "memory"); }
// Until this thread has at most `Open` groups that are not done.
template <int Open> __device__ __forceinline__ void awaitCopies() { asm volatile("cp.async.wait_group %0;" : : "n"(Open) : "memory"); }
#endif
)"},
    {"loadTiles", "copyAsync",
     R"(// By a whole subgroup: four tiles of 8 x 8 from shared memory, as mma.sync wants them.
// Lane l gives the address of row l % 8 of tile l / 8.
#ifndef MGPU_MMA
__device__ __forceinline__ void loadTiles(unsigned *to, const void *row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
      : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3]) : "r"(sharedAddress(row)) : "memory");
}
__device__ __forceinline__ void loadTilesTurned(unsigned *to, const void *row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
      : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3]) : "r"(sharedAddress(row)) : "memory");
}
#endif
)"},
    {"stageChunk", "copyAsync",
     R"(// A tile in shared memory: where chunk `at` of 16 bytes lies of a row of `Chunks`, so that
// eight rows of one chunk are in different banks.
template <int Chunks> __device__ __forceinline__ int placeChunk(int row, int at) {
  const int rows = Chunks < 8 ? 8 / Chunks : 1, most = Chunks < 8 ? Chunks : 8;
  return (row * Chunks + (at ^ row / rows % most)) * 8;
}
// Eight elements of a row to a chunk, those from `count` on zeros.
template <bool IsAligned, class T> __device__ __forceinline__ void stageChunk(T *to, const T *from, int count) {
  count = count < 0 ? 0 : count > 8 ? 8 : count;
  if (IsAligned) {
    copyAsync(to, from, count * 2);
  } else {
    struct __align__(16) wide { T part[8]; };
    wide all;
#pragma unroll
    for (int k = 0; k < 8; ++k)
      all.part[k] = k < count ? from[k] : T(0.0f);
    *(wide *)to = all;
  }
}
)"},
    {"copyAsyncPart", "copyAsync",
     R"(// The same of 4, 8 or 16 bytes, aligned to as many, by way of the first cache.
#ifndef MGPU_MMA
template <int Bytes> __device__ __forceinline__ void copyAsyncPart(void *to, const void *from, int bytes) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" : : "r"(sharedAddress(to)), "l"(from), "n"(Bytes), "r"(bytes) : "memory");
}
#endif
)"},
    {"loadFewTiles", "loadTiles",
     R"(// The same of one tile or two, whose rows the first 8 or 16 lanes point to.
#ifndef MGPU_MMA
template <int Tiles, bool IsTurned> __device__ __forceinline__ void loadFewTiles(unsigned *to, const void *row) {
  const unsigned address = sharedAddress(row);
  if (Tiles == 1 && IsTurned)
    asm volatile("ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16 {%0}, [%1];" : "=r"(to[0]) : "r"(address) : "memory");
  else if (Tiles == 1)
    asm volatile("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1];" : "=r"(to[0]) : "r"(address) : "memory");
  else if (IsTurned)
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];" : "=r"(to[0]), "=r"(to[Tiles - 1]) : "r"(address) : "memory");
  else
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];" : "=r"(to[0]), "=r"(to[Tiles - 1]) : "r"(address) : "memory");
}
#endif
)"},
    {"packed", "",
     R"(// Neighbouring elements in registers, the first of them in the low bits.
template <int Registers, class T> __device__ __forceinline__ void packed(unsigned (&to)[Registers], const T *from) {
  memcpy(to, from, sizeof to);
}
)"},
    {"TileF16", "mmaF16 packed f16",
     R"(struct TileF16 { // and how many elements of a tile a lane has
  enum { ofA = 8, ofB = 4, ofC = 4 };
  static __device__ __forceinline__ void multiply(float *d, const f16 *a, const f16 *b) {
    unsigned left[4], right[2];
    packed(left, a);
    packed(right, b);
    mmaF16(d, left, right);
  }
};
)"},
    {"TileF16Half", "mmaF16Half packed f16",
     R"(struct TileF16Half { // and how many elements of a tile a lane has
  enum { ofA = 8, ofB = 4, ofC = 4 };
  static __device__ __forceinline__ void multiply(f16 *d, const f16 *a, const f16 *b) {
    unsigned left[4], right[2], sums[2];
    packed(left, a);
    packed(right, b);
    packed(sums, d);
    mmaF16Half(sums, left, right);
    memcpy(d, sums, sizeof sums);
  }
};
)"},
    {"TileTf32", "mmaTf32",
     R"(struct TileTf32 { // and how many elements of a tile a lane has
  enum { ofA = 4, ofB = 2, ofC = 4 };
  static __device__ __forceinline__ void multiply(float *d, const float *a, const float *b) {
    const unsigned left[4] = {toTf32(a[0]), toTf32(a[1]), toTf32(a[2]), toTf32(a[3])};
    const unsigned right[2] = {toTf32(b[0]), toTf32(b[1])};
    mmaTf32(d, left, right);
  }
};
)"},
    {"TileS8", "mmaS8 packed",
     R"(struct TileS8 { // and how many elements of a tile a lane has
  enum { ofA = 8, ofB = 4, ofC = 4 };
  static __device__ __forceinline__ void multiply(int *d, const signed char *a, const signed char *b) {
    unsigned left[2], right[1];
    packed(left, a);
    packed(right, b);
    mmaS8(d, left, right[0]);
  }
};
)"},
    {"TileU8", "mmaU8 packed",
     R"(struct TileU8 { // and how many elements of a tile a lane has
  enum { ofA = 8, ofB = 4, ofC = 4 };
  static __device__ __forceinline__ void multiply(int *d, const signed char *a, const signed char *b) {
    unsigned left[2], right[1];
    packed(left, a);
    packed(right, b);
    mmaU8(d, left, right[0]);
  }
};
)"},
    {"TileF64", "mmaF64",
     R"(struct TileF64 { // and how many elements of a tile a lane has
  enum { ofA = 1, ofB = 1, ofC = 2 };
  static __device__ __forceinline__ void multiply(double *d, const double *a, const double *b) { mmaF64(d, *a, *b); }
};
)"},
    {"matrixProduct", "vec",
     R"(// d += a * b of a subgroup's matrices; Columns tiles of d lie side by side.
template <int Columns, class Tile, class D, class A, class B> __device__ __forceinline__ void matrixProduct(D &d, const A &a, const B &b) {
#pragma unroll
  for (int tile = 0; tile < (int)(sizeof d.lane / sizeof d.lane[0] / Tile::ofC); ++tile)
    Tile::multiply(d.lane + tile * Tile::ofC, a.lane + tile / Columns * Tile::ofA, b.lane + tile % Columns * Tile::ofB);
}
)"},
};

llvm::ArrayRef<Helper> matrixHelpers() { return matrixTable; }

} // namespace mgpu::kernels::cuda
