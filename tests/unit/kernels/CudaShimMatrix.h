// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// CudaShim.h's tensor cores: the functions around mma.sync, by the fragment
// layouts of the PTX ISA, written out from its tables and not from the
// emitter's. Sums are in order of k, in float for halves.
#define MGPU_MMA

struct ShimFragment {
  unsigned a[4], b[2];
  double wideA, wideB;
};
static ShimFragment shimFragments[1024]; // by thread of the block

static unsigned shimLane() { return unsigned(shimNow % 32); }
/// What lane `lane` of this subgroup brought.
static ShimFragment &shimOf(unsigned lane) {
  return shimFragments[shimNow / 32 * 32 + lane];
}

/// All lanes bring their fragments, then each takes its sums from them.
template <class Take>
static void shimProduct(const ShimFragment &mine, Take take) {
  shimOf(shimLane()) = mine;
  shimMeet(0xffffffffu);
  take();
  shimMeet(0xffffffffu);
}

static float shimHalf(unsigned pair, unsigned which) {
  unsigned short bits = (unsigned short)(pair >> 16 * which);
  _Float16 value;
  memcpy(&value, &bits, 2);
  return float(value);
}
static float shimBrain(unsigned pair, unsigned which) {
  unsigned bits = pair >> 16 * which << 16;
  return shimBits<float>(bits);
}

/// A(row, k) and B(k, column) of m16n8k16 with two elements to a register.
template <class Of>
static float shimA16(unsigned row, unsigned k, Of of) {
  unsigned lane = row % 8 * 4 + k % 8 / 2;
  return of(shimOf(lane).a[row / 8 + k / 8 * 2], k % 2);
}
template <class Of>
static float shimB16(unsigned k, unsigned column, Of of) {
  unsigned lane = column * 4 + k % 8 / 2;
  return of(shimOf(lane).b[k / 8], k % 2);
}

/// The row and column of sum i of this lane in 16 x 8.
static unsigned shimRow(unsigned i) { return shimLane() / 4 + i / 2 * 8; }
static unsigned shimColumn(unsigned i) { return shimLane() % 4 * 2 + i % 2; }

template <class Of>
static void shimProduct16(float *d, const unsigned *a, const unsigned *b,
                          Of of) {
  shimProduct({{a[0], a[1], a[2], a[3]}, {b[0], b[1]}, 0, 0}, [&] {
    for (unsigned i = 0; i < 4; ++i)
      for (unsigned k = 0; k < 16; ++k)
        d[i] += shimA16(shimRow(i), k, of) * shimB16(k, shimColumn(i), of);
  });
}

static void mmaF16(float *d, const unsigned *a, const unsigned *b) {
  shimProduct16(d, a, b, shimHalf);
}
static void mmaBf16(float *d, const unsigned *a, const unsigned *b) {
  shimProduct16(d, a, b, shimBrain);
}
static void mmaF16Half(unsigned *d, const unsigned *a, const unsigned *b) {
  float sums[4];
  for (unsigned i = 0; i < 4; ++i)
    sums[i] = shimHalf(d[i / 2], i % 2);
  shimProduct16(sums, a, b, shimHalf);
  for (unsigned i = 0; i < 4; ++i) {
    _Float16 half = _Float16(sums[i]);
    memcpy((char *)d + 2 * i, &half, 2);
  }
}

static unsigned toTf32(float x) {
  if (x != x)
    return 0x7fffffff;
  return (shimBits<unsigned>(x) + 0x1000) & ~0x1fffu;
}
static void mmaTf32(float *d, const unsigned *a, const unsigned *b) {
  shimProduct({{a[0], a[1], a[2], a[3]}, {b[0], b[1]}, 0, 0}, [&] {
    for (unsigned i = 0; i < 4; ++i)
      for (unsigned k = 0; k < 8; ++k) {
        unsigned row = shimRow(i), column = shimColumn(i);
        unsigned left = shimOf(row % 8 * 4 + k % 4).a[row / 8 + k / 4 * 2],
                 right = shimOf(column * 4 + k % 4).b[k / 4];
        d[i] += shimBits<float>(left) * shimBits<float>(right);
      }
  });
}

