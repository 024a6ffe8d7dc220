// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Variants of GPUs' programs: words, the rule of defaults, and what the
// database keeps of them.
#include "tests/unit/db/TempFolder.h"

#include "kernels/compile/CudaText.h"
#include "pipeline/build/Kernels.h"
#include "pipeline/build/Prepare.h"
#include "pipeline/build/TuneContext.h"
#include "pipeline/program/VariantRecord.h"

#include <gtest/gtest.h>

namespace mgpu::pipeline {
namespace {

using enum Variant;
using Verdict = Evidence::Verdict;
using List = std::vector<Variant>;

Variants of(std::initializer_list<const char *> words) {
  Variants variants;
  for (const char *word : words) {
    auto taken = variants.take(word);
    EXPECT_TRUE(taken) << taken.error().message;
  }
  return variants;
}

TEST(Variants, EachHasANameAndWhatItNeeds) {
  for (const VariantFacts &each : variantTable) {
    auto named = variantNamed(each.name);
    ASSERT_TRUE(named);
    EXPECT_EQ(*named, each.variant);
    EXPECT_GT(std::string(each.meaning).size(), 20u) << each.name;
    EXPECT_FALSE(needsOf(each).empty()) << each.name;
    EXPECT_FALSE(std::string(each.record).empty()) << each.name;
  }
  EXPECT_EQ(needsOf(factsOf(Wgmma)), "sm_90a");
  EXPECT_EQ(needsOf(factsOf(Mma)), "sm_80");
  EXPECT_EQ(needsOf(factsOf(CublasLt)), "libcublasLt");
  EXPECT_EQ(variantNamed("wgmm").error().message,
            "'wgmm' is none of wgmma, mma, cublaslt, cusparse, pdl; did you "
            "mean 'wgmma'?");
}

/// The table's first architecture of `pdl` is the compiler's.
TEST(Variants, KernelsWaitFromTheTablesArchitectureOn) {
  const uint32_t least = factsOf(Pdl).leastArch;
  EXPECT_TRUE(checkPdl(true, "sm_" + std::to_string(least)));
  EXPECT_FALSE(checkPdl(true, "sm_" + std::to_string(least - 1)));
  EXPECT_TRUE(checkPdl(false, "sm_80"));
  EXPECT_EQ(pdlSetting("sm_80", true).values, std::vector<std::string>{"off"});
  EXPECT_EQ(pdlSetting("sm_90", false).values,
            (std::vector<std::string>{"off", "on"}));
  EXPECT_EQ(pdlSetting("sm_90", true).values,
            (std::vector<std::string>{"on", "off"}));
  EXPECT_FALSE(usesPdl({}, false));
  EXPECT_TRUE(usesPdl({}, true));
  EXPECT_FALSE(usesPdl({{"pdl", "off"}}, true));
}

TEST(Variants, TheDefaultFollowsFromTheEvidence) {
  const Evidence unknown, passed{Verdict::Passed, 10, 0, ""},
      faster{Verdict::Passed, 10, 11, ""}, equal{Verdict::Passed, 10, 10, ""},
      slower{Verdict::Passed, 10, 9, ""},
      failed{Verdict::Failed, 10, 11, "c differs"};
  using enum DefaultRule;
  struct Case {
    const Evidence *evidence;
    bool wherePassed, whereNotSlower, whereThere;
  };
  for (const Case &each : {Case{&unknown, false, false, true},
                           {&passed, true, false, true},
                           {&faster, true, true, true},
                           {&equal, true, true, true},
                           {&slower, true, false, true},
                           {&failed, false, false, false}}) {
    EXPECT_EQ(isDefault(WherePassed, *each.evidence), each.wherePassed);
    EXPECT_EQ(isDefault(WhereNotSlower, *each.evidence), each.whereNotSlower);
    EXPECT_EQ(isDefault(WhereThere, *each.evidence), each.whereThere);
  }
  EXPECT_EQ(factsOf(Pdl).rule, WhereNotSlower);
  const Variants bare;
  EXPECT_FALSE(bare.uses(Wgmma) || bare.uses(Mma) || bare.uses(Pdl));
  EXPECT_TRUE(bare.uses(CublasLt) && bare.uses(Cusparse));
}

TEST(Variants, WordsAreTaken) {
  EXPECT_TRUE(of({}).isOpen());
  EXPECT_TRUE(of({"pdl=on", "pdl=auto"}).isOpen());
  const Variants some = of({"pdl", "mma=on", "cusparse=off"});
  EXPECT_FALSE(some.isOpen());
  EXPECT_TRUE(some.isAsked(Pdl) && some.isAsked(Mma));
  EXPECT_FALSE(some.uses(Cusparse) || some.isAsked(Wgmma));
  EXPECT_TRUE(some.uses(CublasLt));
  Variants wrong;
  for (const char *word : {"", "=on", "pdl=", "pdl=1", "pdl=on=on", "PDL"})
    EXPECT_EQ(wrong.take(word).error().kind, ErrorKind::Usage) << word;
  EXPECT_TRUE(wrong.isOpen());
}

TEST(Variants, WhatIsAskedForGoesBeforeWhatIsOpen) {
  EXPECT_EQ(of({}).productForms(), List{});
  EXPECT_EQ(of({"mma"}).productForms(), List{Mma});
  EXPECT_EQ(of({"mma", "wgmma"}).productForms(), (List{Wgmma, Mma}));
  Variants passed = of({"mma"});
  passed.byDefault[size_t(Wgmma)] = true;
  EXPECT_EQ(passed.productForms(), (List{Mma, Wgmma}));
  ASSERT_TRUE(passed.take("cublaslt"));
  EXPECT_EQ(passed.productForms(), List{Mma});
  ASSERT_TRUE(passed.take("mma=auto"));
  EXPECT_EQ(passed.productForms(), List{});
  // Texts do not depend on how kernels are launched.
  EXPECT_EQ(of({"pdl"}).textKey(), of({}).textKey());
  EXPECT_NE(of({"mma"}).textKey(), of({}).textKey());
  EXPECT_NE(of({"mma=off"}).textKey(), of({}).textKey());
}

class VariantRecord : public testing::Test {
protected:
  void SetUp() override {
    options.database = folder / "variants.db";
    options.target = "cuda:0";
  }
  void open() {
    auto opened = db::TuningStore::open(options.database);
    ASSERT_TRUE(opened) << opened.error().message;
    store.emplace(std::move(*opened));
  }
  void record(const GpuIdentity &gpu, Variant variant, const char *fault,
              double us = 12.5, double withoutUs = 0) {
    auto done = recordEvidence(
        *store, gpu, variant,
        {*fault ? Verdict::Failed : Verdict::Passed, us, withoutUs, fault});
    ASSERT_TRUE(done) << done.error().message;
  }
  /// The variants that are on, of those that need evidence.
  List passed(const LoadOptions &asked) {
    const Variants variants = withEvidence(asked, [&](const std::string &) {
      ++numAsked;
      return Result<std::vector<GpuIdentity>>(gpus);
    });
    List on;
    for (Variant each : {Wgmma, Mma, Pdl})
      if (!variants.isAsked(each) && variants.uses(each))
        on.push_back(each);
    if (!variants.uses(CublasLt))
      on.push_back(CublasLt); // that it is off is what is to be seen
    return on;
  }
  List passed() { return passed(options); }

