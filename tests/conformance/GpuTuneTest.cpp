// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Sessions on a GPU, over a driver that is not there: kernels are built in
// ways that crash, hang, write out of bounds or compute something else, and
// what wins is what the GPU's own key finds again.
#include "tests/conformance/ExampleProgram.h"
#include "tests/conformance/Execute.h"
#include "tests/unit/cuda/FakeTarget.h"
#include "tests/unit/db/TempFolder.h"
#include "tests/unit/kernels/CudaTwin.h"

#include "device/host/HostDriver.h"
#include "kernels/abi/KernelImage.h"
#include "kernels/compile/CompileTexts.h"
#include "kernels/compile/NvrtcCompiler.h"
#include "pipeline/build/TuneContext.h"
#include "pipeline/compiler/KernelBuild.h"
#include "pipeline/compiler/MlirCompiler.h"
#include "tuner/session/TuningSession.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <set>
#include <unistd.h>

namespace mgpu::conformance {
namespace {

using kernels::KernelConfig;
using kernels::KernelSpace;
using P = kernels::KernelParameter;

enum class Bad { Nothing, Crash, Hang, OutOfBounds, Wrong };

/// A program and every variant of its kernels, as the processor runs them.
class GpuSubject {
public:
  planner::Dag dag;
  std::unique_ptr<tuner::ProgramData> data;
  std::vector<KernelSpace> spaces;
  std::map<std::string, Bad> bad; ///< by entry

  /// Makes a space with those of `blocks` that the example has, up to 4 items
  /// for each thread, and everything else at its default. With `whole`, floats
  /// are whole numbers, whose sums are exact. With `early`, kernels begin early
  /// where the setting "pdl" is on.
  static std::unique_ptr<GpuSubject> make(const Example &example,
                                          std::vector<uint32_t> blocks,
                                          bool whole = false,
                                          bool early = false) {
    auto made = std::make_unique<GpuSubject>();
    if (early)
      made->twins.onAwait = [] { fake::FakeCuda::instance().awaitGrids(); };
    ImportOutcome outcome = importExample(example);
    EXPECT_TRUE(outcome.dag) << outcome.dag.error().message;
    made->dag = std::move(*outcome.dag);
    made->build(blocks);
    auto inputs = randomInputs(made->dag, 7);
    EXPECT_TRUE(inputs) << inputs.error().message;
    std::vector<tuner::ProgramInput> given;
    for (uint32_t id = 0; id < made->dag.buffers.size(); ++id) {
      const planner::Buffer &buffer = made->dag.buffers[id];
      auto at = inputs->find(buffer.name);
      if (whole && at != inputs->end() &&
          buffer.elementType == ElementType::F32) {
        auto *values = reinterpret_cast<float *>(at->second.data());
        for (size_t k = 0; k < at->second.size() / sizeof(float); ++k)
          values[k] = std::floor(values[k] * 100);
      }
      if (buffer.device.isHost() &&
          buffer.role == planner::BufferRole::Argument && at != inputs->end())
        given.push_back({{id}, buffer.elementType, at->second});
    }
    made->data =
        std::make_unique<tuner::ProgramData>(made->dag, std::move(given));
    return made;
  }

  tuner::TuningSubject subject() {
    return {
        dag,
        *data,
        spaces,
        [this](uint32_t kernel, const KernelConfig &config,
               uint32_t variant) -> Result<Bytes> {
          MGPU_TRY_ASSIGN(
              kernels::KernelImage object,
              kernels::decodeImage("k", objects.at({kernel, config})));
          object.awaits = variant != 0;
          return kernels::encodeImage(object);
        },
        [this](uint32_t devices, uint32_t, std::span<const int>) {
          return open(devices);
        },
        1,
        1,
        {},
        2,
        twins.onAwait ? std::vector{pipeline::pdlSetting("sm_90", false)}
                      : std::vector<tuner::TargetSetting>(),
        identity(),
        planner::hostMachine(),
        device::profileOfArchitecture("sm_90"),
        tuner::Accuracy{
            [this](uint32_t kernel) {
              return kernels::buildErrorKernel(dag.kernels[kernel]);
            },
            [](uint32_t devices, uint32_t threads, std::span<const int> cpus) {
              return device::createHostDriver(devices, threads, cpus);
            }},
        [](const std::map<std::string, std::string> &settings) {
          return uint32_t(pipeline::usesPdl(settings, false));
        }};
  }

