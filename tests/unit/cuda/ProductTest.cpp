// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Matrix products by cuBLASLt: the plan's kernel node is a captured call of it,
// where it is there.
#include "FakeCublasLt.h"
#include "FakeNodes.h"
#include "FakeTarget.h"
#include "StoredNumbers.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace {

using namespace mgpu;
using namespace mgpu::device;
using namespace mgpu::fake;

struct Case {
  const char *name;
  ElementType factors, sums;
  uint64_t m, n, k, batch;
  uint64_t pad; ///< elements between rows, and before the first
  bool overwrites = false, isTurned = false;
};

constexpr Case cases[] = {
    {"half", ElementType::F16, ElementType::F32, 5, 7, 3, 1, 0},
    {"brain", ElementType::BF16, ElementType::BF16, 9, 4, 6, 3, 0},
    {"view", ElementType::F16, ElementType::F16, 6, 10, 4, 2, 5},
    {"single", ElementType::F32, ElementType::F32, 1, 1, 1, 1, 0},
    {"wide", ElementType::F64, ElementType::F64, 8, 3, 17, 1, 2},
    {"over", ElementType::BF16, ElementType::F32, 5, 6, 7, 2, 1, true},
    {"turned", ElementType::F16, ElementType::F32, 9, 11, 6, 1, 3, false, true},
    {"turned_over", ElementType::BF16, ElementType::BF16, 6, 4, 8, 3, 0, true,
     true},
};

kernels::MatrixProduct productOf(const Case &test) {
  kernels::MatrixProduct product;
  product.factors = test.factors;
  product.sums = test.sums;
  product.m = test.m;
  product.n = test.n;
  product.k = test.k;
  product.batch = test.batch;
  product.overwrites = test.overwrites;
  product.isTurned = test.isTurned;
  auto matrix = [&](uint32_t argument, uint64_t rows, uint64_t columns) {
    uint64_t stride = columns + test.pad;
    return kernels::MatrixProduct::Matrix{argument, test.pad, stride,
                                          test.batch > 1 ? rows * stride : 0};
  };
  product.matrices = {matrix(1, test.m, test.k),
                      test.isTurned ? matrix(2, test.n, test.k)
                                    : matrix(2, test.k, test.n),
                      matrix(0, test.m, test.n)};
  return product;
}

uint64_t addressOf(const kernels::MatrixProduct &product, unsigned which,
                   uint64_t z, uint64_t row, uint64_t column) {
  const kernels::MatrixProduct::Matrix &matrix = product.matrices[which];
  return matrix.offset + z * matrix.batchStride + row * matrix.rowStride +
         column;
}

constexpr size_t blockBytes = 16384;
constexpr Dim3 block{4, 2, 1};

class ProductTest : public testing::Test {
protected:
  void SetUp() override { open(true); }
  void open(bool withLibrary, uint64_t seed = 0) {
    graph.reset();
    driver.reset();
    fake = &freshMachine(seed);
    lt = &FakeCublasLt::reset();
    FakeKernel kernel;
    kernel.parameterSizes = {8, 8, 8, 48};
    kernel.run = [this](void **, const unsigned *, const unsigned *) {
      ++ownRuns;
    };
    fake->kernels["multiply"] = kernel;
    kernel.parameterSizes = {8, 8};
    kernel.run = [](void **parameters, const unsigned *, const unsigned *) {
      FakeCuda::instance().awaitGrids();
      std::memcpy(*static_cast<void **>(parameters[0]),
                  *static_cast<void **>(parameters[1]), blockBytes);
    };
    fake->kernels["move"] = kernel;
    warnings.clear();
    CudaOptions options = fakeOptions(1);
    options.warn = [this](const std::string &text) {
      warnings.push_back(text);
    };
    auto opened = openFake(
        options,
        withLibrary ? CublasLtOpener([] {
          return Result<std::shared_ptr<const CublasLtApi>>(
              FakeCublasLt::api());
        })
                    : CublasLtOpener(
                          []() -> Result<std::shared_ptr<const CublasLtApi>> {
                            return fail(ErrorKind::Absent, "no libcublasLt.so");
                          }));
    ASSERT_TRUE(opened) << opened.error().message;
    driver = std::move(*opened);
  }

