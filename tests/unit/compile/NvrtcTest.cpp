// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "kernels/compile/NvrtcCompiler.h"

#include "Nvrtc.h"
#include "kernels/abi/CubinElf.h"
#include "support/ChildProcess.h"

#include <thread>

namespace mgpu::kernels {
namespace {

const char *const reverse = R"(
extern "C" __global__ void reverse(const float *x, float *y, int n, double s) {
  static __shared__ float tile[64];
  tile[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  if (threadIdx.x < n)
    y[threadIdx.x] = tile[63 - threadIdx.x] * s;
})";

/// Takes NVRTC seconds: a long unrolled chain that nothing folds.
std::string slowSource() {
  std::string text = "extern \"C\" __global__ void slow(double *x) {\n"
                     "double a = x[0], b = x[1], c = x[2];\n";
  for (int k = 0; k < 6000; ++k)
    text += "a = a * b + c; b = sin(b - a); c = c / a;\n";
  return text + "x[0] = a; x[1] = b; x[2] = c;\n}\n";
}

/// NVRTC's end, which the process's is, must not find it at work.
void waitForLeftPrograms() {
  while (hasLeftPrograms())
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
}

TEST(Nvrtc, LogAndCubinAgree) {
  MGPU_OPEN_NVRTC(compiler);
  for (uint32_t arch : {75, 80, 90, 100, 120}) {
    auto kernel = compiler->compile(
        {reverse, "reverse.cu", {}, "sm_" + std::to_string(arch)});
    ASSERT_TRUE(kernel) << kernel.error().message;
    EXPECT_FALSE(hasWarning(kernel->log)) << kernel->log;
    Cubin cubin = readCubin(kernel->cubin);
    EXPECT_EQ(cubin.architecture, arch);
    EXPECT_GE(cubin.toolkit, 12u); // its own words are found
    ASSERT_EQ(kernel->entries.size(), 1u) << kernel->log;
    ASSERT_EQ(cubin.entries.count("reverse"), 1u);
    const EntryUsage &entry = kernel->entries[0];
    const CubinEntry &inFile = cubin.entries["reverse"];
    EXPECT_EQ(entry.name, "reverse");
    EXPECT_GT(entry.registers, 4u);
    EXPECT_EQ(entry.registers, inFile.registers);
    EXPECT_EQ(entry.sharedBytes, 256u);
    // The driver's own on sm_90 and later (NVRTC 13.0).
    EXPECT_EQ(inFile.sharedBytes, 256u + (arch >= 90 ? 1024u : 0u));
    EXPECT_EQ(entry.barriers, 1u);
    EXPECT_EQ(inFile.parameters,
              (std::vector<CubinParameter>{{0, 8}, {8, 8}, {16, 4}, {24, 8}}));
  }
}

TEST(Nvrtc, AnErrorNamesTheLineOfTheSource) {
  MGPU_OPEN_NVRTC(compiler);
  auto kernel = compiler->compile(
      {"#line 7 \"dir/program.mlir\"\nextern \"C\" __global__ void k() { "
       "undeclared = 3; }\n",
       "k.cu",
       {},
       "sm_90"});
  ASSERT_FALSE(kernel);
  EXPECT_EQ(kernel.error().kind, ErrorKind::Invalid);
  EXPECT_NE(kernel.error().message.find("dir/program.mlir(7): error"),
            std::string::npos)
      << kernel.error().message;
}

TEST(Nvrtc, AWarningOfAnErrorIsNoError) {
  MGPU_OPEN_NVRTC(compiler);
  auto kernel = compiler->compile({"extern \"C\" __global__ void k() {\n"
                                   "int error;\n"
                                   "undeclared = 3;\n"
                                   "}\n",
                                   "k.cu",
                                   {},
                                   "sm_90"});
  ASSERT_FALSE(kernel);
  EXPECT_NE(kernel.error().message.find("k.cu(3): error"), std::string::npos)
      << kernel.error().message;
}

TEST(Nvrtc, UnknownArchitecturesAndOptionsAreRefused) {
  MGPU_OPEN_NVRTC(compiler);
  for (const char *arch :
       {"", "sm_", "sm_70", "sm_9", "sm_90x", "sm_90aa", "compute_90", "90"}) {
    auto kernel = compiler->compile({reverse, "k.cu", {}, arch});
    ASSERT_FALSE(kernel) << arch;
    EXPECT_EQ(kernel.error().kind, ErrorKind::Usage);
    EXPECT_NE(kernel.error().message.find("sm_90"), std::string::npos);
  }
  EXPECT_TRUE(compiler->compile({reverse, "k.cu", {}, "sm_90a"}));
  auto option = compiler->compile({reverse, "k.cu", {"--no-such"}, "sm_90"});
  ASSERT_FALSE(option);
  EXPECT_EQ(option.error().kind, ErrorKind::Invalid);
  EXPECT_NE(option.error().message.find("no-such"), std::string::npos)
      << option.error().message;
}

TEST(Nvrtc, OptionsReachTheProgram) {
  MGPU_OPEN_NVRTC(compiler);
  const char *source = "extern \"C\" __global__ void k() {}\n"
                       "static_assert(WIDTH == 12);\n";
  EXPECT_TRUE(compiler->compile({source, "k.cu", {"-DWIDTH=12"}, "sm_90"}));
  EXPECT_FALSE(compiler->compile({source, "k.cu", {"-DWIDTH=13"}, "sm_90"}));
}

TEST(Nvrtc, AMissingLibraryIsAbsentAndSaysWhatToInstall) {
  auto compiler = NvrtcCompiler::open(nullptr, "/nowhere/libnvrtc.so");
  ASSERT_FALSE(compiler);
  EXPECT_EQ(compiler.error().kind, ErrorKind::Absent);
  EXPECT_NE(compiler.error().message.find("install"), std::string::npos);
}

TEST(Nvrtc, TheCacheIsKeyedByAllThatDecides) {
  device::MemoryBlobCache cache;
  MGPU_OPEN_NVRTC(compiler, &cache);
  CompileJob job{reverse, "reverse.cu", {}, "sm_90"};
  auto first = compiler->compile(job), second = compiler->compile(job);
  ASSERT_TRUE(first && second);
  EXPECT_FALSE(first->fromCache);
  EXPECT_TRUE(second->fromCache);
  EXPECT_EQ(first->cubin, second->cubin);
  EXPECT_EQ(first->log, second->log);
  ASSERT_EQ(second->entries.size(), 1u);
  EXPECT_EQ(second->entries[0].registers, first->entries[0].registers);
  CompileJob other = job;
  other.arch = "sm_80";
  EXPECT_FALSE(compiler->compile(other)->fromCache);
  other = job;
  other.options = {"--fmad=false"};
  EXPECT_FALSE(compiler->compile(other)->fromCache);
  other = job;
  other.source += "\n";
  EXPECT_FALSE(compiler->compile(other)->fromCache);
  // What is damaged is compiled again.
  cache.store(compiler->cacheKey(job), device::Blob(3));
  EXPECT_FALSE(compiler->compile(job)->fromCache);
  EXPECT_TRUE(compiler->compile(job)->fromCache);
}

TEST(Nvrtc, ManyProgramsOnAllCores) {
  MGPU_OPEN_NVRTC(compiler);
  std::vector<CompileJob> jobs;
  for (int k = 0; k < 12; ++k)
    jobs.push_back({k == 5 ? "not C++" : reverse, "k", {}, "sm_90"});
  auto results = compiler->compileAll(jobs, {.threads = 3});
  auto alone = compiler->compile(jobs[0]);
  ASSERT_TRUE(alone);
  for (int k = 0; k < 12; ++k) {
    ASSERT_EQ(bool(results[k]), k != 5);
    if (k != 5) {
      EXPECT_EQ(results[k]->cubin, alone->cubin);
    }
  }
}

TEST(Nvrtc, ATimeoutStopsAProgram) {
  MGPU_OPEN_NVRTC(compiler);
  using namespace std::chrono;
  auto start = steady_clock::now();
  auto kernel = compiler->compile({slowSource(), "slow.cu", {}, "sm_90"},
                                  {.timeout = milliseconds(100)});
  EXPECT_LT(steady_clock::now() - start, seconds(10));
  ASSERT_FALSE(kernel);
  EXPECT_EQ(kernel.error().kind, ErrorKind::Absent);
  EXPECT_NE(kernel.error().message.find("longer than 100 ms"),
            std::string::npos)
      << kernel.error().message;
  waitForLeftPrograms();
}

TEST(Nvrtc, OneThatDoesNotStopIsLeft) {
  MGPU_OPEN_NVRTC(compiler);
  using std::chrono::milliseconds;
  EXPECT_FALSE(hasLeftPrograms());
  auto kernel =
      compiler->compile({slowSource(), "slow.cu", {}, "sm_90"},
                        {.timeout = milliseconds(1), .grace = milliseconds(0)});
  ASSERT_FALSE(kernel);
  EXPECT_EQ(kernel.error().kind, ErrorKind::Absent);
  EXPECT_TRUE(hasLeftPrograms());
  // The others go on.
  EXPECT_TRUE(compiler->compile({reverse, "reverse.cu", {}, "sm_90"}));
  waitForLeftPrograms();
}

/// In a process of its own, each program is compiled as it is here. A process
/// cannot go back, so this is one, too.
TEST(Nvrtc, CompilesInProcesses) {
  MGPU_OPEN_NVRTC(compiler);
  const CompileJob good{reverse, "reverse.cu", {}, "sm_90"},
      wrong{"int nonsense(", "wrong.cu", {}, "sm_90"},
      slow{slowSource(), "slow.cu", {}, "sm_90"};
  auto here = compiler->compile(good), said = compiler->compile(wrong);
  ASSERT_TRUE(here && !said);
  auto apart = ChildProcess::start([&](std::span<const std::byte>) {
    compileInProcesses();
    Bytes answer;
    auto kernel = compiler->compile(good);
    append(answer, kernel && kernel->cubin == here->cubin);
    auto refused = compiler->compile(wrong);
    append(answer, !refused && refused.error().message == said.error().message);
    auto late =
        compiler->compile(slow, {.timeout = std::chrono::milliseconds(100)});
    append(answer, !late && late.error().kind == ErrorKind::Absent &&
                       late.error().message.find("longer than 100 ms") !=
                           std::string::npos);
    append(answer, !hasLeftPrograms());
    return Outcome<Bytes>(std::move(answer));
  });
  ASSERT_TRUE(apart) << apart.error().message;
  auto answer = apart->ask({}, 60);
  ASSERT_TRUE(answer) << answer.error().what;
  EXPECT_EQ(*answer, Bytes(4, std::byte(1)));
}

TEST(Nvrtc, CancellingStopsAllPrograms) {
  MGPU_OPEN_NVRTC(compiler);
  std::atomic<bool> cancel = false;
  std::vector<CompileJob> jobs(4, {slowSource(), "slow.cu", {}, "sm_90"});
  std::thread later([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    cancel = true;
  });
  auto results = compiler->compileAll(jobs, {.cancel = &cancel, .threads = 2});
  later.join();
  for (const auto &result : results) {
    ASSERT_FALSE(result);
    EXPECT_NE(result.error().message.find("was cancelled"), std::string::npos)
        << result.error().message;
  }
  waitForLeftPrograms();
}

} // namespace
} // namespace mgpu::kernels