  db::TempFolder folder;
  LoadOptions options;
  const GpuIdentity h100{"NVIDIA H100", "sm_90", "13.0"},
      older{"NVIDIA H100", "sm_90", "12.8"},
      a100{"NVIDIA A100", "sm_80", "13.0"};
  std::vector<GpuIdentity> gpus{h100};
  std::optional<db::TuningStore> store;
  size_t numAsked = 0;
};

/// A variant is a GPU's default where it has passed there, with this driver,
/// and never where it once failed.
TEST_F(VariantRecord, WhatPassedOnAGpuIsItsDefault) {
  EXPECT_EQ(passed(), List{});
  open();
  EXPECT_EQ(passed(), List{});
  EXPECT_EQ(numAsked, 0u) << "a GPU is asked for though nothing is stored";
  record(h100, Mma, "");
  EXPECT_EQ(passed(), List{Mma});
  record(h100, Wgmma, "");
  EXPECT_EQ(passed(), (List{Wgmma, Mma}));
  gpus = {older};
  EXPECT_EQ(passed(), List{});
  gpus = {h100, a100}; // both must have it
  EXPECT_EQ(passed(), List{});
  record(a100, Mma, "");
  EXPECT_EQ(passed(), List{Mma});
  gpus = {h100};
  record(h100, Wgmma, "c differs");
  EXPECT_EQ(passed(), List{Mma});
  record(h100, Wgmma, ""); // for good
  EXPECT_EQ(passed(), List{Mma});
  record(h100, CublasLt, "c differs");
  EXPECT_EQ(passed(), (List{Mma, CublasLt}));
  for (auto change :
       {+[](LoadOptions &o) { o.target = "host"; },
        +[](LoadOptions &o) {
          o.variants.words = of({"wgmma", "mma=off", "cublaslt=off"}).words;
        },
        +[](LoadOptions &o) { o.usesRecord = false; },
        +[](LoadOptions &o) { o.database += "x"; }}) {
    LoadOptions other = options;
    change(other);
    const List on = passed(other);
    EXPECT_TRUE(on == List{} || on == List{CublasLt}); // as was asked for
  }
}

TEST_F(VariantRecord, EarlyKernelsMustNotBeSlower) {
  open();
  record(h100, Pdl, "", 10);
  EXPECT_EQ(passed(), List{}) << "nobody knows whether it is slower";
  record(h100, Pdl, "", 10, 9.5);
  EXPECT_EQ(passed(), List{});
  record(h100, Pdl, "", 10, 10.5); // the newest counts
  EXPECT_EQ(passed(), List{Pdl});
  auto evidence = evidenceOf(*store, h100, Pdl);
  ASSERT_TRUE(evidence) << evidence.error().message;
  EXPECT_EQ(evidence->us, 10);
  EXPECT_EQ(evidence->withoutUs, 10.5);
  record(h100, Pdl, "y differs");
  EXPECT_EQ(passed(), List{});
  evidence = evidenceOf(*store, h100, Pdl);
  ASSERT_TRUE(evidence) << evidence.error().message;
  EXPECT_EQ(evidence->verdict, Verdict::Failed);
  EXPECT_EQ(evidence->fault, "y differs");
}

/// As it was written before there were variants.
TEST_F(VariantRecord, WhatEarlierVersionsStoredIsFound) {
  open();
  for (const char *version : {MGPU_VERSION, "0.0.9"}) {
    db::TuningProblem problem;
    problem.program = std::string("product form mma, mgpu ") + version;
    problem.device = h100.name;
    problem.architecture = h100.arch;
    problem.driver = "CUDA driver " + h100.driver;
    problem.policy = "the bits of the host";
    db::Trial trial = db::okTrial(R"(form=mma)", 12.5, 1);
    trial.lowUs = trial.highUs = trial.medianUs;
    ASSERT_TRUE(store->record(problem, trial));
  }
  EXPECT_EQ(passed(), List{Mma});
  auto all = allEvidence(*store, Mma);
  ASSERT_TRUE(all) << all.error().message;
  ASSERT_EQ(all->size(), 2u);
  EXPECT_EQ((*all)[0].version, "0.0.9");
  EXPECT_EQ((*all)[1].version, MGPU_VERSION);
  EXPECT_EQ((*all)[1].gpu, "NVIDIA H100");
  EXPECT_EQ((*all)[1].driver, "CUDA driver 13.0");
  EXPECT_EQ((*all)[1].evidence.verdict, Verdict::Passed);
  EXPECT_EQ((*all)[1].evidence.us, 12.5);
}

TEST_F(VariantRecord, PlansInFilesDoNotUseIt) {
  EXPECT_TRUE(mayUseRecord({}));
  for (auto change : {+[](PrepareOptions &o) { o.useTuned = false; },
                      +[](PrepareOptions &o) { o.mustBeStored = true; },
                      +[](PrepareOptions &o) { o.planFile = "p.plan"; }}) {
    PrepareOptions prepare;
    change(prepare);
    EXPECT_FALSE(mayUseRecord(prepare));
  }
}

} // namespace
} // namespace mgpu::pipeline
