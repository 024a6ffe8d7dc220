// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// StableHLO's own files of every version of VHLO ($MGPU_STABLEHLO names a copy
// of github.com/openxla/stablehlo) become the operations of the text beside
// each.
#include "dialect/vhlo/Vhlo.h"
#include "pipeline/compiler/MlirCompiler.h"
#include "pipeline/compiler/ProgramDialects.h"
#include "support/FileIO.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Parser/Parser.h"

#include <cstdlib>
#include <filesystem>
#include <gtest/gtest.h>

namespace mgpu::pipeline {
namespace {

using namespace mlir;

/// Each operation in the generic form, without what it holds.
std::vector<std::string> operationsOf(StringRef text, MLIRContext &context) {
  std::vector<std::string> all;
  auto module = parseSourceString<ModuleOp>(
      text, ParserConfig(&context, /*verify=*/false));
  EXPECT_TRUE(module);
  if (module)
    module->walk([&](Operation *op) {
      std::string words;
      llvm::raw_string_ostream out(words);
      op->print(
          out,
          OpPrintingFlags().printGenericOpForm().skipRegions().useLocalScope());
      all.push_back(words);
    });
  return all;
}

Result<std::string> decodeFile(const std::filesystem::path &path) {
  MGPU_TRY_ASSIGN(auto bytes, readFile(path));
  return mlirCompiler().decode(bytes, path.filename());
}

TEST(Bytecode, EveryVersionEqualsItsText) {
  const char *folder = std::getenv("MGPU_STABLEHLO");
  if (!folder)
    GTEST_SKIP() << "MGPU_STABLEHLO names no copy of openxla/stablehlo";
  DialectRegistry registry = programDialects();
  vhlo::registerDialects(registry);
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  int numFiles = 0, numEqual = 0;
  for (const auto &entry : std::filesystem::directory_iterator(
           std::filesystem::path(folder) / "stablehlo/tests/vhlo")) {
    const std::string name = entry.path().filename();
    if (!name.starts_with("stablehlo_legalize_to_vhlo.") ||
        !name.ends_with(".mlir.bc"))
      continue;
    ++numFiles;
    auto decoded = decodeFile(entry.path());
    ASSERT_TRUE(decoded) << decoded.error().message;
    auto text = readText(entry.path().parent_path() / entry.path().stem(),
                         uint64_t(1) << 26);
    ASSERT_TRUE(text) << text.error().message;
    const auto found = operationsOf(*decoded, context),
               wanted = operationsOf(*text, context);
    EXPECT_GT(wanted.size(), 600u) << name;
    EXPECT_EQ(found.size(), wanted.size()) << name;
    size_t numWrong = 0;
    for (size_t k = 0; k < std::min(found.size(), wanted.size()); ++k)
      if (found[k] != wanted[k] && ++numWrong <= 3)
        ADD_FAILURE() << name << ":\n  " << found[k] << "\n  " << wanted[k];
    numEqual += numWrong == 0;
  }
  EXPECT_GE(numFiles, 32);
  EXPECT_EQ(numEqual, numFiles);
}

TEST(Bytecode, AFutureVersionIsRefusedByIt) {
  const char bytes[] = "ML\xefR\rStableHLO_v2.0.0\0\1";
  auto text = mlirCompiler().decode(std::as_bytes(std::span(bytes)), "f");
  ASSERT_FALSE(text);
  EXPECT_EQ(text.error().kind, ErrorKind::Unsupported);
  EXPECT_EQ(text.error().message,
            "'f' cannot be decoded (VHLO 2.0.0; this version reads up to "
            "1.20.0, which exporters can be asked for): its major version is "
            "not known");
}

} // namespace
} // namespace mgpu::pipeline