  /// Adds the product, whole or a part of its grid. With `amongKernels` one
  /// fills its first factors from elsewhere, and one takes its sums away.
  Result<void> add(const Case &test,
                   std::optional<GridPart> part = std::nullopt,
                   bool amongKernels = false) {
    kernels::KernelImage object;
    object.entry = "multiply";
    object.arch = "sm_90";
    object.sourceBlock = object.block = object.covers = block;
    object.product = productOf(test);
    object.product->choice = choice;
    object.workspaceBytes = workspaceBytes;
    object.setBytes(fakeCubin({"multiply"}));
    MGPU_TRY_ASSIGN(
        KernelHandle handle,
        driver->loadKernel("multiply", kernels::encodeImage(object)));
    std::vector<uint64_t> arguments;
    for (std::byte *&each : memory) {
      MGPU_TRY_ASSIGN(each, driver->allocate({0}, blockBytes));
      arguments.push_back(uintptr_t(each));
    }
    MGPU_TRY_ASSIGN(workspace, driver->allocate({0}, workspaceBytes));
    if (workspaceBytes > 0)
      arguments.push_back(uintptr_t(workspace));
    graph = driver->createGraph();
    KernelNodeParams params{test.name, {0}, handle, gridOf(test), arguments};
    params.part = part;
    if (!amongKernels) {
      MGPU_TRY(graph->addKernel(params, {}));
      return {};
    }
    object.entry = "move";
    object.takesPart = false;
    object.sourceBlock = object.block = object.covers = {1, 1, 1};
    object.product.reset();
    object.workspaceBytes = 0;
    object.awaits = true;
    object.setBytes(fakeCubin({"move"}));
    MGPU_TRY_ASSIGN(handle,
                    driver->loadKernel("move", kernels::encodeImage(object)));
    for (std::byte *&each : outside) {
      MGPU_TRY_ASSIGN(each, driver->allocate({0}, blockBytes));
    }
    auto move = [&](std::byte *to, std::byte *from,
                    std::vector<GraphNodeId> after) {
      return graph->addKernel({"move",
                               {0},
                               handle,
                               {1, 1, 1},
                               {uintptr_t(to), uintptr_t(from)},
                               std::nullopt,
                               true},
                              after);
    };
    MGPU_TRY_ASSIGN(GraphNodeId last, move(memory[1], outside[0], {}));
    MGPU_TRY_ASSIGN(last, graph->addKernel(params, {{last}}));
    MGPU_TRY(move(outside[1], memory[0], {last}));
    return {};
  }
  static Dim3 gridOf(const Case &test) {
    return {uint32_t((test.n + block.x - 1) / block.x),
            uint32_t((test.m + block.y - 1) / block.y), uint32_t(test.batch)};
  }

  /// Small whole numbers into all three, and what C is to be.
  std::vector<std::byte> fill(const Case &test, const GridPart &part) {
    kernels::MatrixProduct product = productOf(test);
    uint64_t next = 1;
    const ElementType types[] = {test.factors, test.factors, test.sums};
    for (unsigned which = 0; which < 3; ++which) {
      std::byte *base = memory[product.matrices[which].argument];
      for (uint64_t at = 0; at < blockBytes / sizeBytes(types[which]); ++at)
        write(types[which], base, at, double((next = next * 7 % 101) % 5) - 2);
    }
    std::vector<std::byte> expected(memory[0], memory[0] + blockBytes);
    for (uint64_t z = part.first.z; z < part.first.z + part.count.z; ++z)
      for (uint64_t row = part.first.y * block.y;
           row <
           std::min<uint64_t>((part.first.y + part.count.y) * block.y, test.m);
           ++row)
        for (uint64_t column = part.first.x * block.x;
             column < std::min<uint64_t>(
                          (part.first.x + part.count.x) * block.x, test.n);
             ++column) {
          uint64_t at = addressOf(product, 2, z, row, column);
          double sum =
              test.overwrites ? 0 : read(test.sums, expected.data(), at);
          for (uint64_t k = 0; k < test.k; ++k)
            sum += read(test.factors, memory[1],
                        addressOf(product, 0, z, row, k)) *
                   read(test.factors, memory[2],
                        test.isTurned ? addressOf(product, 1, z, column, k)
                                      : addressOf(product, 1, z, k, column));
          write(test.sums, expected.data(), at, sum);
        }
    return expected;
  }

  void runAndCompare(const Case &test, const GridPart &part) {
    auto exec = graph->instantiate();
    ASSERT_TRUE(exec) << exec.error().message;
    std::vector<std::byte> expected = fill(test, part);
    ASSERT_TRUE((*exec)->launch());
    EXPECT_TRUE(std::equal(expected.begin(), expected.end(), memory[0]));
    EXPECT_TRUE(fake->violations.empty()) << fake->violations.front();
  }

  void close() {
    graph.reset();
    driver.reset();
    EXPECT_TRUE(fake->violations.empty()) << fake->violations.front();
    EXPECT_EQ(lt->leaks(), std::vector<std::string>());
    EXPECT_EQ(fake->leaks(), std::vector<std::string>());
  }

