// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Host kernels against the same computation in C++ (KernelBaselines.h), both
// on one thread and for this CPU, in one run whose samples are interleaved.
// `name/mgpu:BLOCK` is the kernel, `name/cpp:ORDER` C++ with that order of
// loops. The last lines compare the best CPU time of the kernel with that of
// the best order; a kernel whose bits differ from any order's fails the run.

#include "KernelBaselines.h"
#include "kernels/abi/HostKernelAbi.h"
#include "kernels/host/HostEmitter.h"
#include "kernels/lower/KernelDialects.h"
#include "planner/plan/Plan.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Parser/Parser.h"

#include <benchmark/benchmark.h>
#include <bit>
#include <cstdio>
#include <cstring>
#include <deque>
#include <dlfcn.h>
#include <map>
#include <new>
#include <sys/mman.h>
#include <unistd.h>

namespace {

using namespace mgpu;

/// Aligned as the buffers of a plan are, for both sides: with malloc's 16 bytes
/// past a cache line every second store straddles two.
template <typename T>
struct ArenaAllocator {
  using value_type = T;
  static constexpr std::align_val_t alignment{planner::arenaAlignment};
  T *allocate(size_t count) {
    return static_cast<T *>(::operator new(count * sizeof(T), alignment));
  }
  void deallocate(T *at, size_t) { ::operator delete(at, alignment); }
  bool operator==(const ArenaAllocator &) const = default;
};
using Buffer = std::vector<float, ArenaAllocator<float>>;
using Buffers = std::vector<Buffer>;

struct Case {
  std::string name, text;
  uint32_t extents[2]; ///< threads of the whole grid, a multiple of each block
  std::vector<Dim3> blocks;
  Buffers buffers;
  std::vector<uint64_t> scalars;
  std::vector<bench::Baseline> baselines;
  int n; ///< the extent where the baselines do not know it
};

std::string kernelName(const Case &test, Dim3 block) {
  return test.name + "/mgpu:" + std::to_string(block.x) + "x" +
         std::to_string(block.y);
}
std::string baselineName(const Case &test, const bench::Baseline &baseline) {
  return test.name + "/cpp:" + baseline.name;
}

kernels::HostLaunch launchOf(const Case &test, Dim3 block) {
  uint32_t x = test.extents[0] / block.x, y = test.extents[1] / block.y;
  return {{x, y, 1}, 0, 0, uint64_t(x) * y, {0, 0, 0}, {x, y, 1}};
}

template <typename Element>
std::vector<Element> addresses(Buffers &buffers) {
  std::vector<Element> result;
  for (Buffer &buffer : buffers)
    result.push_back(std::bit_cast<Element>(buffer.data()));
  return result;
}

kernels::HostKernelEntry compile(const Case &test, Dim3 block) {
  mlir::DialectRegistry registry;
  kernels::registerHostEmitDialects(registry);
  mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
  auto module = mlir::parseSourceString<mlir::ModuleOp>(test.text, &context);
  if (!module)
    return nullptr;
  auto bytes = kernels::emitHostKernel(*module, block);
  if (!bytes) {
    std::fprintf(stderr, "%s\n", bytes.error().message.c_str());
    return nullptr;
  }
  int file = memfd_create("kernel", MFD_CLOEXEC);
  if (write(file, bytes->data(), bytes->size()) != ssize_t(bytes->size()))
    return nullptr;
  // Stays open: the loader takes two libraries of one path for the same.
  std::string path = "/proc/self/fd/" + std::to_string(file);
  void *library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  return library ? reinterpret_cast<kernels::HostKernelEntry>(
                       dlsym(library, kernels::hostKernelEntryName))
                 : nullptr;
}

/// Arguments of the kernel for `buffers`.
std::vector<uint64_t> argumentsOf(const Case &test, Buffers &buffers) {
  auto arguments = addresses<uint64_t>(buffers);
  arguments.insert(arguments.end(), test.scalars.begin(), test.scalars.end());
  return arguments;
}

/// Whether the kernel gives the bits of every baseline.
bool check(const Case &test, Dim3 block, kernels::HostKernelEntry entry) {
  Buffers mine = test.buffers;
  kernels::HostLaunch launch = launchOf(test, block);
  entry(argumentsOf(test, mine).data(), &launch);
  for (const bench::Baseline &baseline : test.baselines) {
    Buffers theirs = test.buffers;
    baseline.compute(addresses<float *>(theirs).data(), test.n);
    for (size_t k = 0; k < mine.size(); ++k)
      if (std::memcmp(mine[k].data(), theirs[k].data(),
                      mine[k].size() * sizeof(float)) != 0) {
        std::fprintf(stderr, "%s: the results differ from C++ %s\n",
                     kernelName(test, block).c_str(), baseline.name);
        return false;
      }
  }
  return true;
}

bool registerCase(const Case &test) {
  for (Dim3 block : test.blocks) {
    std::string name = kernelName(test, block);
    kernels::HostKernelEntry entry = compile(test, block);
    if (!entry) {
      std::fprintf(stderr, "%s does not compile\n", name.c_str());
      return false;
    }
    if (!check(test, block, entry))
      return false;
    auto run = [&test, block, entry](benchmark::State &state) {
      Buffers buffers = test.buffers;
      auto arguments = argumentsOf(test, buffers);
      kernels::HostLaunch launch = launchOf(test, block);
      for (auto _ : state) {
        entry(arguments.data(), &launch);
        benchmark::ClobberMemory();
      }
    };
    benchmark::RegisterBenchmark(name.c_str(), run);
  }
  for (const bench::Baseline &baseline : test.baselines) {
    auto run = [&test, &baseline](benchmark::State &state) {
      Buffers buffers = test.buffers;
      auto pointers = addresses<float *>(buffers);
      for (auto _ : state) {
        baseline.compute(pointers.data(), test.n);
        benchmark::ClobberMemory();
      }
    };
    benchmark::RegisterBenchmark(baselineName(test, baseline).c_str(), run);
  }
  return true;
}

/// Prints the medians, and remembers the best CPU time of each benchmark.
class BestReporter : public benchmark::ConsoleReporter {
public:
  BestReporter() : ConsoleReporter(OO_Tabular) {}

