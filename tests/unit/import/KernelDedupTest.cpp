// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Launches of equal behaviour share a kernel; launches that differ in anything
// that matters never do.
#include "ImportText.h"

#include "kernels/lower/KernelDialects.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Parser/Parser.h"
#include <gtest/gtest.h>

#include <set>

namespace mgpu::planner {
namespace {

/// The text without locations, and the block.
std::string contentOf(const KernelSpec &kernel) {
  mlir::DialectRegistry registry;
  kernels::registerHostEmitDialects(registry);
  mlir::MLIRContext context(registry);
  auto module =
      mlir::parseSourceString<mlir::ModuleOp>(**kernel.hostText(), &context);
  EXPECT_TRUE(module) << **kernel.hostText();
  std::string text;
  llvm::raw_string_ostream stream(text);
  if (module)
    module->print(stream, mlir::OpPrintingFlags().useLocalScope());
  stream << kernel.block.x << ' ' << kernel.block.y << ' ' << kernel.block.z;
  return text;
}

size_t countKernels(const std::string &body, const std::string &after = "") {
  ImportOptions lenient; // threads race in some of them
  lenient.racesAreErrors = false;
  Imported imported = importText(program(body) + after, lenient);
  EXPECT_TRUE(imported.program) << imported.text();
  if (!imported.program)
    return 0;
  std::set<std::string> hashes, names;
  for (const KernelSpec &kernel : imported.dag().kernels) {
    hashes.insert(kernel.hash);
    names.insert(kernel.name);
  }
  // One entry per hash, one name per entry.
  EXPECT_EQ(hashes.size(), imported.dag().kernels.size());
  EXPECT_EQ(names.size(), imported.dag().kernels.size());
  // Nor are two kernels of one content.
  std::set<std::string> contents;
  for (const KernelSpec &kernel : imported.dag().kernels)
    contents.insert(contentOf(kernel));
  EXPECT_EQ(contents.size(), imported.dag().kernels.size());
  return imported.dag().kernels.size();
}

size_t countOf(const std::vector<std::string> &bodies) {
  std::string text;
  for (const std::string &body : bodies)
    text += launch("%d0", "", body);
  return countKernels(text);
}

const std::string base = R"(
    %v = memref.load %a[%i] : memref<64xf32>
    %k = arith.constant 2.0 : f32
    %y = arith.subf %v, %k : f32
    memref.store %y, %a[%i] : memref<64xf32>
)";

std::string replaced(std::string text, const std::string &from,
                     const std::string &to) {
  size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

TEST(KernelDedup, EqualBodiesMerge) {
  EXPECT_EQ(countOf({base, base, base}), 1u);
  // Neither names of values nor the buffers matter, nor the device.
  std::string renamed =
      replaced(replaced(base, "%y = arith.subf %v", "%z = arith.subf %v"),
               "memref.store %y", "memref.store %z");
  EXPECT_EQ(countOf({base, renamed}), 1u);
  std::string other =
      replaced(replaced(base, "load %a[", "load %a2["), "%y, %a[", "%y, %a2[");
  EXPECT_EQ(countOf({base, other}), 1u);
  std::string second =
      replaced(replaced(base, "load %a[", "load %b["), "%y, %a[", "%y, %b[");
  EXPECT_EQ(countKernels(launch("%d0", "", base) + launch("%d1", "", second)),
            1u);
}

TEST(KernelDedup, HashIsOfTheKernelNotOfItsPlace) {
  Imported here = importText(program(launch("%d0", "", base)));
  Imported below = importText("\n\n\n" + program(launch("%d0", "", base)));
  ASSERT_TRUE(here.program && below.program);
  const KernelSpec &first = here.dag().kernels[0];
  const KernelSpec &second = below.dag().kernels[0];
  EXPECT_EQ(first.hash, second.hash);
  // The text does carry its places.
  EXPECT_NE(first.source, second.source);
  EXPECT_NE((*first.hostText())->find("loc("), std::string::npos);
}

// Bundles and databases know kernels by it: another process, another build,
// and another order of types in the context give the same.
TEST(KernelDedup, HashIsTheSameEverywhere) {
  Imported before = importText(program(launch("%d0", "", base)));
  ASSERT_TRUE(before.program) << before.text();
  ASSERT_EQ(before.dag().kernels.size(), 1u);
  EXPECT_EQ(before.dag().kernels[0].hash,
            "ca5e5b102ed9946af7a7fa53505fbb24e3d208ff08a9cff84ea3b29319bc2a5e");
}

TEST(KernelDedup, TextsAreLeftOutWithoutAnyOtherDifference) {
  std::string text = program(launch("%d0", "", base));
  ImportOptions options;
  options.kernelTexts = false;
  Imported with = importText(text), without = importText(text, options);
  ASSERT_TRUE(with.program && without.program);
  Dag dag = with.dag();
  ASSERT_TRUE(dag.kernels[0].hostText());
  dag.kernels[0].source = {};
  EXPECT_EQ(dag.kernels, without.dag().kernels);
  EXPECT_EQ(dag.nodes, without.dag().nodes);
}

TEST(KernelDedup, AnyDifferenceSeparates) {
  const std::vector<std::string> variants = {
      base,
      replaced(base, "2.0", "2.5"),
      replaced(base, "subf", "addf"),
      replaced(base, "%v, %k", "%k, %v"),
      replaced(base, "%v, %k : f32", "%v, %v : f32"),
      replaced(base, "%v, %k : f32", "%v, %k fastmath<nnan> : f32"),
      replaced(base, "arith.subf",
               "\"arith.subf\""
               "(%v, %k) {mine = 1 : i32} : (f32, f32) -> "
               "f32\n    %unused = arith.subf"),
      replaced(base, "%y, %a[%i]", "%v, %a[%i]"),
      replaced(base, "load %a[%i]", "load %a[%c0]"),
      replaced(base, "load %a[%i]", "load %a[%c1]"),
      replaced(base, "load %a[", "load %a2["), // two buffers, not one
      base + "    gpu.barrier\n",
      replaced(base, "memref.load %a[%i] :",
               "memref.load %a[%i] {nontemporal = true} :"),
  };
  EXPECT_EQ(countOf(variants), variants.size());
}

TEST(KernelDedup, TypesSeparate) {
  auto body = [](const std::string &buffer, const std::string &type) {
    return "    %v = memref.load " + buffer + "[%i] : memref<64x" + type +
           ">\n    memref.store %v, " + buffer + "[%i] : memref<64x" + type +
           ">\n";
  };
  std::string allocs;
  for (const char *type : {"i8", "i32", "f64", "bf16", "f16", "index", "i64"})
    allocs += std::string("  %m_") + type +
              " = mgpu.alloc %d0 : !mgpu.device -> memref<64x" + type + ">\n";
  std::string launches;
  for (const char *type : {"i8", "i32", "f64", "bf16", "f16", "index", "i64"})
    launches += launch("%d0", "", body(std::string("%m_") + type, type));
  EXPECT_EQ(countKernels(allocs + launches), 7u);
}

TEST(KernelDedup, BlockSizeSeparatesGridDoesNot) {
  auto sized = [](const char *grid, const char *block) {
    return std::string("  mgpu.launch %d0 grid(") + grid + ") block(" + block +
           ") {\n    %i = gpu.thread_id x\n    memref.store %one, %a[%i] : "
           "memref<64xf32>\n  }\n";
  };
  EXPECT_EQ(countKernels(sized("%c1", "%c8") + sized("%c2", "%c8")), 1u);
  EXPECT_EQ(countKernels(sized("%c1", "%c8") + sized("%c1", "%c32")), 2u);
}

TEST(KernelDedup, CapturedConstantsAreCopiedCapturedScalarsPassed) {
  std::string scaled = "    %f = arith.uitofp %n : i32 to f32\n"
                       "    memref.store %f, %a[%i] : memref<64xf32>\n";
  auto loop = [&](const std::string &count) {
    return "  scf.for %q = %c0 to " + count +
           " step %c1 {\n  %n = arith.index_cast %q : index to i32\n" +
           launch("%d0", "", scaled) + "  }\n";
  };
  // A scalar computed by the program is an argument: 32 launches, one kernel.
  ImportOptions unrolled;
  unrolled.rollFrom = 0;
  Imported imported = importText(program(loop("%c32")), unrolled);
  ASSERT_TRUE(imported.program) << imported.text();
  ASSERT_EQ(imported.dag().kernels.size(), 1u);
  auto nodes = kernelNodes(imported.dag());
  ASSERT_EQ(nodes.size(), 32u);
  for (size_t k = 0; k < nodes.size(); ++k) {
    const auto &call = std::get<KernelCall>(nodes[k]->work);
    ASSERT_EQ(call.arguments.size(), 2u);
    EXPECT_EQ(std::get<uint64_t>(call.arguments[0].value), k);
  }
  EXPECT_EQ(imported.dag().kernels[0].numArguments, 2u);
  // A constant is part of the kernel.
  EXPECT_EQ(countOf({"    memref.store %one, %a[%c1] : memref<64xf32>\n",
                     "    memref.store %one, %a[%c2] : memref<64xf32>\n"}),
            2u);
}

TEST(KernelDedup, ViewsDifferInTheirAddressAlone) {
  std::string body =
      "  scf.for %q = %c0 to %c8 step %c1 {\n"
      "  %o = arith.muli %q, %c8 : index\n"
      "  %v = memref.subview %a[%o] [8] [1] : memref<64xf32> to "
      "memref<8xf32, strided<[1], offset: ?>>\n"
      "  mgpu.launch %d0 grid(%c1) block(%c8) {\n    %i = gpu.thread_id x\n"
      "    memref.store %one, %v[%i] : memref<8xf32, strided<[1], offset: "
      "?>>\n  }\n  }\n";
  Imported imported = importText(program(body));
  ASSERT_TRUE(imported.program) << imported.text();
  EXPECT_EQ(imported.dag().kernels.size(), 1u);
  auto nodes = kernelNodes(imported.dag());
  ASSERT_EQ(nodes.size(), 8u);
  for (size_t k = 0; k < nodes.size(); ++k)
    EXPECT_EQ(std::get<KernelCall>(nodes[k]->work).arguments[0].offsetBytes,
              int64_t(k) * 32);
  // Strides are part of the kernel.
  std::string strided =
      "  %o = arith.constant 2 : index\n"
      "  %v = memref.subview %a[0] [8] [%o] : memref<64xf32> to "
      "memref<8xf32, strided<[?]>>\n"
      "  %w = memref.subview %a[0] [8] [%c8] : memref<64xf32> to "
      "memref<8xf32, strided<[?]>>\n";
  for (const char *view : {"%v", "%w"})
    strided += std::string("  mgpu.launch %d0 grid(%c1) block(%c8) {\n    %i = "
                           "gpu.thread_id x\n    memref.store %one, ") +
               view + "[%i] : memref<8xf32, strided<[?]>>\n  }\n";
  EXPECT_EQ(countKernels(strided), 2u);
}

TEST(KernelDedup, RegionsAndControlFlowCount) {
  auto guard = [](const std::string &predicate, bool otherwise) {
    return "    %in = arith.cmpi " + predicate +
           ", %i, %c8 : index\n    scf.if %in {\n      memref.store %one, "
           "%a[%i] : memref<64xf32>\n    }" +
           (otherwise ? " else {\n      memref.store %one, %a[%c0] : "
                        "memref<64xf32>\n    }\n"
                      : "\n");
  };
  std::string after = "    memref.store %one, %a[%i] : memref<64xf32>\n";
  // The last: the store is behind the branch, not in it.
  EXPECT_EQ(
      countOf({guard("ult", false), guard("ule", false), guard("ult", true),
               "    %in = arith.cmpi ult, %i, %c8 : index\n    scf.if %in {\n"
               "    }\n" +
                   after}),
      4u);
}

TEST(KernelDedup, WorkgroupMemoryAndDynamicSizeSeparate) {
  auto with = [](const std::string &clause, const std::string &body) {
    return "  mgpu.launch %d0 grid(%c1) block(%c64) " + clause +
           "{\n    %i = gpu.thread_id x\n" + body + "  }\n";
  };
  std::string store = "    memref.store %one, %a[%i] : memref<64xf32>\n";
  auto workgroup = [&](const std::string &size) {
    return with("workgroup(%w : memref<" + size +
                    "xf32, #gpu.address_space<workgroup>>) ",
                store);
  };
  EXPECT_EQ(countKernels(with("", store) + workgroup("64") + workgroup("32") +
                         workgroup("32")),
            3u);
}

TEST(KernelDedup, SharedCalleesComeAlong) {
  std::string body = "    %v = memref.load %a[%i] : memref<64xf32>\n"
                     "    %w = func.call @outer(%v) : (f32) -> f32\n"
                     "    memref.store %w, %a[%i] : memref<64xf32>\n";
  std::string callees =
      "func.func private @outer(%v: f32) -> f32 {\n"
      "  %w = func.call @inner(%v) : (f32) -> f32\n"
      "  return %w : f32\n}\n"
      "func.func private @inner(%v: f32) -> f32 {\n"
      "  %w = arith.addf %v, %v : f32\n  return %w : f32\n}\n"
      "func.func private @other(%v: f32) -> f32 {\n"
      "  %w = arith.addf %v, %v : f32\n  return %w : f32\n}\n";
  Imported imported = importText(program(launch("%d0", "", body)) + callees);
  ASSERT_TRUE(imported.program) << imported.text();
  ASSERT_EQ(imported.dag().kernels.size(), 1u);
  const std::string &source = **imported.dag().kernels[0].hostText();
  EXPECT_NE(source.find("@outer"), std::string::npos);
  EXPECT_NE(source.find("@inner"), std::string::npos);
  EXPECT_EQ(source.find("@other"), std::string::npos);

  // What they do is what the kernel does.
  auto hashWith = [&](const std::string &from, const std::string &to) {
    Imported made = importText(program(launch("%d0", "", body)) +
                               replaced(callees, from, to));
    EXPECT_TRUE(made.program) << made.text();
    return made.program ? made.dag().kernels[0].hash : "";
  };
  const std::string &hash = imported.dag().kernels[0].hash;
  EXPECT_EQ(hashWith("@other(%v: f32)", "@other(%u: f64, %v: f32)"), hash);
  EXPECT_NE(hashWith("@inner(%v: f32) -> f32 {\n  %w = arith.addf",
                     "@inner(%v: f32) -> f32 {\n  %w = arith.mulf"),
            hash);
}

TEST(KernelDedup, WhatCannotBeTakenOutOfTheProgramIsSaid) {
  auto messageOf = [](const std::string &body, const std::string &after = "") {
    ImportOptions options;
    options.kernelTexts = false;
    Imported made =
        importText(program(launch("%d0", "", body)) + after, options);
    EXPECT_FALSE(made.program);
    return made.text();
  };
  EXPECT_NE(messageOf("    %q = mgpu.get_device %c0 : !mgpu.device\n")
                .find("cannot be used inside a kernel"),
            std::string::npos);
  EXPECT_NE(messageOf("    func.call @outer() : () -> ()\n",
                      "func.func private @inner()\n"
                      "func.func private @outer() {\n"
                      "  func.call @inner() : () -> ()\n  return\n}\n")
                .find("calls 'inner', which has no body in this module"),
            std::string::npos);
}

} // namespace
} // namespace mgpu::planner
