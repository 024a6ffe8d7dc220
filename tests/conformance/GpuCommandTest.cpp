// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Commands on a GPU as the user types them, over a driver and a CUPTI that are
// not there: mgpu-tune opens them by name, NVRTC compiles the kernels, and the
// driver runs the same text compiled for the processor.
#include "tests/conformance/ExampleProgram.h"
#include "tests/unit/cuda/CubinLength.h"
#include "tests/unit/cuda/FakeCupti.h"
#include "tests/unit/cuda/FakeLibraries.h"
#include "tests/unit/cuda/FakeTarget.h"
#include "tests/unit/db/TempFolder.h"
#include "tests/unit/kernels/CudaTwin.h"

#include "kernels/abi/CubinElf.h"
#include "kernels/compile/NvrtcCompiler.h"
#include "pipeline/compiler/MlirCompiler.h"
#include "support/FileIO.h"
#include "support/Npy.h"

#include <cstring>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

/// tools/mgpu-tune/main.cpp's.
int mgpuTuneMain(int argc, char **argv);

namespace mgpu::conformance {
namespace {

using nlohmann::json;

/// The entries of a cubin that NVRTC made.
std::vector<std::string> entriesOf(const void *code) {
  const std::span<const std::byte> cubin = fake::wholeCubin(code);
  if (cubin.empty())
    return {};
  std::vector<std::string> names;
  for (auto &[name, entry] : kernels::readCubin(cubin).entries)
    names.push_back(name);
  return names;
}

void *entryPoint(const char *name) {
  static const std::shared_ptr<const device::CudaApi> api =
      fake::FakeCuda::api();
  const std::string_view asked = name;
#define MGPU_CUDA_GIVE(name, version)                                          \
  if (asked == #name)                                                          \
    return reinterpret_cast<void *>(api->name);
  MGPU_CUDA_REQUIRED(MGPU_CUDA_GIVE)
  MGPU_CUDA_OPTIONAL(MGPU_CUDA_GIVE)
#undef MGPU_CUDA_GIVE
  return nullptr;
}

class GpuCommand : public testing::Test {
protected:
  void SetUp() override {
    if (!kernels::NvrtcCompiler::open())
      GTEST_SKIP() << "there is no NVRTC";
    machine = &fake::freshMachine(1);
    machine->entriesOf = entriesOf;
    cupti = &fake::FakeCupti::reset();
    cuptiTable = fake::FakeCupti::api();
    mgpuFakeCudaEntry = entryPoint;
    mgpuFakeCupti = cuptiTable.get();
  }
  void TearDown() override {
    if (!machine)
      return;
    EXPECT_EQ(machine->violations, std::vector<std::string>());
    EXPECT_EQ(machine->leaks(), std::vector<std::string>());
    EXPECT_EQ(cupti->violations, std::vector<std::string>());
    mgpuFakeCudaEntry = nullptr;
    mgpuFakeCupti = nullptr;
  }

  /// Has the kernels of an example ready, as the command emits them.
  void know(const Example &example) {
    ImportOutcome outcome = importExample(example);
    ASSERT_TRUE(outcome.dag) << outcome.dag.error().message;
    const planner::Dag &dag = *outcome.dag;
    const std::vector<Dim3> grids = planner::largestGrids(dag);
    auto texts =
        allOf(pipeline::mlirCompiler().emitCudaKernels(dag, {}, nullptr));
    ASSERT_TRUE(texts) << texts.error().message;
    for (size_t k = 0; k < texts->size(); ++k) {
      const kernels::CudaText &text = (*texts)[k];
      ASSERT_EQ(text.form, "threads"); // whose twin is made below
      auto kernel = kernels::emitCudaText(
          dag.kernels[k],
          {text.image.entry, "", dag.kernels[k].block, grids[k]});
      ASSERT_TRUE(kernel) << kernel.error().message;
      twins.add({text.image.entry, std::move(*kernel), *text.space,
                 text.space->defaults});
    }
    auto compiled = twins.compile();
    ASSERT_TRUE(compiled) << compiled.error().message;
    for (const kernels::TwinConfig &config : twins.configs) {
      fake::FakeKernel &kernel = machine->kernels[config.entry];
      const std::vector<size_t> sizes = twins.parameterSizes(config.entry);
      kernel.parameterSizes = sizes;
      kernel.parameterSizes.push_back(12 * sizeof(unsigned));
      kernel.run = [this, entry = config.entry, sizes](void **parameters,
                                                       const unsigned *grid,
                                                       const unsigned *block) {
        std::vector<uint64_t> arguments(sizes.size());
        for (size_t k = 0; k < sizes.size(); ++k)
          std::memcpy(&arguments[k], parameters[k], sizes[k]);
        unsigned launch[12];
        std::memcpy(launch, parameters[sizes.size()], sizeof launch);
        twins.launch(entry, arguments, launch, grid, block);
      };
    }
  }

  /// What the command prints to stdout; its exit code is `code`.
  std::string run(std::vector<std::string> words, int code = 0) {
    words.insert(words.begin(), "mgpu-tune");
    std::vector<char *> argv;
    for (std::string &word : words)
      argv.push_back(word.data());
    argv.push_back(nullptr);
    testing::internal::CaptureStdout();
    const int got = mgpuTuneMain(int(words.size()), argv.data());
    std::string text = testing::internal::GetCapturedStdout();
    EXPECT_EQ(got, code) << text;
    return text;
  }
  size_t count(const char *call) const {
    return size_t(
        std::count(machine->called.begin(), machine->called.end(), call));
  }

  db::TempFolder folder;
  fake::FakeCuda *machine = nullptr;
  fake::FakeCupti *cupti = nullptr;
  std::shared_ptr<const device::CuptiApi> cuptiTable;
  kernels::CudaTwins twins;
};

const std::string saxpyFile = examplesFolder() + "/saxpy/saxpy.mlir";
const Example saxpy{"saxpy", "main", {{"a", "2"}}};

// In a process of its own: CUPTI is asked once in each.
TEST_F(GpuCommand, ProfileWithoutCuptiSaysWhatTimedTheNodes) {
  know(saxpy);
  ASSERT_FALSE(HasFatalFailure());
  cupti->refused["Subscribe"] = device::CuptiResult::InsufficientPrivileges;
  const std::string database = folder / "t.db";
  auto profile = [&] {
    const std::string text =
        run({"profile", saxpyFile, "--arg", "a=2", "--target", "cuda:0/4",
             "--repeat", "2", "--db", database});
    std::exit(text.find("nodes timed by CUDA events") != std::string::npos &&
                      text.find("--cap-add=SYS_ADMIN") != std::string::npos
                  ? 0
                  : 1);
  };
  EXPECT_EXIT(profile(), testing::ExitedWithCode(0), "");
}

TEST_F(GpuCommand, ProfileTimesNodesByCupti) {
  know(saxpy);
  ASSERT_FALSE(HasFatalFailure());
  const std::string database = folder / "t.db", trace = folder / "t.json";
  const std::vector<std::string> words{
      "profile",  saxpyFile, "--arg", "a=2",    "--target", "cuda:0/4",
      "--repeat", "5",       "--db",  database, "--trace",  trace};
  std::vector<std::string> asJson = words;
  asJson.push_back("--json");
  const json out = json::parse(run(asJson), nullptr, false);
  ASSERT_TRUE(out.is_object());
  EXPECT_NE(out["timed_by"].get<std::string>().find("CUPTI"), std::string::npos)
      << out["timed_by"];
  // The double's clock: an eighth of a millisecond for each node.
  ASSERT_FALSE(out["nodes"].empty());
  for (const json &node : out["nodes"]) {
    EXPECT_DOUBLE_EQ(node["measured_us"], 125) << node;
    EXPECT_GT(node["predicted_us"], 0) << node;
    const double ratio = 125 / node["predicted_us"].get<double>();
    EXPECT_NEAR(node["ratio"].get<double>(), ratio, 1e-5 * ratio); // 6 digits
  }
  // The span is between two events, which the double takes as long for.
  EXPECT_DOUBLE_EQ(out["device_span_us"],
                   125 * double(out["nodes"].size() + 2));
  EXPECT_TRUE(out.contains("overlap_percent"));
  EXPECT_EQ(cupti->wereEnabled.count(device::CuptiKind::ConcurrentKernel), 1u);

  // Host and device streams, and what was stored is there to be reported.
  auto traced = readText(trace, 1 << 20);
  ASSERT_TRUE(traced) << traced.error().message;
  const json events = json::parse(*traced, nullptr, false);
  ASSERT_FALSE(events.is_discarded());
  EXPECT_NE(traced->find("host"), std::string::npos);
  EXPECT_NE(traced->find("saxpy"), std::string::npos) << *traced;
  const json report = json::parse(
      run({"report", "--db", database, "--format", "json"}), nullptr, false);
  ASSERT_TRUE(report.is_object());
  EXPECT_EQ(report["profile"]["nodes"].size(), out["nodes"].size()) << report;
}

TEST_F(GpuCommand, RoundsUpdateTheGraph) {
  know(saxpy);
  ASSERT_FALSE(HasFatalFailure());
  const std::string first = folder / "1.npy", second = folder / "2.npy";
  run({"run", saxpyFile, "--arg", "a=2", "--arg", "x=iota", "--arg", "y=1",
       "--target", "cuda:0/4", "--no-tuned", "--out", "y=" + first});
  const size_t made = count("cuGraphInstantiateWithParams");
  EXPECT_EQ(count("cuGraphExecNodeSetParams"), 0u);
  machine->called.clear();
  run({"run", saxpyFile, "--arg", "a=2", "--arg", "x=iota", "--arg", "y=1",
       "--target", "cuda:0/4", "--no-tuned", "--out", "y=" + first, "--arg",
       "x@2=3", "--arg", "y@2=iota", "--out", "y@2=" + second});
  // One scatter of x, one of y, and y's gather, for each of four devices.
  EXPECT_EQ(count("cuGraphExecNodeSetParams"), 12u);
  EXPECT_EQ(count("cuGraphInstantiateWithParams"), made);
  for (auto [path, a, b] :
       {std::tuple(first, 2.f, 1.f), std::tuple(second, 1.f, 6.f)}) {
    auto array = readNpy(path);
    ASSERT_TRUE(array) << array.error().message;
    ASSERT_EQ(array->bytes.size(), 1024 * sizeof(float));
    for (size_t k = 0; k < 1024; ++k) {
      float value;
      std::memcpy(&value, array->bytes.data() + k * sizeof value, sizeof value);
      ASSERT_EQ(value, a * float(k) + b) << path << " at " << k;
    }
  }
}

} // namespace
} // namespace mgpu::conformance