  FakeCuda *fake = nullptr;
  FakeCublasLt *lt = nullptr;
  std::unique_ptr<Driver> driver;
  std::unique_ptr<GraphDriver> graph;
  std::byte *memory[3] = {}, *outside[2] = {};
  std::byte *workspace = nullptr; ///< the launch's last argument
  uint64_t workspaceBytes = 8192;
  uint32_t choice = 0;
  std::vector<std::string> warnings;
  int ownRuns = 0;
};

TEST_F(ProductTest, TheLibraryMultiplies) {
  for (const Case &test : cases) {
    SCOPED_TRACE(test.name);
    open(true, 3);
    Result<void> added = add(test);
    ASSERT_TRUE(added) << added.error().message;
    runAndCompare(test, GridPart::whole(gridOf(test)));
    EXPECT_EQ(lt->captured, 1u);
    EXPECT_EQ(lt->products, 2u) << "once before the graph, once in it";
    EXPECT_EQ(ownRuns, 0);
    close();
  }
}

/// The last algorithm stands in for those that the library does not have.
TEST_F(ProductTest, AnyOfItsAlgorithmsMultiplies) {
  for (uint32_t asked : {0u, 2u, 4u, 7u}) {
    SCOPED_TRACE(asked);
    open(true, asked);
    choice = asked;
    Result<void> added = add(cases[1]);
    ASSERT_TRUE(added) << added.error().message;
    runAndCompare(cases[1], GridPart::whole(gridOf(cases[1])));
    EXPECT_EQ(lt->place, std::min(asked, 4u));
    EXPECT_EQ(ownRuns, 0);
    close();
  }
}

TEST_F(ProductTest, APartOfAGridIsAPartOfTheProduct) {
  for (const Case &test : cases) {
    SCOPED_TRACE(test.name);
    Dim3 grid = gridOf(test);
    for (GridPart part :
         {GridPart{{grid.x / 2, 0, 0}, {grid.x - grid.x / 2, grid.y, grid.z}},
          GridPart{{0, grid.y / 2, 0}, {grid.x, grid.y - grid.y / 2, grid.z}},
          GridPart{{0, 0, grid.z / 2}, {grid.x, grid.y, grid.z - grid.z / 2}},
          GridPart{{0, 0, 0}, {0, grid.y, grid.z}}}) {
      open(true, 5);
      Result<void> added = add(test, part);
      ASSERT_TRUE(added) << added.error().message;
      runAndCompare(test, part);
      EXPECT_EQ(ownRuns, 0);
      close();
    }
  }
}

/// cuBLASLt launches its kernels so that they may begin before a kernel in
/// front of them has ended: the captured node has a programmatic edge, which
/// nobody asked for. What follows waits for its end.
TEST_F(ProductTest, ItBeginsBeforeTheKernelInFrontHasEnded) {
  uint64_t began = 0;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const Case &test = cases[seed % 3];
    open(true, seed);
    Result<void> added = add(test, std::nullopt, true);
    ASSERT_TRUE(added) << added.error().message;
    auto exec = graph->instantiate();
    ASSERT_TRUE(exec) << exec.error().message;
    const auto &nodes = fake->graphs.youngest()->nodes;
    ASSERT_EQ(nodes.size(), 3u);
    const CUgraphEdgeData before = edgeDataOf(*fake, *nodes[1], 0),
                          behind = edgeDataOf(*fake, *nodes[2], 0);
    EXPECT_EQ(before.type, CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC);
    EXPECT_EQ(before.from_port, CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC);
    EXPECT_TRUE(isZero(&behind, sizeof behind));
    std::vector<std::byte> expected = fill(test, GridPart::whole(gridOf(test)));
    std::copy_n(memory[1], blockBytes, outside[0]);
    std::fill_n(memory[1], blockBytes, std::byte(0x3c));
    fake->earlyBegins = 0;
    ASSERT_TRUE((*exec)->launch());
    EXPECT_TRUE(std::equal(expected.begin(), expected.end(), outside[1]));
    began += fake->earlyBegins;
    // Between ranges that are timed there are events.
    std::vector<NodeTiming> timings;
    EXPECT_TRUE((*exec)->launchTimed(timings));
    exec->reset();
    close();
  }
  EXPECT_GT(began, 5u);
}

/// Behind a copy, and on older GPUs, there is no such edge; and one of another
/// kind into the library's call is none that keeps the order.
TEST_F(ProductTest, OnlyAKernelCanBeginEarly) {
  open(true);
  fake->major = 8;
  ASSERT_TRUE(add(cases[0], std::nullopt, true));
  auto exec = graph->instantiate();
  ASSERT_TRUE(exec) << exec.error().message;
  exec->reset();
  close();
  open(true);
  lt->isLoose = true;
  ASSERT_TRUE(add(cases[0], std::nullopt, true));
  exec = graph->instantiate();
  ASSERT_FALSE(exec);
  EXPECT_EQ(exec.error().kind, ErrorKind::Internal);
  EXPECT_NE(exec.error().message.find("does not wait for the end of what the "
                                      "plan has before it"),
            std::string::npos)
      << exec.error().message;
  close();
}

