// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Host kernels of matrix products against OpenBLAS and oneDNN, which are opened
// at run time: all on one thread and for one level of this processor, in one
// run whose samples take turns. Each line has the best CPU time of each side,
// as GFLOP/s, and how many times faster the kernel is than the better library.
//
//   bench-products [--cpu x86-64-v3] [--body] [TYPE:MxNxK[t][*BATCH] ...]
//
// Both libraries are held to AVX2 with x86-64-v3. With --body the kernel does
// not say that it is a product, and its threads are loops. `t`: B is stored as
// N x K.

#include "kernels/abi/HostKernelAbi.h"
#include "kernels/host/HostEmitter.h"
#include "kernels/lower/KernelDialects.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Parser/Parser.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <dlfcn.h>
#include <fmt/format.h>
#include <limits>
#include <random>
#include <sys/mman.h>
#include <unistd.h>

namespace {

using namespace mgpu;

constexpr Dim3 sourceBlock{32, 8, 1};

struct Case {
  std::string type = "f32";
  int64_t m = 0, n = 0, k = 0, batch = 1;
  bool isTurned = false;

  std::string name() const {
    return fmt::format("{}:{}x{}x{}{}{}", type, m, n, k, isTurned ? "t" : "",
                       batch > 1 ? fmt::format("*{}", batch) : "");
  }
  double flops() const {
    return 2.0 * double(m) * double(n) * double(k) * double(batch);
  }
  std::string factor() const { return type == "f64" ? "f64" : type; }
  std::string sum() const { return type == "f64" ? "f64" : "f32"; }
};

bool parse(const char *text, Case &out) {
  char type[8], rest[16] = "";
  if (std::sscanf(text, "%7[^:]:%ldx%ldx%ld%15s", type, &out.m, &out.n, &out.k,
                  rest) < 4)
    return false;
  out.type = type;
  const char *at = rest;
  if (*at == 't')
    out.isTurned = bool(at++);
  if (*at == '*')
    out.batch = std::atol(at + 1);
  return out.m > 0 && out.n > 0 && out.k > 0 && out.batch > 0;
}

/// The kernel as the importer writes it.
std::string textOf(const Case &test, bool isBody) {
  const auto [factor, sum] = std::pair(test.factor(), test.sum());
  auto type = [&](int64_t rows, int64_t columns, const std::string &element) {
    return fmt::format("memref<{}x{}x{}x{}>", test.batch, rows, columns,
                       element);
  };
  auto matrix = [&](int argument, int64_t rows, int64_t columns, bool turned) {
    return fmt::format("<argument = {}, rows = {}, columns = {}, rowStride = "
                       "{}, columnStride = {}, batch = {}, batchStride = {}>",
                       argument, rows, columns, turned ? 1 : columns,
                       turned ? rows : 1, test.batch, rows * columns);
  };
  const std::string a = type(test.m, test.k, factor),
                    b = test.isTurned ? type(test.n, test.k, factor)
                                      : type(test.k, test.n, factor),
                    c = type(test.m, test.n, sum);
  const bool isWide = factor != sum;
  auto wide = [&](const char *name) {
    return isWide ? fmt::format("%w{} = arith.extf %{} : {} to {}\n", name,
                                name, factor, sum)
                  : "";
  };
  const char *w = isWide ? "w" : "";
  const std::string product = fmt::format(
      R"(attributes {{mgpu.product = #mgpu.product<
  m = {}, n = {}, k = {}, a = {}, b = {}, c = {}, batch = {}, turned = {},
  overwrites = true : [{}, {}, {}]>}})",
      test.m, test.n, test.k, factor, factor, sum, test.batch, test.isTurned,
      matrix(0, test.m, test.k, false),
      matrix(1, test.k, test.n, test.isTurned),
      matrix(2, test.m, test.n, false));
  return fmt::format(
      R"(func.func @entry(%a: {a}, %b: {b}, %c: {c}) {product} {{
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
    %s = scf.for %step = %c0 to %k step %c1 iter_args(%old = %zero) -> {sum} {{
      %p = memref.load %a[%z, %j, %step] : {a}
      %q = memref.load %b[%z, {inB}] : {b}
      {wp}{wq}
      %new = math.fma %{w}p, %{w}q, %old : {sum}
      scf.yield %new : {sum}
    }} {{mgpu.mark = #mgpu.mark<product_loop>}}
    memref.store %s, %c[%z, %j, %i] : {c}
  }}
  return
}})",
      fmt::arg("a", a), fmt::arg("b", b), fmt::arg("c", c),
      fmt::arg("m", test.m), fmt::arg("n", test.n), fmt::arg("k", test.k),
      fmt::arg("sum", sum), fmt::arg("product", isBody ? "" : product),
      fmt::arg("inB", test.isTurned ? "%i, %step" : "%step, %i"),
      fmt::arg("wp", wide("p")), fmt::arg("wq", wide("q")), fmt::arg("w", w));
}

double seconds() {
  timespec now;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return double(now.tv_sec) + 1e-9 * double(now.tv_nsec);
}

