// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "kernels/cuda/WgmmaHelpers.h"

namespace mgpu::kernels::cuda {

static constexpr const char *mapText =
    R"(struct __align__(64) MgpuTensorMap { // a CUtensorMap, which the driver makes
  unsigned long long words[16];
};

)";

static constexpr const char *barrierText =
    R"(__device__ __forceinline__ unsigned sharedAddress(const void *at) {
  unsigned address;
  asm("{ .reg .u64 whole; cvta.to.shared.u64 whole, %1; cvt.u32.u64 %0, whole; }" : "=r"(address) : "l"(at));
  return address;
}
// Barriers in shared memory. A phase is over after so many arrivals, and when all bytes that
// were announced have come; phases are counted modulo 2, from 0 on.
__device__ __forceinline__ void makeBarrier(unsigned long long *barrier, unsigned arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" : : "r"(sharedAddress(barrier)), "r"(arrivals) : "memory");
}
// So that the copies see them; other threads do after __syncthreads().
__device__ __forceinline__ void publishBarriers() {
  asm volatile("fence.mbarrier_init.release.cluster;" : : : "memory");
  asm volatile("fence.proxy.async.shared::cta;" : : : "memory");
}
__device__ __forceinline__ void arriveAt(unsigned long long *barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" : : "r"(sharedAddress(barrier)) : "memory");
}
__device__ __forceinline__ void arriveExpecting(unsigned long long *barrier, unsigned bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" : : "r"(sharedAddress(barrier)), "r"(bytes) : "memory");
}
__device__ __forceinline__ void awaitPhase(unsigned long long *barrier, unsigned phase) {
  unsigned isOver;
  do
    asm volatile("{ .reg .pred over; mbarrier.try_wait.parity.shared::cta.b64 over, [%1], %2; selp.b32 %0, 1, 0, over; }"
        : "=r"(isOver) : "r"(sharedAddress(barrier)), "r"(phase) : "memory");
  while (isOver == 0);
}
// By one thread: a box of an array to shared memory; its bytes are told to the barrier.
__device__ __forceinline__ void loadBox(void *to, const MgpuTensorMap *from, int x, int y, int z, unsigned long long *barrier) {
  asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4}], [%5];"
      : : "r"(sharedAddress(to)), "l"(from), "r"(x), "r"(y), "r"(z), "r"(sharedAddress(barrier)) : "memory");
}
// Products of a warpgroup run behind its back, in groups; their sums are its registers, which
// it leaves alone until they are done, and begins with a fence.
__device__ __forceinline__ void beginProducts() { asm volatile("wgmma.fence.sync.aligned;" : : : "memory"); }
__device__ __forceinline__ void closeProducts() { asm volatile("wgmma.commit_group.sync.aligned;" : : : "memory"); }
// Until at most `Open` groups are not done.
template <int Open> __device__ __forceinline__ void awaitProducts() { asm volatile("wgmma.wait_group.sync.aligned %0;" : : "n"(Open) : "memory"); }
// Keep the compiler from moving a sum across, and from remembering what it knows of an index.
__device__ __forceinline__ void holdSum(float &sum) { asm volatile("" : "+f"(sum) : : "memory"); }
__device__ __forceinline__ void forgetIndex(int &index) { asm volatile("" : "+r"(index)); }
)";

static constexpr const char *descriptorText =
    R"(
// A tile in shared memory, in rows of 128 bytes whose 16-byte parts are swizzled: the PTX ISA's
// matrix descriptor. `stride` bytes lie between 8 rows and the next 8; of a tile whose rows are
// steps of k, `leading` bytes between 64 columns and the next 64.
__device__ __forceinline__ unsigned long long tileDescriptor(unsigned address, unsigned leading, unsigned stride) {
  return (unsigned long long)((address & 0x3ffff) >> 4) | (unsigned long long)(leading >> 4) << 16 |
         (unsigned long long)(stride >> 4) << 32 | 1ull << 62;
}
)";

