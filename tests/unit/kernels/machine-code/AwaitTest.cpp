// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A kernel that may begin beside the one it follows touches no memory of the
// program before that has ended, and takes nothing that it reads for a constant
// (CUDA C++ Programming Guide, "Programmatic Dependent Launch"). The rule holds
// for the machine code of all that the emitter can write.
#include "MachineCode.h"

#include "kernels/compile/KernelRecipe.h"
#include "support/FileIO.h"
#include "tests/unit/compile/Nvrtc.h"
#include "tests/unit/kernels/Corpus.h"
#include "tests/unit/kernels/CudaTwin.h"

#include <algorithm>
#include <filesystem>
#include <utility>

namespace mgpu::kernels {
namespace {

/// `tables`: loads of numbers that CUDA's own functions bring, which nothing
/// writes.
void expectToAwait(const CompiledKernel &program, const std::string &entry,
                   size_t tables = 0) {
  auto code = readMachineCode(program.cubin, entry);
  ASSERT_TRUE(code) << entry << ": " << code.error().message;
  ASSERT_GT(code->count("ACQBULK"), 0u) << entry << ": " << code->text();
  const MachineCode before = code->before("ACQBULK");
  for (const char *access :
       {"LDG", "LD", "LDGSTS", "UTMALDG", "STG", "ST", "ATOMG", "RED"})
    EXPECT_EQ(before.count(access), 0u) << entry << ": " << before.text();
  EXPECT_EQ(code->constants(), tables) << entry << ": " << code->text();
}

/// Without __restrict__ nothing of the program's is a constant for the
/// compiler; sin, cos and tan still read CUDA's tables.
size_t tablesOf(const NvrtcCompiler &compiler, const BatchItem &item) {
  auto alone = compiler.compile({batchSource({&item, 1}),
                                 item.entryName + ".cu",
                                 {"--fmad=false", "-D__restrict__="},
                                 "sm_90"});
  EXPECT_TRUE(alone) << item.entryName << ": " << alone.error().message;
  const std::string_view bytes(
      reinterpret_cast<const char *>(alone->cubin.data()), alone->cubin.size());
  if (bytes.find("__cudart_") == std::string_view::npos)
    return 0;
  auto code = readMachineCode(alone->cubin, item.entryName);
  return code ? code->constants() : 0;
}

/// Each operation on each type, in one shape of launch.
TEST(Await, NoKernelOfTheCorpusTouchesMemoryBefore) {
  MGPU_OPEN_NVRTC(compiler);
  const std::vector<CorpusKernel> corpus = corpusKernels();
  constexpr size_t most = 64; // kernels of a program
  std::vector<CompileJob> jobs;
  std::vector<std::vector<BatchItem>> parts;
  std::vector<BatchItem> items;
  auto flush = [&] {
    jobs.push_back({batchSource(items), "await.cu", {"--fmad=false"}, "sm_90"});
    parts.push_back(std::exchange(items, {}));
  };
  // Three shapes of an operation follow each other.
  for (size_t k = 0; k < corpus.size(); ++k) {
    if (k / 3 % 3 != k % 3)
      continue;
    const CorpusKernel &each = corpus[k];
    auto kernel =
        emitCudaText(each.text, {each.name, "", each.block, each.grid, 16,
                                 std::vector<bool>(each.buffers.size(), true)});
    ASSERT_TRUE(kernel) << each.name << ": " << kernel.error().message;
    items.push_back({kernel->image.blob,
                     kernel->image.entry,
                     "e" + std::to_string(k) + "_" + each.name,
                     {{"MGPU_PDL", "1"}}});
    if (items.size() == most)
      flush();
  }
  flush();
  const auto results = compiler->compileAll(jobs);
  size_t count = 0;
  for (size_t k = 0; k < results.size(); ++k) {
    ASSERT_TRUE(results[k]) << results[k].error().message;
    for (const BatchItem &each : parts[k]) {
      auto code = readMachineCode(results[k]->cubin, each.entryName);
      ASSERT_TRUE(code) << code.error().message;
      expectToAwait(*results[k], each.entryName,
                    code->constants() ? tablesOf(*compiler, each) : 0);
    }
    count += parts[k].size();
  }
  EXPECT_GT(count, corpus.size() / 4);
}

/// The forms that have texts of their own: products, sums, norms, stencils.
TEST(Await, NorDoesAFormOfItsOwn) {
  MGPU_OPEN_NVRTC(compiler);
  size_t count = 0;
  for (const auto &file :
       std::filesystem::directory_iterator(MGPU_GOLDEN_DIR)) {
    if (file.path().extension() != ".cu")
      continue;
    auto text = readText(file.path(), 1 << 20);
    ASSERT_TRUE(text) << text.error().message;
    if (text->find("MGPU_PDL") == std::string::npos)
      continue;
    auto program = compiler->compile({*text,
                                      file.path().filename(),
                                      {"--fmad=false", "-DMGPU_PDL=1"},
                                      "sm_90a"});
    ASSERT_TRUE(program) << file.path() << program.error().message;
    for (const auto &entry : program->entries)
      expectToAwait(*program, entry.name);
    ++count;
  }
  EXPECT_GE(count, 10u);
}

} // namespace
} // namespace mgpu::kernels
