// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The form of matrix products on the host (kernels/host/PackedProduct.h): at
// every x86-64 level its bits are those of the documented order, each element
// of C adding its products in order of k to what it began with, at sizes beside
// those of tiles, in views, in batches, in parts of a launch, and with NaN and
// infinities beside the edges.
#include "kernels/host/PackedProduct.h"
#include "KernelRunner.h"
#include "kernels/host/ProductTiles.h"
#include "kernels/lower/KernelDialects.h"

#include "mlir/Parser/Parser.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fmt/format.h>
#include <limits>

namespace mgpu::kernels {
namespace {

/// As the importer has it; the last of a row may lie beyond C with most of it.
constexpr Dim3 block{32, 8, 1};

/// C = A B, or with `isAround` C = max(A B + C + v, 0), where v is a row. Rows
/// of A are `pad` longer than k; those of a turned B are its columns.
struct Product {
  int64_t m, n, k, batch = 1;
  bool isTurned = false, isAround = false, isFused = true;
  int64_t pad = 0;
  std::string factor = "f32", sum = "f32";
  bool mayPart = false; ///< its fma is a step that ProductSteps.h made

  int64_t rowOfA() const { return k + pad; }
  int64_t rowOfB() const { return isTurned ? k : n; }
  Dim3 grid() const {
    return {uint32_t((n + block.x - 1) / block.x),
            uint32_t((m + block.y - 1) / block.y), uint32_t(batch)};
  }
  std::string name() const {
    return fmt::format("{}x{}x{}{}*{}{}{} pad {} {} {}", m, n, k,
                       isTurned ? "t" : "", batch, isAround ? " around" : "",
                       isFused ? "" : " apart", pad, factor, sum);
  }
};

/// The kernel as the importer writes it.
std::string textOf(const Product &p) {
  auto strided = [&](int64_t rows, int64_t columns, int64_t row,
                     const std::string &type) {
    return fmt::format("memref<{}x{}x{}x{}, strided<[{}, {}, 1]>>", p.batch,
                       rows, columns, type, rows * row, row);
  };
  auto matrix = [&](int argument, int64_t rows, int64_t columns, int64_t down,
                    int64_t right, int64_t batch) {
    return fmt::format("<argument = {}, rows = {}, columns = {}, rowStride = "
                       "{}, columnStride = {}, batch = {}, batchStride = {}>",
                       argument, rows, columns, down, right, p.batch, batch);
  };
  const std::string a = strided(p.m, p.k, p.rowOfA(), p.factor),
                    b = p.isTurned ? strided(p.n, p.k, p.k, p.factor)
                                   : strided(p.k, p.n, p.n, p.factor),
                    c = strided(p.m, p.n, p.n, p.sum),
                    v = fmt::format("memref<{}x{}>", p.n, p.sum);
  const bool isWide = p.factor != p.sum;
  auto element = [&](const char *name, const std::string &type,
                     const std::string &index) {
    std::string text = fmt::format("%{0} = memref.load %{1}[%z, {2}] : {3}\n",
                                   isWide ? std::string(name) + "n" : name,
                                   name[0], index, type);
    if (isWide)
      text += fmt::format("%{0} = arith.extf %{0}n : {1} to {2}\n", name,
                          p.factor, p.sum);
    return text;
  };
  const std::string step =
      p.isFused ? fmt::format("%new = math.fma %ae, %be, %old {}: {}\n",
                              p.mayPart ? "fastmath<contract> " : "", p.sum)
                : fmt::format("%mul = arith.mulf %ae, %be : {0}\n"
                              "%new = arith.addf %old, %mul : {0}\n",
                              p.sum);
  std::string last = fmt::format("memref.store %s, %c[%z, %j, %i] : {}\n", c);
  if (p.isAround)
    last = fmt::format("%ve = memref.load %v[%i] : {0}\n"
                       "%t = arith.addf %s, %ve : {2}\n"
                       "%r = arith.maximumf %t, %zero : {2}\n"
                       "memref.store %r, %c[%z, %j, %i] : {1}\n",
                       v, c, p.sum);
  const std::string first =
      p.isAround ? fmt::format("%begin = memref.load %c[%z, %j, %i] : {}\n", c)
                 : fmt::format("%begin = arith.constant 0.0 : {}\n", p.sum);
  return fmt::format(
      R"(func.func @entry(%a: {a}, %b: {b}, %c: {c}, %v: {v}) attributes {{
  mgpu.product = #mgpu.product<m = {m}, n = {n}, k = {k}, a = {factor}, b = {factor}, c = {sum},
  batch = {batch}, turned = {turned} : [{ma}, {mb}]>}} {{
  %i = gpu.global_id x {{mgpu.mark = #mgpu.mark<global_x>}}
  %j = gpu.global_id y {{mgpu.mark = #mgpu.mark<global_y>}}
  %z = gpu.global_id z {{mgpu.mark = #mgpu.mark<global_z>}}
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %m = arith.constant {m} : index
  %n = arith.constant {n} : index
  %k = arith.constant {k} : index
  %zero = arith.constant 0.0 : {sum}
  %x = arith.cmpi slt, %i, %n : index
  %y = arith.cmpi slt, %j, %m : index
  %inside = arith.andi %x, %y : i1
  scf.if %inside {{
    {first}
    %s = scf.for %step = %c0 to %k step %c1 iter_args(%old = %begin) -> {sum} {{
      {ae}{be}{mac}scf.yield %new : {sum}
    }} {{mgpu.mark = #mgpu.mark<product_loop>}}
    {last}
  }}
  return
}})",
      fmt::arg("a", a), fmt::arg("b", b), fmt::arg("c", c), fmt::arg("v", v),
      fmt::arg("m", p.m), fmt::arg("n", p.n), fmt::arg("k", p.k),
      fmt::arg("factor", p.factor), fmt::arg("sum", p.sum),
      fmt::arg("batch", p.batch), fmt::arg("turned", p.isTurned && p.k > 1),
      fmt::arg("ma", matrix(0, p.m, p.k, p.rowOfA(), 1, p.m * p.rowOfA())),
      fmt::arg("mb", p.isTurned ? matrix(1, p.k, p.n, 1, p.k, p.k * p.n)
                                : matrix(1, p.k, p.n, p.n, 1, p.k * p.n)),
      fmt::arg("first", first), fmt::arg("mac", step), fmt::arg("last", last),
      fmt::arg("ae", element("ae", a, "%j, %step")),
      fmt::arg("be", element("be", b, p.isTurned ? "%i, %step" : "%step, %i")));
}

/// The order of docs/numerics.md. `A` and `B` are as they lie in memory.
template <typename T>
void reference(const Product &p, const std::vector<T> &a,
               const std::vector<T> &b, std::vector<T> &c,
               const std::vector<T> &v) {
  for (int64_t z = 0; z < p.batch; ++z)
    for (int64_t i = 0; i < p.m; ++i)
      for (int64_t j = 0; j < p.n; ++j) {
        T &to = c[size_t((z * p.m + i) * p.n + j)];
        T sum = p.isAround ? to : T(0);
        for (int64_t k = 0; k < p.k; ++k) {
          const T x = a[size_t((z * p.m + i) * p.rowOfA() + k)];
          const T y = b[size_t(z * p.k * p.n +
                               (p.isTurned ? j * p.k + k : k * p.n + j))];
          if (p.isFused) {
            sum = std::fma(x, y, sum);
          } else {
            volatile T product = x * y;
            sum = sum + product;
          }
        }
        if (p.isAround) {
          sum = sum + v[size_t(j)];
          sum = std::isnan(sum) || sum > 0 ? sum : T(0);
        }
        to = sum;
      }
}

/// Numbers of many sizes, among them zeros of both signs and denormals.
template <typename T>
std::vector<T> numbers(int64_t count, uint32_t seed) {
  std::vector<float> raw = randomFloats(size_t(count), seed);
  std::vector<T> out(raw.begin(), raw.end());
  for (size_t k = 0; k < out.size(); ++k)
    if (k % 13 == 5)
      out[k] = k % 2 ? T(0) : -T(0);
    else if (k % 17 == 3)
      out[k] *= std::numeric_limits<T>::denorm_min();
    else if (k % 7 == 2)
      out[k] *= T(1e-3);
  return out;
}

template <typename T>
bool equal(const std::vector<T> &x, const std::vector<T> &y) {
  for (size_t k = 0; k < x.size(); ++k)
    if (std::memcmp(&x[k], &y[k], sizeof(T)) != 0 &&
        !(std::isnan(x[k]) && std::isnan(y[k])))
      return false;
  return true;
}

/// What stands in memory before and behind each array.
constexpr size_t guard = 64;

/// A copy between guards of NaN, as a kernel is given it.
template <typename T>
struct Guarded {
  explicit Guarded(const std::vector<T> &inside)
      : all(inside.size() + 2 * guard, std::numeric_limits<T>::quiet_NaN()) {
    std::copy(inside.begin(), inside.end(), all.begin() + guard);
  }
  uint64_t address() { return uint64_t(all.data() + guard); }
  std::vector<T> inside() const {
    return {all.begin() + guard, all.end() - guard};
  }
  bool isWhole() const {
    auto isNan = [](T x) { return std::isnan(x); };
    return std::all_of(all.begin(), all.begin() + guard, isNan) &&
           std::all_of(all.end() - guard, all.end(), isNan);
  }
  std::vector<T> all;
};

/// Whether the kernel has the form on a processor.
bool isPacked(const Product &p, host::VectorUnit unit) {
  mlir::DialectRegistry registry;
  registerHostEmitDialects(registry);
  mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
  auto module = mlir::parseSourceString<mlir::ModuleOp>(textOf(p), &context);
  return module && host::packedForm(*module, unit);
}

bool runs(const std::string &cpu) {
  return cpu == "x86-64-v2"   ? __builtin_cpu_supports("x86-64-v2")
         : cpu == "x86-64-v3" ? __builtin_cpu_supports("x86-64-v3")
                              : __builtin_cpu_supports("x86-64-v4");
}

/// Runs `p` on these numbers at each level, whole and in parts.
template <typename T>
void check(const Product &p, const std::vector<T> &a, const std::vector<T> &b) {
  const std::vector<T> c = numbers<T>(p.batch * p.m * p.n, 3),
                       v = numbers<T>(p.n, 4);
  std::vector<T> expected = c;
  reference(p, a, b, expected, v);
  // Without fma such a kernel is its body still, which other tests run.
  ASSERT_TRUE(isPacked(p, {256, true})) << p.name();
  ASSERT_EQ(isPacked(p, {128, false}), !p.isFused) << p.name();
  const bool isShort = p.m * p.n * p.k < 1000;
  for (const char *cpu : {"x86-64-v2", "x86-64-v3", "x86-64-v4"}) {
    if (!runs(cpu) ||
        (cpu == std::string("x86-64-v2") && p.isFused && !isShort))
      continue;
    SCOPED_TRACE(p.name() + " " + cpu);
    std::unique_ptr<LoadedKernel> kernel = load(textOf(p), block, cpu);
    ASSERT_TRUE(kernel);
    for (const bool inParts : {false, true}) {
      Guarded<T> ga(a), gb(b), gc(c), gv(v);
      const std::vector<uint64_t> arguments{ga.address(), gb.address(),
                                            gc.address(), gv.address()};
      if (inParts)
        kernel->runParts(p.grid(), arguments);
      else
        kernel->run(p.grid(), arguments);
      EXPECT_TRUE(equal(gc.inside(), expected)) << "parts: " << inParts;
      EXPECT_TRUE(gc.isWhole()) << "writes outside of C";
    }
  }
}

template <typename T>
void check(const Product &p) {
  check(p, numbers<T>(p.batch * p.m * p.rowOfA(), 1),
        numbers<T>(p.batch * p.k * p.n, 2));
}

TEST(PackedProduct, SizesBesideTilesGiveTheBitsOfTheOrder) {
  for (const auto &[m, n, k] : {std::tuple{1, 1, 1},
                                {3, 17, 31},
                                {17, 3, 129},
                                {31, 31, 31},
                                {129, 17, 3},
                                {1, 129, 17},
                                {129, 1, 1000},
                                {31, 129, 1},
                                {17, 70, 600}})
    for (const bool isTurned : {false, true})
      check<float>({m, n, k, 1, isTurned});
}

TEST(PackedProduct, BatchesViewsAndWhatIsAround) {
  check<float>({33, 40, 24, 3});
  check<float>({33, 40, 24, 3, true, true});
  check<float>({70, 37, 13, 1, false, true, true, 5});
  check<float>({13, 37, 1100, 2, true, true, true, 3});
  check<float>({20, 50, 70, 1, false, true, /*isFused=*/false});
}

TEST(PackedProduct, SumsOfF64) {
  Product p{33, 40, 24, 2, true};
  p.factor = p.sum = "f64";
  check<double>(p);
  p = {31, 17, 600, 1, false, true, /*isFused=*/false};
  p.factor = p.sum = "f64";
  check<double>(p);
}

TEST(PackedProduct, AStepOfF64IsTwoOperationsWithoutFma) {
  Product p{20, 33, 40};
  p.factor = p.sum = "f64";
  p.mayPart = true;
  auto a = numbers<double>(p.m * p.k, 1);
  for (double &each : a)
    each /= 3; // products have more bits than f64
  const auto b = numbers<double>(p.k * p.n, 2),
             c = numbers<double>(p.m * p.n, 3), v = numbers<double>(p.n, 4);
  std::vector<double> expected[2]{c, c};
  reference(p, a, b, expected[1], v);
  Product apart = p;
  apart.isFused = false;
  reference(apart, a, b, expected[0], v);
  EXPECT_FALSE(equal(expected[0], expected[1]));
  for (const char *cpu : {"x86-64-v2", "x86-64-v3", "x86-64-v4"}) {
    if (!runs(cpu))
      continue;
    std::unique_ptr<LoadedKernel> kernel = load(textOf(p), block, cpu);
    ASSERT_TRUE(kernel);
    Guarded<double> ga(a), gb(b), gc(c), gv(v);
    kernel->run(p.grid(),
                {ga.address(), gb.address(), gc.address(), gv.address()});
    EXPECT_TRUE(equal(gc.inside(), expected[cpu != std::string("x86-64-v2")]))
        << cpu;
  }
}

TEST(PackedProduct, SeveralTilesAndPanels) {
  check<float>({1010, 520, 17});
  check<float>({30, 1100, 520, 1, false, true});
}

/// NaN and infinities in one row of A and one column of B go to that row and
/// column alone, however the panels are filled up.
TEST(PackedProduct, NothingLeaksFromBesideAnEdge) {
  for (const bool isTurned : {false, true}) {
    const Product p{17, 35, 20, 2, isTurned, false, true, 4};
    std::vector<float> a = numbers<float>(p.batch * p.m * p.rowOfA(), 1),
                       b = numbers<float>(p.batch * p.k * p.n, 2);
    const float inf = std::numeric_limits<float>::infinity();
    for (int64_t k = 0; k < p.rowOfA(); ++k)
      a[size_t(16 * p.rowOfA() + k)] =
          k % 3 == 0 ? inf : std::numeric_limits<float>::quiet_NaN();
    for (int64_t k = 0; k < p.k; ++k)
      b[size_t(isTurned ? 34 * p.k + k : k * p.n + 34)] =
          k % 2 ? -inf : std::numeric_limits<float>::quiet_NaN();
    // What lies between the rows of A is never read.
    for (int64_t row = 0; row < p.batch * p.m; ++row)
      for (int64_t k = p.k; k < p.rowOfA(); ++k)
        a[size_t(row * p.rowOfA() + k)] = inf;
    check<float>(p, a, b);
  }
}

/// Every size has a register tile that the processor has registers for, and
/// tiles of the object that are whole register tiles in less than 1600 KiB.
TEST(ProductTiles, FitRegistersAndTheStack) {
  for (unsigned bits : {128u, 256u, 512u})
    for (unsigned bytes : {4u, 8u})
      for (int64_t m : {1, 2, 3, 12, 13, 17, 129, 1000, 1 << 30})
        for (int64_t n : {1, 7, 16, 17, 33, 513, 100000})
          for (int64_t k : {1, 512, 513, 1 << 30}) {
            const host::ProductTiles t = host::tilesOf(m, n, k, bits, bytes);
            EXPECT_LE(t.rows * t.vectors + t.vectors + 1,
                      bits == 512 ? 32 : 16);
            EXPECT_EQ(t.lanes * bytes * 8, bits);
            EXPECT_EQ(t.down % t.rows, 0);
            EXPECT_EQ(t.block % t.rows, 0);
            EXPECT_EQ(t.across % t.width(), 0);
            EXPECT_GE(t.depth, 1);
            EXPECT_LT((t.waiting(k) + t.depth * (t.block + t.across)) * bytes,
                      1600 << 10);
          }
}

} // namespace
} // namespace mgpu::kernels