kernels::HostKernelEntry compile(const Case &test, const std::string &cpu,
                                 bool isBody, double &took) {
  const double start = seconds();
  mlir::DialectRegistry registry;
  kernels::registerHostEmitDialects(registry);
  mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
  auto module =
      mlir::parseSourceString<mlir::ModuleOp>(textOf(test, isBody), &context);
  if (!module)
    return nullptr;
  auto bytes = kernels::emitHostKernel(*module, sourceBlock, {cpu});
  took = seconds() - start;
  if (!bytes) {
    std::fprintf(stderr, "%s\n", bytes.error().message.c_str());
    return nullptr;
  }
  int file = memfd_create("kernel", MFD_CLOEXEC); // open as long as it is used
  if (write(file, bytes->data(), bytes->size()) != ssize_t(bytes->size()))
    return nullptr;
  void *library =
      dlopen(fmt::format("/proc/self/fd/{}", file).c_str(), RTLD_NOW);
  return library ? reinterpret_cast<kernels::HostKernelEntry>(
                       dlsym(library, kernels::hostKernelEntryName))
                 : nullptr;
}

/// C = A B by a library, or a null function where it is not there.
struct Libraries {
  using Sgemm = void (*)(int, int, int, int, int, int, float, const float *,
                         int, const float *, int, float, float *, int);
  using Dgemm = void (*)(int, int, int, int, int, int, double, const double *,
                         int, const double *, int, double, double *, int);
  using Dnnl = int (*)(char, char, int64_t, int64_t, int64_t, float,
                       const float *, int64_t, const float *, int64_t, float,
                       float *, int64_t);
  Sgemm sgemm = nullptr;
  Dgemm dgemm = nullptr;
  Dnnl dnnl = nullptr;
  std::string core = "-";

  explicit Libraries(const std::string &cpu) {
    setenv("OPENBLAS_NUM_THREADS", "1", 1);
    setenv("OMP_NUM_THREADS", "1", 1);
    const bool isNarrow = cpu == "x86-64-v3";
    setenv("OPENBLAS_CORETYPE", isNarrow ? "Haswell" : "SkylakeX", 0);
    if (isNarrow)
      setenv("ONEDNN_MAX_CPU_ISA", "AVX2", 0);
    if (void *blas = dlopen("libopenblas.so.0", RTLD_NOW)) {
      sgemm = reinterpret_cast<Sgemm>(dlsym(blas, "cblas_sgemm"));
      dgemm = reinterpret_cast<Dgemm>(dlsym(blas, "cblas_dgemm"));
      if (void *name = dlsym(blas, "openblas_get_corename"))
        core = reinterpret_cast<char *(*)()>(name)();
    }
    if (void *library = dlopen("libdnnl.so.2", RTLD_NOW))
      dnnl = reinterpret_cast<Dnnl>(dlsym(library, "dnnl_sgemm"));
  }
};

class Sides {
public:
  Sides(const Case &test, kernels::HostKernelEntry entry,
        const Libraries &libraries)
      : test(test), entry(entry), libraries(libraries) {
    std::mt19937 engine(1);
    std::uniform_real_distribution<double> values(-1, 1);
    auto fill = [&](std::vector<std::byte> &bytes, int64_t count) {
      const size_t width = test.type == "f64" ? 8 : test.type == "f32" ? 4 : 2;
      bytes.resize(size_t(count) * width + 64);
      for (int64_t k = 0; k < count; ++k) {
        const double value = values(engine);
        const float narrow = float(value);
        uint32_t bits;
        std::memcpy(&bits, &narrow, 4);
        bits >>= width == 2 ? 16 : 0;
        std::memcpy(bytes.data() + size_t(k) * width,
                    width == 8 ? (const void *)&value : &bits, width);
      }
    };
    fill(a, test.batch * test.m * test.k);
    fill(b, test.batch * test.k * test.n);
    c.resize(size_t(test.batch * test.m * test.n) * 8 + 64);
    d = c;
  }

  void ours() {
    auto blocks = [](int64_t size, uint32_t block) {
      return uint32_t((size + block - 1) / block);
    };
    const uint64_t arguments[] = {uint64_t(a.data()), uint64_t(b.data()),
                                  uint64_t(c.data())};
    const uint32_t x = blocks(test.n, sourceBlock.x),
                   y = blocks(test.m, sourceBlock.y), z = uint32_t(test.batch);
    // A device runs as many blocks: the object's shape says how many.
    kernels::HostLaunch launch{{x, y, z}, 0,         0,
                               numBlocks, {0, 0, 0}, {x, y, z}};
    entry(arguments, &launch);
  }
  void blas() {
    for (int64_t z = 0; z < test.batch; ++z)
      if (test.type == "f64")
        one(libraries.dgemm, (const double *)a.data(), (const double *)b.data(),
            (double *)d.data(), z);
      else
        one(libraries.sgemm, (const float *)a.data(), (const float *)b.data(),
            (float *)d.data(), z);
  }
  void dnnl() {
    const int64_t m = test.m, n = test.n, k = test.k;
    for (int64_t z = 0; z < test.batch; ++z)
      libraries.dnnl('N', test.isTurned ? 'T' : 'N', m, n, k, 1,
                     (const float *)a.data() + z * m * k, k,
                     (const float *)b.data() + z * k * n, test.isTurned ? k : n,
                     0, (float *)d.data() + z * m * n, n);
  }
  uint64_t numBlocks = 1;

private:
  template <typename Function, typename T>
  void one(Function *function, const T *x, const T *y, T *into, int64_t z) {
    const int64_t m = test.m, n = test.n, k = test.k;
    function(101, 111, test.isTurned ? 112 : 111, int(m), int(n), int(k), 1,
             x + z * m * k, int(k), y + z * k * n, int(test.isTurned ? k : n),
             0, into + z * m * n, int(n));
  }
  Case test;
  kernels::HostKernelEntry entry;
  const Libraries &libraries;
  std::vector<std::byte> a, b, c, d;
};