  static tuner::TargetIdentity identity() {
    return {"a GPU that is not there", "sm_90", "CUDA driver 0.0"};
  }

  std::string entryOf(uint32_t kernel, const KernelConfig &config) const {
    auto object = kernels::decodeImage("k", objects.at({kernel, config}));
    return object ? object->entry : "";
  }
  std::vector<tuner::KernelObject> defaults() const {
    std::vector<tuner::KernelObject> made;
    for (uint32_t k = 0; k < spaces.size(); ++k)
      made.push_back(
          std::make_shared<Bytes>(objects.at({k, spaces[k].defaults})));
    return made;
  }

private:
  void build(const std::vector<uint32_t> &blocks) {
    const std::vector<Dim3> grids = planner::largestGrids(dag);
    for (uint32_t k = 0; k < dag.kernels.size(); ++k) {
      const planner::KernelSpec &spec = dag.kernels[k];
      auto kernel =
          kernels::emitCudaText(spec, {spec.name, "", spec.block, grids[k]});
      ASSERT_TRUE(kernel) << kernel.error().message;
      auto space =
          kernels::kernelSpaceOf(spec, grids[k], kernels::KernelTarget::Cuda);
      ASSERT_TRUE(space) << space.error().message;
      for (size_t p = 0; p < kernels::numKernelParameters; ++p)
        std::erase_if(space->axes[p].values, [&](uint32_t value) {
          return value != space->defaults.at(p) &&
                 (blocks.empty() || value > 4 || P(p) != P::Items) &&
                 (P(p) != P::BlockX ||
                  std::count(blocks.begin(), blocks.end(), value) == 0);
        });
      spaces.push_back(*space);
      for (const KernelConfig &config : space->legal()) {
        const std::string entry = "e" + std::to_string(twins.configs.size());
        kernels::KernelImage object;
        object.entry = entry;
        object.arch = "sm_90";
        object.sourceBlock = spec.block;
        object.block = config.block();
        object.covers = space->covered(config);
        object.cluster.x = config[kernels::KernelParameter::ClusterX];
        object.takesPart = kernel->image.takesPart;
        object.dynamicSharedBytes = kernel->image.dynamicSharedBytes;
        object.setBytes(fake::fakeCubin({entry}));
        objects.emplace(std::pair(k, config), kernels::encodeImage(object));
        twins.add({entry, *kernel, *space, config});
      }
    }
    auto compiled = twins.compile();
    ASSERT_TRUE(compiled) << compiled.error().message;
  }

  /// In a candidate's process, where the machine is made once: a GPU is there
  /// before anybody opens it.
  Result<std::unique_ptr<device::Driver>> open(uint32_t devices) {
    if (machineOf != getpid()) {
      machineOf = getpid();
      fake::FakeCuda &machine = fake::freshMachine(1);
      for (const kernels::TwinConfig &config : twins.configs)
        addKernel(machine.kernels[config.entry], config);
    }
    return fake::openFake(fake::fakeOptions(devices));
  }