  void ReportRuns(const std::vector<Run> &runs) override {
    std::vector<Run> medians;
    for (const Run &run : runs) {
      if (run.run_type == Run::RT_Aggregate) {
        if (run.aggregate_name == "median")
          medians.push_back(run);
        continue;
      }
      double seconds = run.cpu_accumulated_time / double(run.iterations);
      auto [entry, isNew] =
          best.try_emplace(run.run_name.function_name, seconds);
      entry->second = std::min(entry->second, seconds);
    }
    if (!medians.empty())
      ConsoleReporter::ReportRuns(medians);
  }

  void printRatios(const std::deque<Case> &cases) const {
    for (const Case &test : cases) {
      const char *order = nullptr;
      double theirs = 0;
      for (const bench::Baseline &baseline : test.baselines) {
        auto found = best.find(baselineName(test, baseline));
        if (found == best.end() || (order && found->second >= theirs))
          continue;
        order = baseline.name;
        theirs = found->second;
      }
      for (Dim3 block : test.blocks) {
        auto mine = best.find(kernelName(test, block));
        if (mine == best.end() || !order)
          continue;
        std::printf("%-26s %9.2f us   best C++ %9.2f us (%s)   ratio %.2f\n",
                    mine->first.c_str(), mine->second * 1e6, theirs * 1e6,
                    order, mine->second / theirs);
      }
    }
  }

private:
  std::map<std::string, double> best;
};

Buffer ramp(size_t count, int step) {
  Buffer result(count);
  for (size_t i = 0; i < count; ++i)
    result[i] = float(int(i * step % 17) - 8) / 8;
  return result;
}

Case saxpy(int n) {
  std::string type = "memref<" + std::to_string(n) + "xf32>";
  return {"saxpy_" + std::to_string(n),
          "func.func @entry(%x: " + type + ", %y: " + type + R"(, %a: f32,
                   %n: index) {
    %i = gpu.global_id x
    %in = arith.cmpi slt, %i, %n : index
    scf.if %in {
      %xv = memref.load %x[%i] : )" +
              type + R"(
      %yv = memref.load %y[%i] : )" +
              type + R"(
      %p = arith.mulf %a, %xv : f32
      %s = arith.addf %p, %yv : f32
      memref.store %s, %y[%i] : )" +
              type + R"(
    }
    return
  })",
          {uint32_t(n), 1},
          {{64}, {256}, {1024}},
          {ramp(n, 3), ramp(n, 5)},
          {std::bit_cast<uint32_t>(1e-3f), uint64_t(n)},
          bench::saxpyBaselines(),
          n};
}