void measure(const Case &test, const std::string &cpu, bool isBody,
             const Libraries &libraries) {
  double compiled = 0;
  kernels::HostKernelEntry entry = compile(test, cpu, isBody, compiled);
  if (!entry) {
    std::printf("%-28s does not compile\n", test.name().c_str());
    return;
  }
  Sides sides(test, entry, libraries);
  Dl_info info;
  dladdr(reinterpret_cast<void *>(entry), &info);
  void *library = dlopen(info.dli_fname, RTLD_NOW | RTLD_NOLOAD);
  auto *shape = static_cast<const kernels::HostKernelShape *>(
      dlsym(library, kernels::hostKernelShapeName));
  const uint32_t counts[] = {
      uint32_t((test.n + sourceBlock.x - 1) / sourceBlock.x),
      uint32_t((test.m + sourceBlock.y - 1) / sourceBlock.y),
      uint32_t(test.batch)};
  for (unsigned axis = 0; axis < 3; ++axis)
    sides.numBlocks *= kernels::blocksAlong(*shape, axis, counts[axis]);
  constexpr double never = std::numeric_limits<double>::infinity();
  double best[3] = {never, never, never};
  const bool has[3] = {true,
                       test.type == "f64"
                           ? bool(libraries.dgemm)
                           : test.type == "f32" && libraries.sgemm,
                       test.type == "f32" && libraries.dnnl};
  const double begin = seconds();
  // A sample is of 2 ms or more; a second in all, or 5 samples.
  const long calls = std::max(1L, long(1e8 / test.flops()));
  for (int sample = 0; sample < 5 || seconds() - begin < 1; ++sample)
    for (int side = 0; side < 3; ++side) {
      if (!has[side])
        continue;
      const double start = seconds();
      for (long call = 0; call < calls; ++call)
        side == 0 ? sides.ours() : side == 1 ? sides.blas() : sides.dnnl();
      best[side] = std::min(best[side], (seconds() - start) / double(calls));
    }
  auto rate = [&](int side) { return test.flops() / best[side] * 1e-9; };
  std::printf("%-28s %8.1f %8.1f %8.1f %8.2f   compiled in %.0f ms\n",
              test.name().c_str(), rate(0), rate(1), rate(2),
              std::min(best[1], best[2]) / best[0], compiled * 1e3);
}

} // namespace

int main(int argc, char **argv) {
  std::string cpu = "native";
  bool isBody = false;
  std::vector<Case> cases;
  for (int k = 1; k < argc; ++k) {
    Case test;
    if (std::strcmp(argv[k], "--cpu") == 0 && k + 1 < argc) {
      cpu = argv[++k];
    } else if (std::strcmp(argv[k], "--body") == 0) {
      isBody = true;
    } else if (parse(argv[k], test)) {
      cases.push_back(test);
    } else {
      std::fprintf(stderr, "bench-products: '%s' is no TYPE:MxNxK[t][*BATCH]\n",
                   argv[k]);
      return 2;
    }
  }
  if (cases.empty()) {
    for (int64_t size : {256, 512, 1024, 2048})
      cases.push_back({"f32", size, size, size});
    cases.push_back({"f32", 128, 3072, 768, 1, true});
    cases.push_back({"f32", 128, 128, 64, 12, true});
    for (int64_t size : {1, 3, 17, 31, 129, 1000}) {
      cases.push_back({"f32", size, 1000, 1000});
      cases.push_back({"f32", 1000, size, 1000});
      cases.push_back({"f32", 1000, 1000, size});
    }
    for (int64_t size : {256, 512, 1024})
      cases.push_back({"f64", size, size, size});
    for (int64_t size : {256, 512, 1024})
      cases.push_back({"bf16", size, size, size});
  }
  const Libraries libraries(cpu);
  std::printf("%s, OpenBLAS's core is %s; GFLOP/s\n%-28s %8s %8s %8s %8s\n",
              cpu.c_str(), libraries.core.c_str(), "product", "mgpu",
              "OpenBLAS", "oneDNN", "ratio");
  for (const Case &test : cases)
    measure(test, cpu, isBody, libraries);
  return 0;
}