  void addKernel(fake::FakeKernel &kernel, const kernels::TwinConfig &config) {
    const std::vector<size_t> sizes = twins.parameterSizes(config.entry);
    const bool takesPart = config.kernel.image.takesPart;
    constexpr size_t launchBytes = 12 * sizeof(unsigned);
    kernel.parameterSizes = sizes;
    if (takesPart)
      kernel.parameterSizes.push_back(launchBytes);
    kernel.run = [this, entry = config.entry, sizes,
                  takesPart](void **parameters, const unsigned *grid,
                             const unsigned *block) {
      std::vector<uint64_t> arguments(sizes.size());
      for (size_t k = 0; k < sizes.size(); ++k)
        std::memcpy(&arguments[k], parameters[k], sizes[k]);
      unsigned launch[12] = {};
      if (takesPart)
        std::memcpy(launch, parameters[sizes.size()], sizeof launch);
      auto at = bad.find(entry);
      switch (at == bad.end() ? Bad::Nothing : at->second) {
      case Bad::Crash:
        std::abort();
      case Bad::Hang:
        while (true)
          usleep(1000);
      case Bad::Wrong:
        return; // what it should have written stays as it was
      case Bad::OutOfBounds:
        // A little before the memory of its first argument's device.
        std::memset(reinterpret_cast<char *>(arguments[0]) - 8, 0, 4);
        break;
      case Bad::Nothing:
        break;
      }
      twins.launch(entry, arguments, launch, grid, block);
    };
  }