Case matmul() {
  constexpr uint32_t n = bench::squareExtent;
  return {"matmul_256",
          R"(
  func.func @entry(%a: memref<256x256xf32>, %b: memref<256x256xf32>,
                   %c: memref<256x256xf32>) {
    %col = gpu.global_id x
    %row = gpu.global_id y
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %k = arith.constant 256 : index
    %zero = arith.constant 0.0 : f32
    %sum = scf.for %i = %c0 to %k step %c1 iter_args(%acc = %zero) -> f32 {
      %x = memref.load %a[%row, %i] : memref<256x256xf32>
      %y = memref.load %b[%i, %col] : memref<256x256xf32>
      %p = arith.mulf %x, %y : f32
      %s = arith.addf %acc, %p : f32
      scf.yield %s : f32
    }
    memref.store %sum, %c[%row, %col] : memref<256x256xf32>
    return
  })",
          {n, n},
          {{16, 16}, {32, 8}, {256, 1}},
          {ramp(n * n, 3), ramp(n * n, 5), ramp(n * n, 7)},
          {},
          bench::matmulBaselines(),
          0};
}

Case stencil() {
  constexpr uint32_t n = bench::squareExtent;
  return {"stencil_256",
          R"(
  func.func @entry(%u: memref<256x256xf32>, %v: memref<256x256xf32>) {
    %x = gpu.global_id x
    %y = gpu.global_id y
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c255 = arith.constant 255 : index
    %quarter = arith.constant 0.25 : f32
    %p = arith.cmpi sgt, %x, %c0 : index
    %q = arith.cmpi slt, %x, %c255 : index
    %r = arith.cmpi sgt, %y, %c0 : index
    %s = arith.cmpi slt, %y, %c255 : index
    %pq = arith.andi %p, %q : i1
    %rs = arith.andi %r, %s : i1
    %inside = arith.andi %pq, %rs : i1
    scf.if %inside {
      %xm = arith.subi %x, %c1 : index
      %xp = arith.addi %x, %c1 : index
      %ym = arith.subi %y, %c1 : index
      %yp = arith.addi %y, %c1 : index
      %a = memref.load %u[%y, %xm] : memref<256x256xf32>
      %b = memref.load %u[%y, %xp] : memref<256x256xf32>
      %c = memref.load %u[%ym, %x] : memref<256x256xf32>
      %d = memref.load %u[%yp, %x] : memref<256x256xf32>
      %e = arith.addf %a, %b : f32
      %f = arith.addf %e, %c : f32
      %g = arith.addf %f, %d : f32
      %h = arith.mulf %g, %quarter : f32
      memref.store %h, %v[%y, %x] : memref<256x256xf32>
    }
    return
  })",
          {n, n},
          {{32, 8}, {16, 16}, {128, 2}},
          {ramp(n * n, 3), ramp(n * n, 5)},
          {},
          bench::stencilBaselines(),
          0};
}

} // namespace

int main(int argc, char **argv) {
  // The flags of a quiet answer come first, so that the user's win.
  std::vector<char *> arguments(argv, argv + argc);
  char repetitions[] = "--benchmark_repetitions=20",
       interleave[] = "--benchmark_enable_random_interleaving=true",
       time[] = "--benchmark_min_time=0.005";
  arguments.insert(arguments.begin() + 1, {repetitions, interleave, time});
  int count = int(arguments.size());
  benchmark::Initialize(&count, arguments.data());
  if (benchmark::ReportUnrecognizedArguments(count, arguments.data()))
    return 2;
  std::deque<Case> cases;
  cases.push_back(saxpy(16384));
  cases.push_back(saxpy(1 << 20));
  cases.push_back(matmul());
  cases.push_back(stencil());
  for (const Case &test : cases)
    if (!registerCase(test))
      return 1;
  BestReporter reporter;
  benchmark::RunSpecifiedBenchmarks(&reporter);
  reporter.printRatios(cases);
  return 0;
}
