// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Products of warpgroups: every type and layout against sums of whole numbers,
// and each rule that a GPU does not report.
#include "tests/unit/ptx/Kernel.h"

#include <bit>
#include <cmath>

namespace mgpu::kernels::ptx {
namespace {

/// A type of the factors: the bits of small whole numbers.
struct Type {
  const char *name;
  uint32_t bytes;
  uint32_t bits[5]; ///< of -2 to 2
};
constexpr Type types[] = {
    {"f16", 2, {0xc000, 0xbc00, 0, 0x3c00, 0x4000}},
    {"bf16", 2, {0xc000, 0xbf80, 0, 0x3f80, 0x4000}},
    {"tf32", 4, {0xc0000000, 0xbf800000, 0, 0x3f800000, 0x40000000}},
    {"e4m3", 1, {0xc0, 0xb8, 0, 0x38, 0x40}},
    {"e5m2", 1, {0xc0, 0xbc, 0, 0x3c, 0x40}},
    {"s8", 1, {0xfe, 0xff, 0, 1, 2}}};

int valueA(uint32_t row, uint32_t k) { return int((row * 7 + k * 3) % 5) - 2; }
int valueB(uint32_t column, uint32_t k) {
  return int((column * 5 + k * 11 + column / 8) % 5) - 2;
}

/// How a matrix lies in shared memory, as CUTLASS writes the manual's layouts:
/// rows of `span` bytes, or of 16 without a swizzle.
struct Layout {
  uint32_t span;
  bool isTurned = false;
  uint32_t mode() const {
    return span == 128 ? 1 : span == 64 ? 2 : span == 32 ? 3 : 0;
  }
  /// The leading dimension's offset of a matrix of `rows` by `steps`.
  uint32_t leading(uint32_t rows, uint32_t steps, uint32_t bytes) const {
    if (span == 0)
      return isTurned ? 128 * rows * bytes / 16 : 128 * rows / 8;
    return isTurned ? steps * span : 16;
  }
  uint32_t stride() const { return span == 0 ? 128 : 8 * span; }
  uint32_t at(uint32_t row, uint32_t k, uint32_t rows, uint32_t steps,
              uint32_t bytes) const {
    const uint32_t across = isTurned ? k : row;
    const uint32_t along = (isTurned ? row : k) * bytes;
    const uint32_t far = leading(rows, steps, bytes);
    if (span == 0)
      return isTurned ? along / 16 * 128 + across / 8 * far + across % 8 * 16 +
                            along % 16
                      : across / 8 * 128 + along / 16 * far + across % 8 * 16 +
                            along % 16;
    const uint32_t plain = across * span + along / span * far + along % span;
    const uint32_t mask = span / 16 - 1;
    return plain ^ ((plain >> 3) & (mask << 4));
  }
};

constexpr uint32_t placeOfB = 32768, sharedBytes = 65536;

struct Product {
  Type type = types[0];
  Layout a{128}, b{128};
  uint32_t n = 64, steps = 0; ///< along k, of an instruction's
  bool isInRegisters = false;
  std::string sum = "f32";

  uint32_t k() const { return 32 / type.bytes; }
  uint32_t all() const { return k() * steps; }
  uint32_t numD() const { return n / 2 / (sum == "f16" ? 2 : 1); }

