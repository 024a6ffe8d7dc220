// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// `mgpu-tune db variant`.
#include "device/cuda/CudaTarget.h"
#include "pipeline/program/VariantRecord.h"
#include "tools/mgpu-tune/DbCommand.h"
#include "tools/mgpu-tune/JsonOutput.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

namespace mgpu::tools {

using nlohmann::json;

static const char *verdictName(Evidence::Verdict verdict) {
  return verdict == Evidence::Verdict::Passed   ? "passed"
         : verdict == Evidence::Verdict::Failed ? "failed"
                                                : "not-run";
}

namespace {
/// A default rule in words, and in JSON.
struct RuleWords {
  const char *text, *key;
};
} // namespace

static RuleWords wordsOf(DefaultRule rule) {
  switch (rule) {
  case DefaultRule::WherePassed:
    return {"where it has passed on the GPU", "where-passed"};
  case DefaultRule::WhereNotSlower:
    return {"where it has passed on the GPU and was not slower",
            "where-not-slower"};
  case DefaultRule::WhereThere:
    break;
  }
  return {"where that is found, unless it failed on the GPU", "where-there"};
}

static void printEvidence(const StoredEvidence &stored) {
  const Evidence &evidence = stored.evidence;
  std::string what = verdictName(evidence.verdict);
  if (evidence.verdict == Evidence::Verdict::Failed)
    what += ": " + evidence.fault;
  else
    what += fmt::format(", {:.4g} us", evidence.us);
  if (evidence.withoutUs > 0)
    what += fmt::format(", {:.4g} us without it", evidence.withoutUs);
  fmt::print("  {}, {}, mgpu {}: {}\n", stored.gpu, stored.driver,
             stored.version, what);
}

static json toJson(const StoredEvidence &stored) {
  const Evidence &evidence = stored.evidence;
  json out{{"gpu", stored.gpu},
           {"driver", stored.driver},
           {"version", stored.version},
           {"verdict", verdictName(evidence.verdict)}};
  if (evidence.us > 0)
    out["replay_us"] = evidence.us;
  if (evidence.withoutUs > 0)
    out["without_us"] = evidence.withoutUs;
  if (!evidence.fault.empty())
    out["fault"] = evidence.fault;
  return out;
}

static Result<int> listVariants(const DbOptions &options) {
  MGPU_TRY_ASSIGN(auto store,
                  openStore(options.database, db::Access::ReadOnly));
  json out{{"variants", json::array()}};
  for (const VariantFacts &each : variantTable) {
    MGPU_TRY_ASSIGN(const auto known, allEvidence(store, each.variant));
    json evidence = json::array();
    for (const StoredEvidence &stored : known)
      evidence.push_back(toJson(stored));
    out["variants"].push_back({{"name", each.name},
                               {"meaning", each.meaning},
                               {"needs", needsOf(each)},
                               {"default", wordsOf(each.rule).key},
                               {"evidence", std::move(evidence)}});
    if (options.json)
      continue;
    fmt::print("{}: {}\n  needs {}; by default {}\n", each.name, each.meaning,
               needsOf(each), wordsOf(each.rule).text);
    for (const StoredEvidence &stored : known)
      printEvidence(stored);
    if (known.empty())
      fmt::print("  not run on any GPU\n");
  }
  if (options.json)
    tools::printJson(std::move(out));
  return 0;
}

static Result<int> storeEvidence(const DbOptions &options, Variant variant) {
  const std::string target = options.target.empty() ? "cuda" : options.target;
  if (!device::isCudaTarget(target))
    return fail(ErrorKind::Usage,
                fmt::format("--target {}: a variant passes on a GPU: name one "
                            "as cuda:0",
                            target));
  if (options.fault.empty() == (options.medianUs == 0))
    return fail(ErrorKind::Usage, "give --replay-us of replays that gave the "
                                  "right bits, or --failed with what went "
                                  "wrong");
  const bool passed = options.fault.empty();
  if (!passed && options.withoutUs > 0)
    return fail(ErrorKind::Usage,
                "--without-us goes with --replay-us: times count of what gave "
                "the right bits");
  const Evidence evidence{passed ? Evidence::Verdict::Passed
                                 : Evidence::Verdict::Failed,
                          options.medianUs, options.withoutUs, options.fault};
  const char *name = factsOf(variant).name;
  MGPU_TRY_ASSIGN(std::vector<GpuIdentity> gpus, gpusOfTarget(target));
  MGPU_TRY_ASSIGN(auto store, openStore(options.database, db::Access::Create));
  for (const GpuIdentity &gpu : gpus) {
    MGPU_TRY(recordEvidence(store, gpu, variant, evidence));
    if (!options.json)
      fmt::print("{}: {} on {}, CUDA driver {}\n", name,
                 verdictName(evidence.verdict), gpu.name, gpu.driver);
  }
  if (options.json)
    tools::printJson(
        json{{"variant", name}, {"gpus", gpus.size()}, {"passed", passed}});
  return 0;
}

Result<int> runDbVariant(const DbOptions &options) {
  if (options.variant)
    return storeEvidence(options, *options.variant);
  if (!options.fault.empty() || options.medianUs > 0 || options.withoutUs > 0 ||
      !options.target.empty())
    return fail(ErrorKind::Usage,
                fmt::format("say which variant that is of: {}",
                            fmt::join(variantNames(), ", ")));
  return listVariants(options);
}

} // namespace mgpu::tools
