// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// CudaShim.h's sm_90a: barriers, tensor copies and products of warpgroups, by
// the PTX ISA's words: "Parallel Synchronization and Communication
// Instructions: mbarrier", "Tensors: Swizzling modes" and "Asynchronous
// Warpgroup Level Matrix Instructions", whose descriptor and canonical layouts
// are decoded here from the bits, and not by the emitter's arithmetic. What may
// run late runs as late, or as early, as it may; a rule that is broken ends the
// test.
#define MGPU_WGMMA
#define __grid_constant__

#include "FakeTensorMap.h"
#include <map>

[[noreturn]] static void shimRule(const char *what) {
  fprintf(stderr, "shim: %s\n", what);
  abort();
}

// Shared memory of the block, whose addresses are those of the card: it does
// not begin where a pattern of 1024 bytes does.
static unsigned char *shimShared;
static size_t shimSharedBytes;
static constexpr unsigned shimSharedBase = 1024 + 384;

static unsigned sharedAddress(const void *at) {
  size_t offset = size_t((const unsigned char *)at - shimShared);
  if (!shimShared || offset > shimSharedBytes)
    shimRule("an address outside of shared memory");
  return shimSharedBase + unsigned(offset);
}
/// The byte at a shared address.
static unsigned char *shimByte(unsigned address) {
  if (address < shimSharedBase || address - shimSharedBase >= shimSharedBytes)
    shimRule("an address outside of shared memory");
  return shimShared + (address - shimSharedBase);
}
/// 128-byte swizzle: bits 4 to 6 of an address are xored with bits 7 to 9.
static unsigned shimSwizzled(unsigned address) {
  return address ^ (address >> 7 & 7) << 4;
}

struct ShimBoxCopy {
  unsigned to;
  FakeTensorMap from;
  long long at[3];
};
struct ShimBarrier {
  unsigned expected, left; ///< arrivals
  long bytes = 0;          ///< announced and not come, in this phase
  unsigned long phase = 0; ///< the one that is not over
  std::vector<ShimBoxCopy> copies = {};
};
static std::map<unsigned, ShimBarrier> shimBarriers; // by address
static bool shimPublished, shimCopiesAreLate;

static ShimBarrier &shimBarrier(const unsigned long long *at) {
  auto found = shimBarriers.find(sharedAddress(at));
  if (found == shimBarriers.end())
    shimRule("a barrier that was not made");
  if (!shimPublished)
    shimRule("a barrier that was not published");
  return found->second;
}
static void shimSettle(ShimBarrier &barrier) {
  if (barrier.left > 0 || barrier.bytes != 0)
    return;
  ++barrier.phase;
  barrier.left = barrier.expected;
}

static void makeBarrier(unsigned long long *at, unsigned arrivals) {
  if (sharedAddress(at) % 8 != 0 || arrivals == 0)
    shimRule("mbarrier.init of what is no barrier");
  if (!shimBarriers.insert({sharedAddress(at), {arrivals, arrivals}}).second)
    shimRule("mbarrier.init of a barrier");
}
static void publishBarriers() { shimPublished = true; }
static void arriveAt(unsigned long long *at) {
  ShimBarrier &barrier = shimBarrier(at);
  if (barrier.left == 0)
    shimRule("more arrivals than a phase has");
  --barrier.left;
  shimSettle(barrier);
}
static void arriveExpecting(unsigned long long *at, unsigned bytes) {
  shimBarrier(at).bytes += long(bytes);
  arriveAt(at);
}

static void shimCopyBox(const ShimBoxCopy &copy, ShimBarrier &barrier) {
  const FakeTensorMap &from = copy.from;
  unsigned to = copy.to;
  for (unsigned z = 0; z < from.box[2]; ++z)
    for (unsigned y = 0; y < from.box[1]; ++y)
      for (unsigned x = 0; x < from.box[0]; ++x, to += from.elementBytes) {
        long long at[3] = {copy.at[0] + x, copy.at[1] + y, copy.at[2] + z};
        bool isInside = true;
        for (int d = 0; d < 3; ++d)
          isInside &= at[d] >= 0 && at[d] < (long long)from.sizes[d];
        unsigned char *byte = shimByte(shimSwizzled(to));
        memset(byte, 0, from.elementBytes);
        if (isInside)
          memcpy(byte,
                 (const char *)from.address +
                     at[0] * (long long)from.elementBytes +
                     at[1] * (long long)from.strideBytes[0] +
                     at[2] * (long long)from.strideBytes[1],
                 from.elementBytes);
      }
  barrier.bytes -=
      long(from.box[0] * from.box[1] * from.box[2] * from.elementBytes);
  shimSettle(barrier);
}

template <class Map>
static void loadBox(void *to, const Map *from, int x, int y, int z,
                    unsigned long long *at) {
  static_assert(sizeof(Map) == sizeof(FakeTensorMap), "");
  ShimBoxCopy copy{sharedAddress(to), {}, {x, y, z}};
  memcpy(&copy.from, from, sizeof copy.from);
  if (copy.from.magic != FakeTensorMap::theMagic)
    shimRule("a tensor copy of what is no tensor map");
  if (copy.to % 128 != 0 || copy.from.swizzleBytes != 128 ||
      copy.from.box[0] * copy.from.elementBytes != 128)
    shimRule("a tensor copy whose rows are not the 128 bytes of a swizzle");
  ShimBarrier &barrier = shimBarrier(at);
  if (shimCopiesAreLate)
    barrier.copies.push_back(copy);
  else
    shimCopyBox(copy, barrier);
}