  void fill(std::byte *to, const Layout &layout, uint32_t rows,
            int (*value)(uint32_t, uint32_t)) const {
    for (uint32_t row = 0; row < rows; ++row)
      for (uint32_t k = 0; k < all(); ++k)
        std::memcpy(to + layout.at(row, k, rows, all(), type.bytes),
                    &type.bits[value(row, k) + 2], type.bytes);
  }
  std::string descriptor(const Layout &layout, uint32_t start, uint32_t rows,
                         uint32_t step) const {
    // A step of k lies beside the last one, or behind it.
    const uint32_t far = layout.at(0, step * k(), rows, all(), type.bytes);
    const uint64_t bits =
        uint64_t(start >> 4) |
        uint64_t(layout.leading(rows, all(), type.bytes) >> 4) << 16 |
        uint64_t(layout.stride() >> 4) << 32 | uint64_t(layout.mode()) << 62;
    return "mov.u64 %rd9, " + std::to_string(bits + (far >> 4)) + ";";
  }
  static std::string list(const char *name, uint32_t count) {
    std::string out = "{";
    for (uint32_t k = 0; k < count; ++k)
      out += (k ? ", %" : "%") + (name + std::to_string(k));
    return out + "}";
  }
  std::string registers() const {
    return list(sum == "f32" ? "s" : "i", numD());
  }
  /// The product of one step; %rd10 is A's descriptor, %rd11 B's.
  std::string instruction() const {
    const bool hasSigns = sum != "s32", isHalf = type.bytes == 2;
    return "wgmma.mma_async.sync.aligned.m64n" + std::to_string(n) + "k" +
           std::to_string(k()) + "." + sum + "." + type.name + "." + type.name +
           " " + registers() + ", " +
           (isInRegisters ? "{%a0,%a1,%a2,%a3}" : "%rd10") + ", %rd11, %p8" +
           (hasSigns ? ", 1, 1" : "") +
           (!isHalf ? ""
                    : std::string(isInRegisters ? ""
                                  : a.isTurned  ? ", 1"
                                                : ", 0") +
                          (b.isTurned ? ", 1" : ", 0")) +
           ";\n";
  }
  std::string descriptors(uint32_t step) const {
    return descriptor(a, 0, 64, step) + "mov.u64 %rd10, %rd9;" +
           descriptor(b, placeOfB, n, step) + "mov.u64 %rd11, %rd9;\n";
  }
  /// D to the words behind the matrices, a thread's one behind the other.
  std::string stores() const {
    std::string out = "mad.lo.u32 %r2, %r1, " + std::to_string(numD() * 4) +
                      ", 65536; cvt.u64.u32 %rd2, %r2;"
                      "add.s64 %rd2, %rd1, %rd2;\n";
    for (uint32_t k = 0; k < numD(); ++k)
      out += "st.global.b32 [%rd2+" + std::to_string(4 * k) + "], %" +
             (sum == "f32" ? "s" : "i") + std::to_string(k) + ";\n";
    return out;
  }
};

/// All threads copy the matrices to shared memory.
constexpr const char *toShared =
    ".reg .f32 %s<128>; .reg .b32 %i<128>; .reg .b32 %a<4>; .reg .b32 %w;\n"
    "mov.u32 %r1, %tid.x; shl.b32 %r2, %r1, 2; mov.u32 %r3, s;\n"
    "copy: add.u32 %r4, %r3, %r2; cvt.u64.u32 %rd3, %r2;\n"
    "add.s64 %rd4, %rd1, %rd3; ld.global.u32 %w, [%rd4];\n"
    "st.shared.u32 [%r4], %w; add.u32 %r2, %r2, 512;\n"
    "setp.lt.u32 %p1, %r2, 65536; @%p1 bra copy;\n";

struct WarpgroupKernel {
  explicit WarpgroupKernel(const Product &product) : product(product) {
    for (uint32_t step = 0; step < product.steps; ++step) {
      body += product.descriptors(step);
      if (step == 0)
        body += "setp.ne.u32 %p8, 0, 0;\n";
      if (product.isInRegisters)
        body += registersOfA(step);
      body += step == 0 || product.isInRegisters ? fence : "";
      body += product.instruction() + "setp.eq.u32 %p8, 0, 0;\n";
      if (product.isInRegisters)
        body += end;
    }
    body += end + product.stores();
  }
  /// The fragment, from the words of A without a layout.
  std::string registersOfA(uint32_t step) const {
    std::string out;
    const uint32_t row = product.all() * product.type.bytes;
    for (uint32_t r = 0; r < 4; ++r)
      out += "shr.u32 %r5, %r1, 5; shl.b32 %r5, %r5, 4; and.b32 %r6, %r1, 31;"
             "shr.u32 %r7, %r6, 2; add.u32 %r5, %r5, %r7; add.u32 %r5, %r5, " +
             std::to_string(r % 2 * 8) + "; mul.lo.u32 %r5, %r5, " +
             std::to_string(row) +
             "; and.b32 %r7, %r1, 3; shl.b32 %r7, %r7, 2;"
             "add.u32 %r5, %r5, %r7; cvt.u64.u32 %rd3, %r5;"
             "add.s64 %rd3, %rd1, %rd3; ld.global.u32 %a" +
             std::to_string(r) + ", [%rd3+" +
             std::to_string(step * 32 + r / 2 * 16) + "];\n";
    return out;
  }
  std::string run(uint64_t seed = 0, bool isEarly = false) {
    Kernel kernel(toShared + afterCopy + body,
                  ".shared .align 1024 .b8 s[65536];");
    kernel.words.assign(65536 / 4 + 128 * 128, 0);
    auto *bytes = reinterpret_cast<std::byte *>(kernel.words.data());
    Layout first = product.a;
    if (product.isInRegisters) { // one row behind the other
      for (uint32_t row = 0; row < 64; ++row)
        for (uint32_t k = 0; k < product.all(); ++k)
          std::memcpy(bytes + (row * product.all() + k) * product.type.bytes,
                      &product.type.bits[valueA(row, k) + 2],
                      product.type.bytes);
    } else {
      product.fill(bytes, first, 64, valueA);
    }
    product.fill(bytes + placeOfB, product.b, product.n, valueB);
    kernel.options.block.x = threads;
    kernel.options.seed = seed;
    kernel.options.isEarly = isEarly;
    const std::string error = kernel.run();
    words.assign(kernel.words.begin() + 65536 / 4, kernel.words.end());
    return error;
  }
  double valueOf(uint32_t thread, uint32_t at) const {
    if (product.sum == "f16") {
      const uint32_t word = words[thread * product.numD() + at / 2];
      return halfOf(uint16_t(word >> (at % 2 * 16)));
    }
    const uint32_t word = words[thread * product.numD() + at];
    return product.sum == "s32" ? double(int32_t(word))
                                : double(std::bit_cast<float>(word));
  }
  static double halfOf(uint16_t bits) {
    const double size =
        std::ldexp(1024 + (bits & 1023), (bits >> 10 & 31) - 25);
    return (bits & 0x7fff) == 0 ? 0 : bits >> 15 ? -size : size;
  }
  void check() {
    for (auto [seed, isEarly] : {std::pair(0, false), {0, true}, {3, false}}) {
      ASSERT_EQ(run(uint64_t(seed), isEarly), "");
      for (uint32_t thread = 0; thread < 128; ++thread)
        for (uint32_t at = 0; at < product.n / 2; ++at) {
          const uint32_t row =
              thread / 32 * 16 + thread % 32 / 4 + at / 2 % 2 * 8;
          const uint32_t column = at / 4 * 8 + thread % 4 * 2 + at % 2;
          int sum = 0;
          for (uint32_t k = 0; k < product.all(); ++k)
            sum += valueA(row, k) * valueB(column, k);
          ASSERT_EQ(valueOf(thread, at), sum) << row << " " << column;
        }
    }
  }