/// Eight sums as operands of a product.
static constexpr const char *sumsMacro =
    "#define MGPU_SUMS(k) \"+f\"(d[k]), \"+f\"(d[k + 1]), \"+f\"(d[k + 2]), "
    "\"+f\"(d[k + 3]), \\\n"
    "                     \"+f\"(d[k + 4]), \"+f\"(d[k + 5]), \"+f\"(d[k + "
    "6]), \"+f\"(d[k + 7])\n";

/// "{%0, %1, ..., %31}", in lines.
static std::string registerList(unsigned count) {
  std::string list = "{";
  for (unsigned k = 0; k < count; ++k) {
    if (k % 16 == 0 && k > 0)
      list += "\"\n      \"";
    list += "%" + std::to_string(k) + (k + 1 < count ? ", " : "}");
  }
  return list;
}

std::string productName(const std::string &type, bool byRows) {
  return std::string(type == "f16" ? "multiplyF16" : "multiplyBf16") +
         (byRows ? "ByRows" : "");
}

static std::string productText(const std::string &type, bool byRows,
                               unsigned columns) {
  const unsigned sums = columns / 2; // of 64 rows, by 128 threads
  std::string name = "wgmma.mma_async.sync.aligned.m64n" +
                     std::to_string(columns) + "k16.f32." + type + "." + type,
              operands;
  for (unsigned k = 0; k < sums; k += 8)
    operands += (k == 0   ? ""
                 : k % 32 ? ", "
                          : ",\n        ") +
                ("MGPU_SUMS(" + std::to_string(k) + ")");
  auto operand = [&](unsigned k) { return "%" + std::to_string(sums + k); };
  return "__device__ __forceinline__ void " + productName(type, byRows) +
         "(float (&d)[" + std::to_string(sums) +
         "], unsigned long long a, unsigned long long b) {\n"
         "  asm volatile(\"{ .reg .pred add; setp.ne.b32 add, " +
         operand(2) + ", 0; " + name + "\\n\"\n      \"" + registerList(sums) +
         ", " + operand(0) + ", " + operand(1) + ", add, 1, 1, 0, " +
         (byRows ? "0" : "1") + "; }\"\n" + "      : " + operands + "\n" +
         "      : \"l\"(a), \"l\"(b), \"r\"(1) : \"memory\");\n}\n";
}

std::string wgmmaHelpers(const std::string &type, bool byRows) {
  std::string text = std::string(mapText) + barrierText;
  text += "// d += a * b, of 64 rows of a by columns of b whose " +
          std::string(byRows ? "columns" : "rows") + " are steps of k; " +
          type +
          ", 16 steps. The\n"
          "// registers of a thread are those of the PTX ISA's fragment "
          "D.\n" +
          sumsMacro + "#if MGPU_TILE_X == 2\n" + productText(type, byRows, 64) +
          "#elif MGPU_TILE_X == 4\n" + productText(type, byRows, 128) +
          "#else\n" + productText(type, byRows, 256) + "#endif\n";
  return text + descriptorText;
}

static constexpr const char *tokenText =
    R"(__device__ __forceinline__ unsigned long long arriveForToken(unsigned long long *barrier) {
  unsigned long long token;
  asm volatile("mbarrier.arrive.shared::cta.b64 %0, [%1];" : "=l"(token) : "r"(sharedAddress(barrier)) : "memory");
  return token;
}
__device__ __forceinline__ void awaitToken(unsigned long long *barrier, unsigned long long token) {
  unsigned isOver;
  do
    asm volatile("{ .reg .pred over; mbarrier.try_wait.shared::cta.b64 over, [%1], %2; selp.b32 %0, 1, 0, over; }"
        : "=r"(isOver) : "r"(sharedAddress(barrier)), "l"(token) : "memory");
  while (isOver == 0);
}
// What threads did to shared memory comes before the copies and products that follow.
__device__ __forceinline__ void fenceCopies() { asm volatile("fence.proxy.async.shared::cta;" : : : "memory"); }
__device__ __forceinline__ void prefetchMap(const MgpuTensorMap *map) {
  asm volatile("prefetch.tensormap [%0];" : : "l"(map) : "memory");
}
)";

