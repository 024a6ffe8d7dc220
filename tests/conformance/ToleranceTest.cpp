// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a kernel may change of a program's results, and what not: each variant
// of a kernel is a candidate, checked as the tuner checks it.
#include "tests/conformance/Execute.h"
#include "tests/conformance/Import.h"

#include "device/host/HostDriver.h"
#include "pipeline/compiler/KernelBuild.h"
#include "tuner/candidate/Evaluator.h"

#include <cstring>
#include <gtest/gtest.h>

namespace mgpu::conformance {
namespace {

struct Variant {
  const char *name;
  bool isAccepted;
  std::string body;
};

/// Rows of %x, a thread for each, make %out.
struct ToleranceCase {
  const char *name;
  std::string x, w, out; ///< types
  std::string body;      ///< on %x, %w, %out and %row, the thread
  std::vector<Variant> variants;
  std::string then = "";     ///< launches after it, on %x and %out
  std::string onlyBits = ""; ///< part of why there is no tolerance
};

void PrintTo(const ToleranceCase &shown, std::ostream *os) {
  *os << shown.name;
}

std::string programOf(const ToleranceCase &test, const std::string &body) {
  std::string text =
      "mgpu.device_config @config #mgpu.device_config<numDevices = 1>\n"
      "func.func @main(%hx: " +
      test.x + ", %hw: " + test.w + ", %hout: " + test.out + R"() {
  %cm1 = arith.constant -1 : index
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %rows = arith.constant 16 : index
  %n = arith.constant 300 : index
  %host = mgpu.get_device %cm1 : !mgpu.device
  %d = mgpu.get_device %c0 : !mgpu.device
)";
  for (auto [name, type] :
       {std::pair("x", test.x), {"w", test.w}, {"out", test.out}}) {
    std::string n = name;
    text += "  %" + n + " = mgpu.alloc %d : !mgpu.device -> " + type +
            "\n  mgpu.memcpy %" + n + ", %h" + n + ", %d, %host : " + type +
            ", " + type + ", !mgpu.device, !mgpu.device\n";
  }
  return text +
         "  mgpu.launch %d grid(%c1) block(%rows) {\n    %row = gpu.thread_id "
         "x\n" +
         body + "  }\n" + test.then +
         "  mgpu.memcpy %hout, %out, %host, %d : " + test.out + ", " +
         test.out + ", !mgpu.device, !mgpu.device\n  return\n}\n";
}

/// A sum in `type` from `first` to `last` by `step`, into %NAME: `term` leaves
/// its terms in %term for %k.
std::string sumOf(const std::string &name, const std::string &term,
                  const std::string &first = "%c0",
                  const std::string &last = "%n",
                  const std::string &step = "%c1",
                  const std::string &type = "f32") {
  return "    %" + name + "zero = arith.constant 0.0 : " + type + "\n    %" +
         name + " = scf.for %k = " + first + " to " + last + " step " + step +
         " iter_args(%sum = %" + name + "zero) -> (" + type + ") {\n" + term +
         "      %next = arith.addf %sum, %term : " + type +
         "\n      scf.yield %next : " + type + "\n    }\n";
}

std::string storeOf(const std::string &value, const std::string &type) {
  return "    memref.store %" + value + ", %out[%row] : memref<16x" + type +
         ">\n";
}

const std::string
    element = "      %term = memref.load %x[%row, %k] : memref<16x300xf32>\n",
    product = "      %a = memref.load %x[%row, %k] : memref<16x300xf32>\n"
              "      %b = memref.load %w[%k] : memref<300xf32>\n"
              "      %term = arith.mulf %a, %b : f32\n",
    narrowProduct =
        "      %a = memref.load %x[%row, %k] : memref<16x300xbf16>\n"
        "      %b = memref.load %w[%k] : memref<300xbf16>\n",
    wideProduct = narrowProduct + "      %wa = arith.extf %a : bf16 to f32\n"
                                  "      %wb = arith.extf %b : bf16 to f32\n"
                                  "      %term = arith.mulf %wa, %wb : f32\n";

std::string halves(const std::string &term) {
  return sumOf("even", term, "%c0", "%n", "%c2") +
         sumOf("odd", term, "%c1", "%n", "%c2") +
         "    %s = arith.addf %even, %odd : f32\n";
}

std::string backwards() {
  return sumOf("s", "      %m = arith.subi %n, %k : index\n"
                    "      %at = arith.subi %m, %c1 : index\n"
                    "      %term = memref.load %x[%row, %at] : "
                    "memref<16x300xf32>\n");
}

std::string lastSkipped(const std::string &term) {
  return "    %most = arith.subi %n, %c1 : index\n" +
         sumOf("s", term, "%c0", "%most");
}

/// `compute` makes %y of %v, an element of %x.
std::string each(const std::string &compute) {
  return "    scf.for %k = %c0 to %n step %c1 {\n"
         "      %v = memref.load %x[%row, %k] : memref<16x300xf32>\n" +
         compute +
         "      memref.store %y, %out[%row, %k] : memref<16x300xf32>\n    }\n";
}

std::vector<ToleranceCase> cases() {
  const std::string rows = "memref<16x300xf32>", line = "memref<300xf32>",
                    sums = "memref<16xf32>";
  const std::string shifted = "      %m = arith.addi %k, %c1 : index\n"
                              "      %at = arith.remui %m, %n : index\n";
  std::vector<ToleranceCase> all;
  all.push_back(
      {"sum",
       rows,
       line,
       sums,
       sumOf("s", element) + storeOf("s", "f32"),
       {{"halves", true, halves(element) + storeOf("s", "f32")},
        {"backwards", true, backwards() + storeOf("s", "f32")},
        {"in_f64", true,
         sumOf("l",
               "      %v = memref.load %x[%row, %k] : memref<16x300xf32>\n"
               "      %term = arith.extf %v : f32 to f64\n",
               "%c0", "%n", "%c1", "f64") +
             "    %s = arith.truncf %l : f64 to f32\n" + storeOf("s", "f32")},
        {"last_term_missing", false,
         lastSkipped(element) + storeOf("s", "f32")},
        {"first_term_twice", false,
         sumOf("r", element) +
             "    %v = memref.load %x[%row, %c0] : memref<16x300xf32>\n"
             "    %s = arith.addf %r, %v : f32\n" +
             storeOf("s", "f32")},
        {"next_row", false,
         "    %m = arith.addi %row, %c1 : index\n"
         "    %other = arith.remui %m, %rows : index\n" +
             sumOf("s", "      %term = memref.load %x[%other, %k] : "
                        "memref<16x300xf32>\n") +
             storeOf("s", "f32")},
        {"terms_in_bf16", false,
         sumOf("s", "      %v = memref.load %x[%row, %k] : memref<16x300xf32>\n"
                    "      %h = arith.truncf %v : f32 to bf16\n"
                    "      %term = arith.extf %h : bf16 to f32\n") +
             storeOf("s", "f32")}}});
  all.push_back(
      {"dot",
       rows,
       line,
       sums,
       sumOf("s", product) + storeOf("s", "f32"),
       {{"fused", true,
         "    %zero = arith.constant 0.0 : f32\n"
         "    %s = scf.for %k = %c0 to %n step %c1 iter_args(%sum = %zero) -> "
         "(f32) {\n"
         "      %a = memref.load %x[%row, %k] : memref<16x300xf32>\n"
         "      %b = memref.load %w[%k] : memref<300xf32>\n"
         "      %next = math.fma %a, %b, %sum : f32\n"
         "      scf.yield %next : f32\n    }\n" +
             storeOf("s", "f32")},
        {"halves", true, halves(product) + storeOf("s", "f32")},
        {"last_term_missing", false,
         lastSkipped(product) + storeOf("s", "f32")},
        {"weights_one_off", false,
         sumOf("s", shifted +
                        "      %a = memref.load %x[%row, %k] : "
                        "memref<16x300xf32>\n"
                        "      %b = memref.load %w[%at] : memref<300xf32>\n"
                        "      %term = arith.mulf %a, %b : f32\n") +
             storeOf("s", "f32")}}});
  // The mean is off by what its order of terms makes, and so is all that is
  // made of it.
  all.push_back(
      {"mean_and_centre",
       rows,
       line,
       rows,
       sumOf("s", element) +
           "    memref.store %s, %out[%row, %c0] : memref<16x300xf32>\n",
       {{"halves", true,
         halves(element) +
             "    memref.store %s, %out[%row, %c0] : memref<16x300xf32>\n"},
        {"last_term_missing", false,
         lastSkipped(element) +
             "    memref.store %s, %out[%row, %c0] : memref<16x300xf32>\n"}},
       R"(  mgpu.launch %d grid(%c1) block(%rows) {
    %row = gpu.thread_id x
    %count = arith.constant 300.0 : f32
    %sum = memref.load %out[%row, %c0] : memref<16x300xf32>
    %mean = arith.divf %sum, %count : f32
    scf.for %k = %c0 to %n step %c1 {
      %v = memref.load %x[%row, %k] : memref<16x300xf32>
      %y = arith.subf %v, %mean : f32
      %e = math.exp %y : f32
      memref.store %e, %out[%row, %k] : memref<16x300xf32>
    }
  }
)"});
  const std::string scaled = "      %c = arith.constant 3.0 : f32\n"
                             "      %z = arith.mulf %v, %c : f32\n";
  all.push_back(
      {"sine",
       rows,
       line,
       rows,
       each(scaled + "      %y = math.sin %z : f32\n"),
       {{"of_the_rest", true, // sin z = -sin(-z)
         each(scaled + "      %m = arith.negf %z : f32\n"
                       "      %o = math.sin %m : f32\n"
                       "      %y = arith.negf %o : f32\n")},
        {"in_f64", true,
         each("      %c = arith.constant 3.0 : f64\n"
              "      %l = arith.extf %v : f32 to f64\n"
              "      %z = arith.mulf %l, %c : f64\n"
              "      %r = math.sin %z : f64\n"
              "      %y = arith.truncf %r : f64 to f32\n")},
        // As of fast forms, its error is small beside 1, not beside the sine.
        {"by_cosine", false,
         each(scaled + "      %q = arith.constant 1.57079637 : f32\n"
                       "      %m = arith.subf %z, %q : f32\n"
                       "      %y = math.cos %m : f32\n")}}});
  all.push_back({"cancellation",
                 rows,
                 line,
                 rows,
                 each("      %big = arith.constant 10000.0 : f32\n"
                      "      %p = arith.addf %v, %big : f32\n"
                      "      %y = arith.subf %p, %big : f32\n"),
                 {{"nothing_cancels", true,
                   each("      %big = arith.constant 0.0 : f32\n"
                        "      %y = arith.addf %v, %big : f32\n")},
                  {"off_by_more_than_cancels", false,
                   each("      %big = arith.constant 0.1 : f32\n"
                        "      %y = arith.addf %v, %big : f32\n")}}});
  all.push_back({"moved",
                 rows,
                 line,
                 rows,
                 each("      %y = arith.negf %v : f32\n"),
                 {{"last_bit", false,
                   each("      %i = arith.bitcast %v : f32 to i32\n"
                        "      %one = arith.constant 1 : i32\n"
                        "      %j = arith.xori %i, %one : i32\n"
                        "      %u = arith.bitcast %j : i32 to f32\n"
                        "      %y = arith.negf %u : f32\n")}}});
  all.push_back(
      {"counts",
       rows,
       line,
       "memref<16xi32>",
       "    %zero = arith.constant 0 : i32\n    %one = arith.constant 1 : i32\n"
       "    %half = arith.constant 0.5 : f32\n"
       "    %s = scf.for %k = %c0 to %n step %c1 iter_args(%c = %zero) -> "
       "(i32) {\n"
       "      %v = memref.load %x[%row, %k] : memref<16x300xf32>\n"
       "      %is = arith.cmpf ogt, %v, %half : f32\n"
       "      %more = arith.addi %c, %one : i32\n"
       "      %next = arith.select %is, %more, %c : i32\n"
       "      scf.yield %next : i32\n    }\n" +
           storeOf("s", "i32"),
       {{"one_more", false,
         "    %zero = arith.constant 1 : i32\n"
         "    %one = arith.constant 1 : i32\n"
         "    %half = arith.constant 0.5 : f32\n"
         "    %s = scf.for %k = %c0 to %n step %c1 iter_args(%c = %zero) -> "
         "(i32) {\n"
         "      %v = memref.load %x[%row, %k] : memref<16x300xf32>\n"
         "      %is = arith.cmpf ogt, %v, %half : f32\n"
         "      %more = arith.addi %c, %one : i32\n"
         "      %next = arith.select %is, %more, %c : i32\n"
         "      scf.yield %next : i32\n    }\n" +
             storeOf("s", "i32")}}});
  const std::string narrowSum =
      sumOf("s", narrowProduct + "      %term = arith.mulf %a, %b : bf16\n",
            "%c0", "%n", "%c1", "bf16") +
      storeOf("s", "bf16");
  all.push_back(
      {"narrow_dot",
       "memref<16x300xbf16>",
       "memref<300xbf16>",
       "memref<16xbf16>",
       sumOf("l", wideProduct) + "    %s = arith.truncf %l : f32 to bf16\n" +
           storeOf("s", "bf16"),
       {{"halves", true,
         halves(wideProduct) + "    %t = arith.truncf %s : f32 to bf16\n" +
             storeOf("t", "bf16")},
        {"sums_in_bf16", false, narrowSum},
        {"last_term_missing", false,
         lastSkipped(wideProduct) + "    %t = arith.truncf %s : f32 to bf16\n" +
             storeOf("t", "bf16")}}});
  // Whose own sums are that far off takes better ones.
  all.push_back(
      {"narrow_sums",
       "memref<16x300xbf16>",
       "memref<300xbf16>",
       "memref<16xbf16>",
       narrowSum,
       {{"sums_in_f32", true,
         sumOf("l", wideProduct) + "    %s = arith.truncf %l : f32 to bf16\n" +
             storeOf("s", "bf16")},
        {"another_number", false,
         narrowSum + "    %big = arith.constant 1000.0 : bf16\n" +
             storeOf("big", "bf16")}}});
  all.push_back(
      {"atomic_sum",
       rows,
       line,
       sums,
       sumOf("s", element) +
           "    %old = memref.atomic_rmw addf %s, %out[%row] : (f32, "
           "memref<16xf32>) -> f32\n",
       {{"halves", false,
         halves(element) + "    %old = memref.atomic_rmw addf %s, %out[%row] : "
                           "(f32, memref<16xf32>) -> f32\n"}},
       "",
       "'memref.atomic_rmw' op has no rule for its rounding error"});
  return all;
}

class ToleranceTest : public testing::TestWithParam<ToleranceCase> {};

TEST_P(ToleranceTest, TakesOtherOrdersAndNoOtherResults) {
  const ToleranceCase &test = GetParam();
  Importer importer;
  auto import = [&](const std::string &body) {
    ImportRequest request;
    request.text = programOf(test, body);
    request.name = test.name;
    ImportOutcome made = importer.import(request);
    EXPECT_TRUE(made.dag) << made.dag.error().message << "\n" << request.text;
    for (const std::string &error : made.errors)
      ADD_FAILURE() << error;
    return made;
  };
  ImportOutcome original = import(test.body);
  ASSERT_TRUE(original.dag);
  const planner::Dag &dag = *original.dag;
  auto random = randomInputs(dag, 5);
  ASSERT_TRUE(random) << random.error().message;
  std::vector<tuner::ProgramInput> inputs;
  for (uint32_t id = 0; id < dag.buffers.size(); ++id) {
    const planner::Buffer &buffer = dag.buffers[id];
    if (auto at = random->find(buffer.name);
        at != random->end() && buffer.device.isHost() &&
        buffer.role == planner::BufferRole::Argument)
      inputs.push_back({{id}, buffer.elementType, at->second});
  }
  tuner::ProgramData data(dag, std::move(inputs));
  std::vector<kernels::KernelSpace> spaces;
  const std::vector<Dim3> grids = planner::largestGrids(dag);
  for (size_t k = 0; k < dag.kernels.size(); ++k) {
    auto space = kernels::kernelSpaceOf(dag.kernels[k], grids[k],
                                        kernels::KernelTarget::Host);
    ASSERT_TRUE(space) << space.error().message;
    spaces.push_back(std::move(*space));
  }
  device::DriverFactory open = [](uint32_t devices, uint32_t threads,
                                  std::span<const int> cpus) {
    return device::createHostDriver(devices, threads, cpus);
  };
  tuner::TuningSubject subject{
      dag, data, spaces,
      [&](uint32_t kernel, const kernels::KernelConfig &config,
          uint32_t) -> Result<Bytes> {
        MGPU_TRY_ASSIGN(auto build,
                        kernels::buildHostKernel(dag.kernels[kernel],
                                                 spaces[kernel], config));
        return std::move(build.object);
      },
      open};
  subject.accuracy =
      tuner::Accuracy{[&](uint32_t kernel) {
                        return kernels::buildErrorKernel(dag.kernels[kernel]);
                      },
                      open};
  auto evaluator = tuner::Evaluator::create(subject, {});
  ASSERT_TRUE(evaluator) << evaluator.error().message;
  auto realized = (*evaluator)->realize((*evaluator)->defaults());
  ASSERT_TRUE(realized && *realized);
  KernelCache cache;
  for (const Variant &variant : test.variants) {
    ImportOutcome changed = import(variant.body);
    ASSERT_TRUE(changed.dag);
    auto objects = cache.compile(*changed.dag);
    ASSERT_TRUE(objects) << objects.error().message;
    tuner::Realization candidate = **realized;
    ASSERT_EQ(objects->size(), candidate.kernels.size());
    for (size_t k = 0; k < objects->size(); ++k)
      candidate.kernels[k] = std::make_shared<Bytes>((*objects)[k]);
    auto admitted = (*evaluator)->admit(candidate);
    ASSERT_TRUE(admitted) << admitted.error().message;
    EXPECT_EQ(admitted->has_value(), variant.isAccepted)
        << variant.name << ": "
        << (*admitted ? toText((*admitted)->agreement())
                      : admitted->error().what);
    if (!*admitted)
      EXPECT_EQ(admitted->error().kind, FaultKind::WrongResult) << variant.name;
    RecordProperty(variant.name, *admitted ? toText((*admitted)->agreement())
                                           : admitted->error().what);
  }
  const std::string &reason = (*evaluator)->whyOnlyBits();
  EXPECT_EQ(reason.empty(), test.onlyBits.empty()) << reason;
  EXPECT_NE(reason.find(test.onlyBits), std::string::npos) << reason;
}

INSTANTIATE_TEST_SUITE_P(Kernels, ToleranceTest, testing::ValuesIn(cases()),
                         [](const auto &info) {
                           return std::string(info.param.name);
                         });

} // namespace
} // namespace mgpu::conformance