  Product product;
  std::string afterCopy = "fence.proxy.async; bar.sync 0;\n", body,
              fence = "wgmma.fence.sync.aligned;\n",
              end = "wgmma.commit_group.sync.aligned;\n"
                    "wgmma.wait_group.sync.aligned 0;\n";
  uint32_t threads = 128;
  std::vector<uint32_t> words;
};

TEST(PtxWarpgroup, EveryTypeUnderEverySwizzle) {
  for (const Type &type : types)
    for (uint32_t span : {0u, 32u, 64u, 128u})
      for (uint32_t n : {8u, 24u, 128u, 256u}) {
        Product product;
        product.type = type;
        product.a = product.b = {span};
        product.steps = std::max(span, 32u) / 32;
        product.n = n;
        product.sum = type.name == std::string("s8") ? "s32" : "f32";
        SCOPED_TRACE(std::string(type.name) + ", swizzle " +
                     std::to_string(span) + ", n " + std::to_string(n));
        WarpgroupKernel(product).check();
        if (HasFatalFailure())
          return;
      }
}

TEST(PtxWarpgroup, FactorAInRegisters) {
  for (const Type &type : types)
    for (uint32_t n : {16u, 64u}) {
      Product product;
      product.type = type;
      product.steps = 4;
      product.n = n;
      product.isInRegisters = true;
      product.sum = type.name == std::string("s8") ? "s32" : "f32";
      SCOPED_TRACE(type.name);
      WarpgroupKernel(product).check();
    }
}

TEST(PtxWarpgroup, TurnedFactors) {
  for (const Type &type : {types[0], types[1]})
    for (uint32_t span : {0u, 32u, 64u, 128u})
      for (auto [turnsA, turnsB] :
           {std::pair(false, true), {true, false}, {true, true}}) {
        Product product;
        product.type = type;
        product.steps = std::max(span, 32u) / 32;
        product.a = {span, turnsA};
        product.b = {span, turnsB};
        SCOPED_TRACE(std::string(type.name) + ", swizzle " +
                     std::to_string(span) + (turnsA ? " a" : "") +
                     (turnsB ? " b" : ""));
        WarpgroupKernel(product).check();
        if (HasFatalFailure())
          return;
      }
}

TEST(PtxWarpgroup, SumsOfHalves) {
  for (const Type &type : {types[0], types[3], types[4]}) {
    Product product;
    product.type = type;
    product.steps = 4;
    product.sum = "f16";
    WarpgroupKernel(product).check();
  }
}

//===----------------------------------------------------------------------===//
// Faults
//===----------------------------------------------------------------------===//

Product plainProduct() {
  Product product;
  product.steps = 4;
  return product;
}
void expectFault(WarpgroupKernel kernel, const char *part) {
  for (auto [seed, isEarly] :
       {std::pair(0, false), {0, true}, {1, false}, {2, false}}) {
    const std::string error = kernel.run(uint64_t(seed), isEarly);
    EXPECT_NE(error.find(part), error.npos) << error;
  }
}
std::string without(std::string text, const std::string &part,
                    const std::string &by = "") {
  const size_t at = text.find(part);
  EXPECT_NE(at, text.npos);
  return text.replace(at, part.size(), by);
}

TEST(PtxWarpgroup, AMissingProxyFence) {
  WarpgroupKernel kernel(plainProduct());
  kernel.afterCopy = "bar.sync 0;\n";
  expectFault(kernel, "without fence.proxy.async");
  kernel.afterCopy = "bar.sync 0; fence.proxy.async;\n"; // each thread's own
  EXPECT_EQ(kernel.run(), "");
}

TEST(PtxWarpgroup, AMissingBarrier) {
  WarpgroupKernel kernel(plainProduct());
  kernel.afterCopy = "fence.proxy.async;\n";
  EXPECT_NE(kernel.run(), "");
}

TEST(PtxWarpgroup, SumsReadBeforeTheWait) {
  WarpgroupKernel kernel(plainProduct());
  const std::string body = kernel.body;
  kernel.body = without(body, "wgmma.wait_group.sync.aligned 0;");
  expectFault(kernel, "before wgmma.wait_group");
  kernel.body =
      without(body, "wait_group.sync.aligned 0", "wait_group.sync.aligned 1");
  expectFault(kernel, "before wgmma.wait_group");
  kernel.body = without(body, "wgmma.commit_group.sync.aligned;");
  expectFault(kernel, "before wgmma.wait_group");
}

TEST(PtxWarpgroup, SumsTouchedWithoutAFence) {
  WarpgroupKernel kernel(plainProduct());
  const std::string body = kernel.body;
  kernel.body = without(body, "wgmma.fence.sync.aligned;");
  expectFault(kernel, "since the last wgmma.fence");
  kernel.body = without(body, "wgmma.fence.sync.aligned;",
                        "wgmma.fence.sync.aligned; mov.f32 %s3, 0f00000000;");
  expectFault(kernel, "register 3 of D");
}

TEST(PtxWarpgroup, FactorsInRegistersAreLeftAlone) {
  Product product = plainProduct();
  product.isInRegisters = true;
  WarpgroupKernel kernel(product);
  const std::string body = kernel.body;
  kernel.body = without(body, "wgmma.commit_group.sync.aligned;",
                        "mov.b32 %a1, 0; wgmma.commit_group.sync.aligned;");
  expectFault(kernel, "before wgmma.wait_group");
  kernel.body = without(body, "wgmma.fence.sync.aligned;");
  expectFault(kernel, "since the last wgmma.fence");
}

TEST(PtxWarpgroup, BytesWrittenWhileAProductReadsThem) {
  WarpgroupKernel kernel(plainProduct());
  kernel.body = without(kernel.body, "wgmma.commit_group",
                        "st.shared.u32 [s+32768], 0; wgmma.commit_group");
  expectFault(kernel, "shared memory at offset 32768");
}

/// One bit of the descriptor, or of the address: the sums are other ones, or
/// the matrix is none.
TEST(PtxWarpgroup, AWrongSwizzle) {
  WarpgroupKernel kernel(plainProduct());
  ASSERT_EQ(kernel.run(), "");
  const std::vector<uint32_t> right = kernel.words;
  Product other = plainProduct();
  other.a.span = 64; // as it lies, but not as the descriptor says
  std::string body = kernel.body;
  for (uint32_t step = 0; step < 4; ++step)
    body =
        without(body, plainProduct().descriptor(plainProduct().a, 0, 64, step),
                other.descriptor(other.a, 0, 64, step % 2));
  kernel.body = body;
  EXPECT_EQ(kernel.run(), "");
  EXPECT_NE(kernel.words, right);
  WarpgroupKernel moved(plainProduct());
  for (uint32_t step = 0; step < 4; ++step)
    moved.body = without(
        moved.body, plainProduct().descriptor(plainProduct().a, 0, 64, step),
        plainProduct().descriptor(plainProduct().a, 128, 64, step));
  expectFault(moved, "within the pattern of its swizzle");
}

TEST(PtxWarpgroup, AWholeWarpgroupMultipliesTheSame) {
  WarpgroupKernel kernel(plainProduct());
  const std::string body = kernel.body;
  kernel.body = "setp.ge.u32 %p7, %r1, 96;\n" +
                without(body, "mov.u64 %rd11, %rd9;",
                        "mov.u64 %rd11, %rd9; @%p7 add.u64 %rd11, %rd11, 64;");
  expectFault(kernel, "do not multiply the same");
  kernel.body = "setp.ge.u32 %p7, %r1, 96; @%p7 ret;\n" + body;
  expectFault(kernel, "after different products");
  kernel.body = body;
  kernel.threads = 96;
  EXPECT_NE(kernel.run().find("a whole warpgroup"), std::string::npos);
}

TEST(PtxWarpgroup, Refusals) {
  for (const char *wrong :
       {"m64n64k8.f32.f16.f16", "m64n64k16.f16.bf16.bf16",
        "m64n260k16.f32.f16.f16", "m64n64k16.f32.f16.bf16"}) {
    WarpgroupKernel kernel(plainProduct());
    kernel.body = without(kernel.body, "m64n64k16.f32.f16.f16", wrong);
    EXPECT_NE(kernel.run().find("not executed"), std::string::npos) << wrong;
  }
}

} // namespace
} // namespace mgpu::kernels::ptx