/// Copies beside those that products have.
static constexpr const char *boxText =
    R"(__device__ __forceinline__ void loadBox(void *to, const MgpuTensorMap *from, int x, int y, int z, int w, unsigned long long *barrier) {
  asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4, %5}], [%6];"
      : : "r"(sharedAddress(to)), "l"(from), "r"(x), "r"(y), "r"(z), "r"(w), "r"(sharedAddress(barrier)) : "memory");
}
__device__ __forceinline__ void loadBox(void *to, const MgpuTensorMap *from, int x, int y, int z, int w, int v, unsigned long long *barrier) {
  asm volatile("cp.async.bulk.tensor.5d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4, %5, %6}], [%7];"
      : : "r"(sharedAddress(to)), "l"(from), "r"(x), "r"(y), "r"(z), "r"(w), "r"(v), "r"(sharedAddress(barrier)) : "memory");
}
__device__ __forceinline__ void storeBox(const void *from, const MgpuTensorMap *to, int x, int y, int z) {
  asm volatile("cp.async.bulk.tensor.3d.global.shared::cta.tile.bulk_group [%1, {%2, %3, %4}], [%0];"
      : : "r"(sharedAddress(from)), "l"(to), "r"(x), "r"(y), "r"(z) : "memory");
}
__device__ __forceinline__ void storeBox(const void *from, const MgpuTensorMap *to, int x, int y, int z, int w) {
  asm volatile("cp.async.bulk.tensor.4d.global.shared::cta.tile.bulk_group [%1, {%2, %3, %4, %5}], [%0];"
      : : "r"(sharedAddress(from)), "l"(to), "r"(x), "r"(y), "r"(z), "r"(w) : "memory");
}
__device__ __forceinline__ void storeBox(const void *from, const MgpuTensorMap *to, int x, int y, int z, int w, int v) {
  asm volatile("cp.async.bulk.tensor.5d.global.shared::cta.tile.bulk_group [%1, {%2, %3, %4, %5, %6}], [%0];"
      : : "r"(sharedAddress(from)), "l"(to), "r"(x), "r"(y), "r"(z), "r"(w), "r"(v) : "memory");
}
// Until what this thread stored is there.
__device__ __forceinline__ void awaitStores() {
  asm volatile("cp.async.bulk.commit_group;" : : : "memory");
  asm volatile("cp.async.bulk.wait_group 0;" : : : "memory");
}
)";

static constexpr const char *copyText =
    R"(// Rows are swizzled by their address, and as the source counts them: both begin at one place.
template <int Swizzle> __device__ __forceinline__ void fenceTile(const void *tile) {
  if (sharedAddress(tile) % (Swizzle ? 8 * Swizzle : 128) != 0)
    __trap();
  fenceCopies();
}
template <int Swizzle, class... At> __device__ __forceinline__ void loadTensor(void *to, const MgpuTensorMap *from, unsigned long long *barrier, At... at) {
  fenceTile<Swizzle>(to);
  loadBox(to, from, at..., barrier);
}
template <int Swizzle, class... At> __device__ __forceinline__ void storeTensor(const void *from, const MgpuTensorMap *to, At... at) {
  fenceTile<Swizzle>(from);
  storeBox(from, to, at...);
  awaitStores();
}
// Dynamic memory from where such patterns begin.
__device__ __forceinline__ unsigned char *afterPadding(unsigned char *memory) {
  return memory + (1024 - sharedAddress(memory) % 1024) % 1024;
}
)";

static constexpr const char *tileText =
    R"(__device__ __forceinline__ unsigned tileAddress(const void *tile) {
  const unsigned address = sharedAddress(tile);
  if (address % 1024 != 0)
    __trap();
  fenceCopies();
  return address;
}
)";

std::string
barrierHelpers(const std::set<std::pair<std::string, unsigned>> &products) {
  std::string text = std::string(mapText) + "#if MGPU_BULK\n" + barrierText +
                     tokenText + boxText + copyText;
  if (!products.empty()) {
    text += std::string("#if MGPU_WARPGROUPS\n") + sumsMacro;
    for (const auto &[type, columns] : products)
      text += productText(type, /*byRows=*/false, columns);
    text += std::string(descriptorText) + tileText + "#endif\n";
  }
  return text + "#else\n#define afterPadding(memory) (memory)\n#endif\n";
}

} // namespace mgpu::kernels::cuda
