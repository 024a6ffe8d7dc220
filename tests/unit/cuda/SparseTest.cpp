// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Products with sparse matrices by cuSPARSE: the plan's kernel node is a
// captured call of it, where it is there.
#include "FakeCusparse.h"
#include "FakeTarget.h"
#include "StoredNumbers.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

/// Whose names are those of ProductTest, too.
namespace sparse_test {
namespace {

using namespace mgpu;
using namespace mgpu::device;
using namespace mgpu::fake;

struct Case {
  const char *name;
  uint32_t kind;
  ElementType indices, factors, sums;
  uint64_t breadth;
  bool isFirstTurned, isSecondTurned;
  uint64_t offset; ///< elements before each operand
};

using P = kernels::SparseProduct;
constexpr Case cases[] = {
    {"vector", P::Vector, ElementType::I32, ElementType::F32, ElementType::F32,
     1, false, false, 0},
    {"wide", P::Vector, ElementType::Index, ElementType::F64, ElementType::F64,
     1, false, false, 4},
    {"half", P::Vector, ElementType::I64, ElementType::F16, ElementType::F32, 1,
     false, false, 8},
    {"matrix", P::Matrix, ElementType::I32, ElementType::F32, ElementType::F32,
     5, false, false, 0},
    {"turned", P::Matrix, ElementType::I64, ElementType::BF16,
     ElementType::BF16, 3, true, false, 4},
    {"sampled", P::Sampled, ElementType::I32, ElementType::F32,
     ElementType::F32, 6, false, false, 0},
    {"sampled_turned", P::Sampled, ElementType::Index, ElementType::F64,
     ElementType::F64, 2, true, true, 4},
};

/// 4 x 6; the second row is empty.
constexpr uint64_t rows = 4, columns = 6;
const std::vector<int64_t> positions{0, 2, 2, 5, 6}, index{1, 4, 0, 2, 5, 3};

constexpr size_t blockBytes = 4096;

kernels::SparseProduct productOf(const Case &test) {
  kernels::SparseProduct product;
  product.kind = test.kind;
  product.isFirstTurned = test.isFirstTurned;
  product.isSecondTurned = test.isSecondTurned;
  product.indices = test.indices;
  product.factors = test.factors;
  product.sums = test.sums;
  product.rows = rows;
  product.columns = columns;
  product.entries = index.size();
  product.breadth = test.breadth;
  // The last first: an operand is not its argument.
  P::Operand *all[] = {&product.positions, &product.index, &product.values,
                       &product.first, &product.second};
  for (uint32_t k = 0; k < 5; ++k)
    *all[k] = {4 - k, test.offset};
  return product;
}

class SparseTest : public testing::Test {
protected:
  void SetUp() override { open(true); }
  void open(bool withLibrary) {
    graph.reset();
    driver.reset();
    fake = &freshMachine();
    sparse = &FakeCusparse::reset();
    FakeKernel kernel;
    kernel.parameterSizes = {8, 8, 8, 8, 8, 48};
    kernel.run = [this](void **, const unsigned *, const unsigned *) {
      ++ownRuns;
    };
    fake->kernels["multiply"] = kernel;
    warnings.clear();
    ownRuns = 0;
    CudaOptions options = fakeOptions(1);
    options.warn = [this](const std::string &text) {
      warnings.push_back(text);
    };
    auto api = std::make_shared<CudaApi>(*FakeCuda::api());
    ASSERT_TRUE(initializeCuda(*api));
    auto opened = createCudaDriver(
        std::move(api), options, nullptr, nullptr, noCupti(),
        [withLibrary]() -> Result<std::shared_ptr<const CusparseApi>> {
          if (withLibrary)
            return FakeCusparse::api();
          return fail(ErrorKind::Absent, "no libcusparse.so");
        });
    ASSERT_TRUE(opened) << opened.error().message;
    driver = std::move(*opened);
  }