static void awaitPhase(unsigned long long *at, unsigned parity) {
  ShimBarrier &barrier = shimBarrier(at);
  for (long turns = 0; (barrier.phase & 1) == parity; ++turns) {
    if (turns == 1000000)
      shimRule("a phase that is never over");
    // What is waited for comes, one by one.
    if (turns % 2 == 1 && !barrier.copies.empty()) {
      ShimBoxCopy copy = barrier.copies.front();
      barrier.copies.erase(barrier.copies.begin());
      shimCopyBox(copy, barrier);
      continue;
    }
    shimYield();
  }
}

/// A matrix descriptor, and the layout it says.
struct ShimTile {
  unsigned start, leading, stride;
  explicit ShimTile(unsigned long long bits) {
    auto field = [&](unsigned first, unsigned last) {
      return unsigned(bits >> first & ((1ull << (last - first + 1)) - 1));
    };
    start = field(0, 13) << 4;
    leading = field(16, 29) << 4;
    stride = field(32, 45) << 4;
    if (field(62, 63) != 1)
      shimRule("a descriptor that is not of 128-byte swizzle");
    if (field(49, 51) != 0 || field(14, 15) || field(30, 31) || field(46, 48) ||
        field(52, 61))
      shimRule("a descriptor with an offset or with unused bits");
  }
  float value(unsigned address, bool isHalf) const {
    unsigned short bits;
    memcpy(&bits, shimByte(shimSwizzled(address)), 2);
    return isHalf ? shimHalf(bits, 0) : shimBrain(bits, 0);
  }
  /// K-major, ((8, m), (T, 2k)) : ((8T, SBO), (1, T)), T elements of 16 bytes.
  float kMajor(unsigned row, unsigned k, bool isHalf) const {
    return value(start + row % 8 * 128 + row / 8 * stride + k * 2, isHalf);
  }
  /// MN-major, ((T, 8, m), (8, k)) : ((1, T, LBO), (8T, SBO)).
  float mnMajor(unsigned column, unsigned k, bool isHalf) const {
    return value(start + column % 64 * 2 + column / 64 * leading + k % 8 * 128 +
                     k / 8 * stride,
                 isHalf);
  }
};

struct ShimWgmma {
  float *d;
  unsigned columns;
  unsigned long long a, b;
  bool isHalf;
  unsigned long group;
};
struct ShimWgmmas {
  std::vector<ShimWgmma> open;
  unsigned long groups = 0, count = 0;
  bool isFenced = false;
};
static ShimWgmmas shimWgmmas[1024]; // by thread of the block
/// What the first thread of a warpgroup to come gave, by its warpgroup.
static std::vector<std::pair<unsigned long long, unsigned long long>>
    shimWarpgroups[8];

static void beginProducts() { shimWgmmas[shimNow].isFenced = true; }
static void closeProducts() { ++shimWgmmas[shimNow].groups; }

static void shimWgmmaNow(const ShimWgmma &product) {
  ShimTile a(product.a), b(product.b);
  unsigned lane = shimLane(), warp = unsigned(shimNow / 32 % 4);
  for (unsigned e = 0; e < product.columns / 2; ++e) {
    unsigned row = 16 * warp + lane / 4 + e / 2 % 2 * 8,
             column = e / 4 * 8 + lane % 4 * 2 + e % 2;
    for (unsigned k = 0; k < 16; ++k)
      product.d[e] += a.kMajor(row, k, product.isHalf) *
                      b.mnMajor(column, k, product.isHalf);
  }
}

template <int Open>
static void awaitProducts() {
  ShimWgmmas &mine = shimWgmmas[shimNow];
  while (!mine.open.empty() && mine.open.front().group + Open < mine.groups) {
    shimWgmmaNow(mine.open.front());
    mine.open.erase(mine.open.begin());
  }
  if (Open == 0)
    mine.isFenced = false;
}
static void holdSum(float &) {
  if (!shimWgmmas[shimNow].open.empty())
    shimRule("a sum is used before its products are done");
}

static void forgetIndex(int &) {}

static void shimMultiply(float *d, unsigned columns, unsigned long long a,
                         unsigned long long b, bool isHalf) {
  ShimWgmmas &mine = shimWgmmas[shimNow];
  if (!mine.isFenced)
    shimRule("a product of a warpgroup without a fence before it");
  auto &group = shimWarpgroups[shimNow / 128];
  if (mine.count == group.size())
    group.push_back({a, b});
  if (group[mine.count++] != std::pair(a, b))
    shimRule("a warpgroup's threads do not multiply the same tiles");
  mine.open.push_back({d, columns, a, b, isHalf, mine.groups});
}

template <int Sums>
static void multiplyF16(float (&d)[Sums], unsigned long long a,
                        unsigned long long b) {
  shimMultiply(d, 2 * Sums, a, b, true);
}
template <int Sums>
static void multiplyBf16(float (&d)[Sums], unsigned long long a,
                         unsigned long long b) {
  shimMultiply(d, 2 * Sums, a, b, false);
}

/// Before a block: nothing is known of shared memory.
static void shimResetWgmma() {
  if (shimShared)
    memset(shimShared, 0xff, shimSharedBytes);
  shimBarriers.clear();
  shimPublished = false;
  shimCopiesAreLate = (blockIdx.x + blockIdx.y) % 2 == 0;
  for (auto &group : shimWarpgroups)
    group.clear();
}