  kernels::CudaTwins twins;
  std::map<std::pair<uint32_t, KernelConfig>, Bytes> objects;
  pid_t machineOf = 0;
};

tuner::TuningOptions options(const planner::Dag &dag, uint64_t evaluations) {
  tuner::TuningOptions options;
  options.budget.evaluations = evaluations;
  options.strategy = "exhaustive";
  options.version = "test";
  options.devices = dag.numDevices;
  options.evaluation.pinThreads = false;
  return options;
}

TEST(GpuTune, FaultsAreNamedAndWhatWinsIsFoundByTheGpu) {
  auto gpu = GpuSubject::make({"saxpy", "main", {{"a", "2"}}},
                              {32, 64, 128, 256, 512, 1024});
  ASSERT_FALSE(HasFatalFailure());
  ASSERT_EQ(gpu->spaces.size(), 1u);
  const KernelSpace &space = gpu->spaces[0];
  const std::vector<KernelConfig> legal = space.legal();
  ASSERT_GE(legal.size(), 6u);
  Bad kind = Bad::Nothing;
  for (const KernelConfig &config : legal)
    if (config != space.defaults && kind != Bad::Wrong) {
      kind = Bad(int(kind) + 1);
      gpu->bad[gpu->entryOf(0, config)] = kind;
    }
  db::TempFolder folder;
  auto store = db::TuningStore::open(folder / "t.db");
  ASSERT_TRUE(store) << store.error().message;
  auto result = tuner::tune(gpu->subject(), options(gpu->dag, 14), &*store);
  ASSERT_TRUE(result) << result.error().message;
  std::map<std::string, int> kinds;
  for (const tuner::FailedCandidate &failed : result->failed)
    ++kinds[std::string(toString(failed.fault.kind))];
  EXPECT_EQ(kinds, (std::map<std::string, int>{{"crash", 1},
                                               {"hang", 1},
                                               {"out-of-bounds", 1},
                                               {"wrong-result", 1}}));
  EXPECT_FALSE(
      gpu->bad.contains(gpu->entryOf(0, result->config.kernels.at(0))));
  EXPECT_EQ(result->config.threads, 1u);
  EXPECT_LE(result->config.streams, 2u); // as the target says
  EXPECT_GT(result->times.before.us, 0);
  ASSERT_FALSE(result->parts.empty());
  EXPECT_EQ(result->parts[0].points, double(legal.size()));
  EXPECT_EQ(result->parts[0].tried, legal.size());

  const auto compiled = gpu->defaults();
  const bench::Environment environment = bench::readEnvironment();
  tuner::KeyInput keys{gpu->dag,
                       compiled,
                       environment,
                       "test",
                       gpu->dag.numDevices,
                       false,
                       GpuSubject::identity()};
  auto found = tuner::findDecision(keys, gpu->spaces, {}, *store);
  ASSERT_TRUE(found && *found);
  EXPECT_EQ((*found)->config, result->config);
  auto trials = store->trials(tuner::decisionProblem(keys));
  ASSERT_TRUE(trials);
  EXPECT_EQ(trials->trials.size(), 1u);
  // Another GPU, another driver, and the host have nothing.
  keys.target->device = "another";
  EXPECT_FALSE(*tuner::findDecision(keys, gpu->spaces, {}, *store));
  keys.target = GpuSubject::identity();
  keys.target->software = "CUDA driver 1.0";
  EXPECT_FALSE(*tuner::findDecision(keys, gpu->spaces, {}, *store));
  keys.target.reset();
  EXPECT_FALSE(*tuner::findDecision(keys, gpu->spaces, {}, *store));
}

/// Tunables of a kernel that is a file are searched, and compared with the
/// file as it is by default.
TEST(GpuTune, AFileOfCudaCppIsTuned) {
  auto gpu = GpuSubject::make({"source", "main", {}}, {}, true);
  ASSERT_FALSE(HasFatalFailure());
  size_t ways = 0; // the file's; the other kernel has one
  for (const KernelSpace &space : gpu->spaces)
    if (!space.tunables().empty())
      ways = space.legal().size();
  ASSERT_GT(ways, 1u);
  auto result =
      tuner::tune(gpu->subject(), options(gpu->dag, 2 * ways), nullptr);
  ASSERT_TRUE(result) << result.error().message;
  for (const tuner::FailedCandidate &failed : result->failed)
    ADD_FAILURE() << failed.configuration << ": " << failed.fault.what;
  ASSERT_EQ(result->parts.size(), 2u); // the file, and the program
  EXPECT_EQ(result->parts[0].tried, ways);

  // On other numbers its tunable changes the bits, by what rounding explains:
  // the reference, a body, says how much that is. What computes something else
  // is caught.
  auto rounding = GpuSubject::make({"source", "main", {}}, {});
  std::vector<KernelConfig> others;
  for (const KernelConfig &config : rounding->spaces[0].legal())
    if (config != rounding->spaces[0].defaults)
      others.push_back(config);
  ASSERT_EQ(others.size(), 2u);
  rounding->bad[rounding->entryOf(0, others[0])] = Bad::Wrong;
  db::TempFolder folder;
  auto store = db::TuningStore::open(folder / "t.db");
  ASSERT_TRUE(store) << store.error().message;
  result = tuner::tune(rounding->subject(), options(rounding->dag, 2 * ways),
                       &*store);
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_FALSE(result->failed.empty());
  for (const tuner::FailedCandidate &failed : result->failed)
    EXPECT_EQ(failed.fault.kind, FaultKind::WrongResult);
  EXPECT_EQ(result->onlyBits, "");
  auto problems = store->problems();
  ASSERT_TRUE(problems) << problems.error().message;
  std::map<std::string, int> found; // what the other way stored
  for (const db::TuningProblem &each : *problems) {
    auto trials = store->trials(each);
    ASSERT_TRUE(trials);
    for (const db::Trial &trial : trials->trials)
      if (trial.configuration.find(fmt::format(
              "tunables={}", others[1].tunables[0])) != std::string::npos)
        ++found[trial.sentence.substr(0, 21)];
  }
  EXPECT_EQ(found, (std::map<std::string, int>{{"its result is within ", 1}}));
}

/// Kernels that begin early are a point of the space of a GPU.
TEST(GpuTune, KernelsThatBeginEarlyAreAPointOfTheSpace) {
  auto gpu = GpuSubject::make({"saxpy", "main", {{"a", "2"}}}, {}, false, true);
  ASSERT_FALSE(HasFatalFailure());
  const tuner::TuningSubject subject = gpu->subject();
  std::vector<std::vector<KernelConfig>> defaults;
  for (const KernelSpace &space : gpu->spaces)
    defaults.push_back({space.defaults});
  auto space = tuner::ProgramSpace::create(gpu->dag, {{}}, subject.settings,
                                           defaults, subject.limits());
  ASSERT_TRUE(space) << space.error().message;
  tuner::EvaluatorOptions how;
  how.pinThreads = false;
  auto evaluator = tuner::Evaluator::create(subject, how);
  ASSERT_TRUE(evaluator) << evaluator.error().message;
  tuner::ProgramConfig config = (*evaluator)->defaults();
  for (bool isOn : {false, true}) {
    if (isOn)
      config.settings["pdl"] = "on";
    EXPECT_TRUE(space->find(config));
    auto made = (*evaluator)->realize(config);
    ASSERT_TRUE(made && *made);
    for (const auto &object : (*made)->kernels)
      EXPECT_EQ(kernels::decodeImage("k", *object)->awaits, isOn);
    auto run = (*evaluator)->admit(**made);
    ASSERT_TRUE(run) << run.error().message;
    EXPECT_TRUE(*run) << run->error().what;
  }
  EXPECT_EQ(pipeline::pdlSetting("sm_80", true).values,
            std::vector<std::string>{"off"});
  EXPECT_FALSE(pipeline::pdlSetting("sm_80", true).reason.empty());
}

/// By the compiler for GPUs, which needs none.
TEST(GpuTune, KernelsAreBuiltAsTheirConfigurationsSay) {
  if (!kernels::NvrtcCompiler::open())
    GTEST_SKIP() << "there is no NVRTC";
  for (const Example &example : {Example{"saxpy", "main", {{"a", "2"}}},
                                 Example{"source", "main", {}}}) {
    ImportOutcome outcome = importExample(example);
    ASSERT_TRUE(outcome.dag) << outcome.dag.error().message;
    auto texts = allOf(
        pipeline::mlirCompiler().emitCudaKernels(*outcome.dag, {}, nullptr));
    ASSERT_TRUE(texts) << texts.error().message;
    const kernels::CudaText &text = texts->front();
    ASSERT_TRUE(text.space);
    auto space =
        tuner::spaceOf(*text.space, device::profileOfArchitecture("sm_90"));
    ASSERT_TRUE(space) << space.error().message;
    ASSERT_GT(space->size(), 2u);
    std::set<std::string> cubins;
    for (tuner::ConfigId id : {0u, space->size() / 2, space->size() - 1}) {
      const KernelConfig config = tuner::kernelConfigAt(*space, id);
      auto object =
          kernels::buildGpuKernel(text, config, "sm_90", false, nullptr);
      ASSERT_TRUE(object) << object.error().message;
      auto decoded = kernels::decodeImage("k", *object);
      ASSERT_TRUE(decoded) << decoded.error().message;
      EXPECT_EQ(decoded->block, config.block());
      EXPECT_EQ(decoded->covers, text.space->covered(config));
      EXPECT_EQ(decoded->arch, "sm_90");
      EXPECT_FALSE(decoded->awaits);
      cubins.insert(decoded->blob);
    }
    EXPECT_EQ(cubins.size(), 3u) << example.name;
    // One that waits is other code, from sm_90 on; a file never waits.
    for (const char *arch : {"sm_80", "sm_90"}) {
      const KernelConfig &plain = text.space->defaults;
      std::string code[2];
      for (bool awaits : {false, true}) {
        auto object =
            kernels::buildGpuKernel(text, plain, arch, awaits, nullptr);
        ASSERT_TRUE(object) << object.error().message;
        auto decoded = kernels::decodeImage("k", *object);
        ASSERT_TRUE(decoded) << decoded.error().message;
        EXPECT_EQ(decoded->awaits, awaits && text.image.takesPart &&
                                       arch == std::string("sm_90"));
        EXPECT_EQ(decoded->awaits, decoded->blob != code[0] && awaits);
        code[awaits] = decoded->blob;
      }
    }
    EXPECT_FALSE(kernels::buildGpuKernel(text, text.space->defaults, "sm_1",
                                         false, nullptr));
  }
}

} // namespace

} // namespace mgpu::conformance