  Result<void> add(const Case &test,
                   std::optional<GridPart> part = std::nullopt) {
    kernels::KernelImage object;
    object.entry = "multiply";
    object.arch = "sm_90";
    object.sourceBlock = object.block = object.covers = {4, 1, 1};
    object.sparse = productOf(test);
    object.setBytes(fakeCubin({"multiply"}));
    MGPU_TRY_ASSIGN(
        KernelHandle handle,
        driver->loadKernel("multiply", kernels::encodeImage(object)));
    std::vector<uint64_t> arguments;
    for (std::byte *&each : memory) {
      MGPU_TRY_ASSIGN(each, driver->allocate({0}, blockBytes));
      arguments.push_back(uintptr_t(each));
    }
    graph = driver->createGraph();
    KernelNodeParams params{test.name, {0}, handle, {2, 1, 1}, arguments};
    params.part = part;
    MGPU_TRY(graph->addKernel(params, {}));
    return {};
  }

  ElementType typeOf(const Case &test, size_t operand) const {
    return operand < 2 ? test.indices : operand == 4 ? test.sums : test.factors;
  }
  std::byte *operand(const Case &test, size_t k) {
    return memory[4 - k] + test.offset * sizeBytes(typeOf(test, k));
  }
  double number(const Case &test, size_t k, uint64_t at) {
    return read(typeOf(test, k), operand(test, k), at);
  }

  /// Small whole numbers, and the memory that is to be when it has run.
  std::vector<std::byte> fill(const Case &test) {
    uint64_t next = 1;
    for (size_t k = 2; k < 5; ++k)
      for (uint64_t at = 0; at < 64; ++at)
        write(typeOf(test, k), operand(test, k), at,
              double((next = next * 7 % 101) % 5) - 2);
    for (size_t k = 0; k < positions.size(); ++k)
      write(test.indices, operand(test, 0), k, double(positions[k]));
    for (size_t k = 0; k < index.size(); ++k)
      write(test.indices, operand(test, 1), k, double(index[k]));
    const size_t written = test.kind == P::Sampled ? 2 : 4;
    std::byte *base = memory[4 - written];
    std::vector<std::byte> expected(base, base + blockBytes);
    std::byte *to = expected.data() + (operand(test, written) - base);
    auto first = [&](uint64_t row, uint64_t column, uint64_t height,
                     uint64_t width) {
      return number(test, 3,
                    test.isFirstTurned ? column * height + row
                                       : row * width + column);
    };
    auto second = [&](uint64_t row, uint64_t column) {
      return number(test, 4,
                    test.isSecondTurned ? column * test.breadth + row
                                        : row * columns + column);
    };
    for (uint64_t row = 0; row < rows; ++row)
      for (auto at = uint64_t(positions[row]);
           at < uint64_t(positions[row + 1]); ++at) {
        const auto column = uint64_t(index[at]);
        if (test.kind == P::Sampled) {
          double sum = read(test.factors, to, at);
          for (uint64_t k = 0; k < test.breadth; ++k)
            sum += first(row, k, rows, test.breadth) * second(k, column);
          write(test.factors, to, at, sum);
          continue;
        }
        for (uint64_t k = 0; k < test.breadth; ++k) {
          const uint64_t place = row * test.breadth + k;
          write(test.sums, to, place,
                read(test.sums, to, place) +
                    number(test, 2, at) *
                        first(column, k, columns, test.breadth));
        }
      }
    return expected;
  }

  void close() {
    graph.reset();
    driver.reset();
    EXPECT_TRUE(fake->violations.empty()) << fake->violations.front();
    EXPECT_EQ(sparse->leaks(), std::vector<std::string>());
    EXPECT_EQ(fake->leaks(), std::vector<std::string>());
  }