template <class Byte>
static void shimBytes(int *d, const unsigned *a, unsigned b) {
  shimProduct({{a[0], a[1], 0, 0}, {b, 0}, 0, 0}, [&] {
    for (unsigned i = 0; i < 4; ++i)
      for (unsigned k = 0; k < 16; ++k) {
        unsigned row = shimRow(i), column = shimColumn(i);
        unsigned left = shimOf(row % 8 * 4 + k / 4).a[row / 8],
                 right = shimOf(column * 4 + k / 4).b[0];
        d[i] = int(unsigned(d[i]) + unsigned(Byte(left >> 8 * (k % 4)) *
                                             Byte(right >> 8 * (k % 4))));
      }
  });
}
static void mmaS8(int *d, const unsigned *a, unsigned b) {
  shimBytes<signed char>(d, a, b);
}
static void mmaU8(int *d, const unsigned *a, unsigned b) {
  shimBytes<unsigned char>(d, a, b);
}

static void mmaF64(double *d, double a, double b) {
  shimProduct({{}, {}, a, b}, [&] {
    for (unsigned i = 0; i < 2; ++i)
      for (unsigned k = 0; k < 4; ++k)
        d[i] += shimOf(shimLane() / 4 * 4 + k).wideA *
                shimOf((shimLane() % 4 * 2 + i) * 4 + k).wideB;
  });
}

// Copies happen as late as they may: when their group is waited for.
struct ShimCopy {
  char *to;
  const char *from;
  int bytes;
  unsigned long group;
};
struct ShimCopies {
  std::vector<ShimCopy> open;
  unsigned long groups = 0; // closed ones
};
static ShimCopies shimCopies[1024]; // by thread of the block

static void shimAligned(const void *at, const char *what) {
  if (uintptr_t(at) % 16 != 0) {
    fprintf(stderr, "shim: %s is not aligned\n", what);
    abort();
  }
}
static void copyAsync(void *to, const void *from, int bytes) {
  shimAligned(to, "what cp.async writes");
  if (bytes > 0)
    shimAligned(from, "what cp.async reads");
  ShimCopies &mine = shimCopies[shimNow];
  mine.open.push_back({(char *)to, (const char *)from, bytes, mine.groups});
}
static void closeCopies() { ++shimCopies[shimNow].groups; }
template <int Open>
static void awaitCopies() {
  ShimCopies &mine = shimCopies[shimNow];
  std::vector<ShimCopy> later;
  for (const ShimCopy &each : mine.open) {
    if (each.group + Open >= mine.groups) {
      later.push_back(each);
      continue;
    }
    memset(each.to, 0, 16);
    memcpy(each.to, each.from, size_t(each.bytes));
  }
  mine.open = later;
}

static const char *shimRows[1024]; // by thread of the block

/// Tile by tile: lane l takes two elements of row l / 4, or of its column.
static void shimTiles(unsigned *to, const void *row, bool turned) {
  shimAligned(row, "what ldmatrix reads");
  shimRows[shimNow] = (const char *)row;
  shimMeet(0xffffffffu);
  unsigned lane = shimLane();
  for (unsigned tile = 0; tile < 4; ++tile)
    for (unsigned e = 0; e < 2; ++e) {
      unsigned r = lane / 4, c = lane % 4 * 2 + e;
      if (turned)
        std::swap(r, c);
      memcpy((char *)&to[tile] + 2 * e,
             shimRows[shimNow / 32 * 32 + tile * 8 + r] + 2 * c, 2);
    }
  shimMeet(0xffffffffu);
}
static void loadTiles(unsigned *to, const void *row) {
  shimTiles(to, row, false);
}
static void loadTilesTurned(unsigned *to, const void *row) {
  shimTiles(to, row, true);
}