TEST_F(ProductTest, WithoutItTheKernelRuns) {
  open(false);
  ASSERT_TRUE(add(cases[0]));
  auto exec = graph->instantiate();
  ASSERT_TRUE(exec) << exec.error().message;
  ASSERT_TRUE((*exec)->launch());
  EXPECT_EQ(ownRuns, 1);
  EXPECT_EQ(warnings,
            std::vector<std::string>{
                "matrix products that cuBLASLt computes where it is there run "
                "in mgpu's own text: no libcublasLt.so"});
  exec->reset();
  close();
  open(true);
  lt->hasAlgorithm = false;
  ASSERT_TRUE(add(cases[0]));
  exec = graph->instantiate();
  ASSERT_TRUE(exec) << exec.error().message;
  ASSERT_TRUE((*exec)->launch());
  EXPECT_EQ(ownRuns, 2);
  EXPECT_EQ(lt->products, 0u);
  ASSERT_TRUE(add(cases[0])); // said once
  EXPECT_EQ(warnings,
            std::vector<std::string>{
                "cuBLASLt has no algorithm for kernel multiply (5 x 7 x 3, "
                "f16): it runs in mgpu's own text"});
  exec->reset();
  close();
}

TEST_F(ProductTest, EveryCallOfItMayFail) {
  size_t named = 0;
  for (uint64_t at = 1;; ++at) {
    open(true);
    fake->failAt = fake->calls + at;
    fake->failCode = CUDA_ERROR_INVALID_VALUE;
    Result<void> done = add(cases[1]);
    if (done) {
      auto exec = graph->instantiate();
      done = exec ? (*exec)->launch() : Result<void>(fail(exec.error()));
    }
    std::string failed = fake->failedCall;
    fake->failAt = 0;
    if (failed.empty()) {
      ASSERT_TRUE(done) << done.error().message;
      close();
      break;
    }
    if (failed.find("cublasLt") != 0)
      continue; // FailureTest.cpp has those
    SCOPED_TRACE(failed);
    if (failed.find("Destroy") == failed.npos) {
      ASSERT_FALSE(done);
      EXPECT_EQ(done.error().message.find(failed), 0u) << done.error().message;
      EXPECT_NE(done.error().message.find("on cuda:0: an internal operation "
                                          "failed (14); --variant cublaslt=off "
                                          "does without cuBLASLt"),
                std::string::npos)
          << done.error().message;
      ++named;
    }
    close();
  }
  // Create, a heuristic and two products, and what they are told.
  EXPECT_GT(named, 20u);
}

TEST_F(ProductTest, ItsWorkspaceIsTheLaunchs) {
  for (auto [given, needed, runs] : {std::tuple(8192u, 8192u, true),
                                     {8192u, 8193u, false},
                                     {0u, 1u, false},
                                     {0u, 0u, true}}) {
    SCOPED_TRACE(fmt::format("{} of {}", needed, given));
    open(true);
    workspaceBytes = given;
    lt->workspaceBytes = needed;
    Result<void> added = add(cases[0]);
    ASSERT_TRUE(added) << added.error().message;
    EXPECT_EQ(lt->products, runs ? 1u : 0u);
    if (runs && needed > 0) {
      EXPECT_EQ(lt->workspace, workspace);
    }
    graph.reset();
    close();
  }
}

/// A collective has the highest priority, and what it waits for has not.
TEST_F(ProductTest, ItGivesWayToCollectives) {
  open(true);
  ASSERT_TRUE(add(cases[0]));
  auto exec = graph->instantiate();
  ASSERT_TRUE(exec) << exec.error().message;
  const Graph &made = *FakeCuda::instance().graphs.youngest();
  ASSERT_TRUE(std::ranges::any_of(
      made.nodes, [](const auto &node) { return bool(node->start); }));
  for (const auto &node : made.nodes)
    EXPECT_EQ(node->priority, 0);
  exec->reset();
  graph.reset();
  close();
}

TEST(CublasLt, SaysWhatIsMissing) {
  auto none = openCublasLt({"libmgpu-has-no-such.so"});
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().kind, ErrorKind::Absent);
  EXPECT_EQ(none.error().message,
            "no libcublasLt.so: install cuBLAS (package libcublas)");
  auto other = openCublasLt({"libm.so.6"});
  ASSERT_FALSE(other);
  EXPECT_NE(other.error().message.find("libm.so.6 has no cublasLtCreate: "
                                       "install cuBLAS 12 or later (package "
                                       "libcublas)"),
            std::string::npos)
      << other.error().message;
}

} // namespace