  FakeCuda *fake = nullptr;
  FakeCusparse *sparse = nullptr;
  std::unique_ptr<Driver> driver;
  std::unique_ptr<GraphDriver> graph;
  std::byte *memory[5] = {};
  std::vector<std::string> warnings;
  int ownRuns = 0;
};

TEST_F(SparseTest, TheLibraryMultiplies) {
  for (const Case &test : cases)
    for (uint64_t bytes : {0u, 512u}) {
      SCOPED_TRACE(test.name);
      open(true);
      sparse->bufferBytes = bytes;
      Result<void> added = add(test);
      ASSERT_TRUE(added) << added.error().message;
      auto exec = graph->instantiate();
      ASSERT_TRUE(exec) << exec.error().message;
      std::vector<std::byte> expected = fill(test);
      ASSERT_TRUE((*exec)->launch());
      const std::byte *found = memory[test.kind == P::Sampled ? 2 : 0];
      EXPECT_TRUE(std::equal(expected.begin(), expected.end(), found));
      EXPECT_EQ(sparse->captured, 1u);
      EXPECT_EQ(sparse->products, 1u);
      EXPECT_EQ(ownRuns, 0);
      EXPECT_EQ(warnings, std::vector<std::string>());
      exec->reset();
      close();
    }
}

TEST_F(SparseTest, APartOfAGridIsTheKernels) {
  ASSERT_TRUE(add(cases[0], GridPart{{1, 0, 0}, {1, 1, 1}}));
  auto exec = graph->instantiate();
  ASSERT_TRUE(exec) << exec.error().message;
  ASSERT_TRUE((*exec)->launch());
  EXPECT_EQ(ownRuns, 1);
  EXPECT_EQ(sparse->products, 0u);
  exec->reset();
  close();
}

TEST_F(SparseTest, WithoutItTheKernelRuns) {
  open(false);
  ASSERT_TRUE(add(cases[0]));
  auto exec = graph->instantiate();
  ASSERT_TRUE(exec) << exec.error().message;
  ASSERT_TRUE((*exec)->launch());
  EXPECT_EQ(ownRuns, 1);
  EXPECT_EQ(warnings, std::vector<std::string>{
                          "products that cuSPARSE computes where it is there "
                          "run in mgpu's own text: no libcusparse.so"});
  exec->reset();
  close();
  open(true);
  sparse->hasWay = false;
  ASSERT_TRUE(add(cases[3]));
  exec = graph->instantiate();
  ASSERT_TRUE(exec) << exec.error().message;
  ASSERT_TRUE((*exec)->launch());
  EXPECT_EQ(ownRuns, 1);
  EXPECT_EQ(warnings, std::vector<std::string>{
                          "cuSPARSE has no way to compute kernel multiply: it "
                          "runs in mgpu's own text"});
  exec->reset();
  close();
}

TEST_F(SparseTest, EveryCallOfItMayFail) {
  size_t named = 0;
  for (const Case &test : {cases[0], cases[3], cases[5]})
    for (uint64_t at = 1;; ++at) {
      open(true);
      fake->failAt = fake->calls + at;
      fake->failCode = CUDA_ERROR_INVALID_VALUE;
      Result<void> done = add(test);
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
      if (failed.find("cusparse") != 0)
        continue; // FailureTest.cpp has those
      SCOPED_TRACE(failed);
      if (failed.find("Destroy") == failed.npos) {
        ASSERT_FALSE(done);
        EXPECT_EQ(done.error().message.find(failed), 0u)
            << done.error().message;
        EXPECT_NE(done.error().message.find(
                      "on cuda:0: an internal operation failed (7); "
                      "--variant cusparse=off does without cuSPARSE"),
                  std::string::npos)
            << done.error().message;
        ++named;
      }
      close();
    }
  // Each has the handle, twice three objects, a size, a stream and a product.
  EXPECT_EQ(named, 3u * 10);
}

TEST_F(SparseTest, ItIsFoundAtRunTime) {
  auto none = openCusparse({"libmgpu-has-no-such.so"});
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().kind, ErrorKind::Absent);
  auto other = openCusparse({"libm.so.6"});
  ASSERT_FALSE(other);
  EXPECT_NE(other.error().message.find("cusparseCreate"), std::string::npos);
}

} // namespace
} // namespace sparse_test
